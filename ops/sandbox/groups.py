"""The workers of one Connect group of a sandbox: stop, start, add."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from connectctl.ops.connect.internal_topics import address
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.sandbox import properties, record
from connectctl.ops.sandbox.access import worker_url
from connectctl.ops.sandbox.jars.versions import parse_version
from connectctl.ops.sandbox.launch import Launcher
from connectctl.ops.sandbox.layout import SandboxLayout
from connectctl.ops.sandbox.lock import locked
from connectctl.ops.sandbox.progress import silent
from connectctl.ops.sandbox.record import Node, SandboxRecord
from connectctl.ops.sandbox.spec import check_support

LOCK_PATIENCE = 300.0
"""Seconds to wait for another command on the same sandbox: longer than any ``up`` with warm
jars.
"""


@dataclass(frozen=True, slots=True)
class Group:
    """Connect workers with one ``group.id``. Workers are numbered from 1 in the order in which they
    were added.
    """

    layout: SandboxLayout
    group_id: str

    @property
    def topics(self) -> dict[str, str]:
        return properties.internal_topics(self.group_id)

    @property
    def rest_urls(self) -> tuple[str, ...]:
        """Return the REST addresses of the workers that were not stopped."""
        known = current(self.layout)
        nodes = known.workers(self.group_id)
        return tuple(worker_url(known.spec, node.port) for node in nodes if node.pid is not None)

    @property
    def workers(self) -> tuple[Node, ...]:
        """Return all workers, also stopped ones."""
        return current(self.layout).workers(self.group_id)

    def worker_name(self, number: int) -> str:
        """Return the name of worker ``number``, which is that of its log and its directory. Raises
        BadInput.
        """
        workers = self.workers
        if not 1 <= number <= len(workers):
            raise BadInput(
                f"Group {self.group_id} has workers 1 to {len(workers)}, not {number}",
                code="no-worker",
            )
        return workers[number - 1].name

    def number_of(self, url: str) -> int:
        """Return the number of the worker with this REST address, by whatever scheme. Raises
        BadInput.
        """
        known = current(self.layout)
        for number, node in enumerate(known.workers(self.group_id), start=1):
            if address(worker_url(known.spec, node.port)) == address(url):
                return number
        raise BadInput(
            f"No worker of group {self.group_id} in sandbox {self.layout.name} listens at {url}",
            code="no-worker",
        )

    def stop_worker(self, number: int, *, kill: bool = False) -> None:
        """Stop a worker and wait until it is gone: orderly, so that it leaves the group, or by
        SIGKILL.
        """
        name = self.worker_name(number)
        with launcher(self.layout) as launch:
            launch.end(name, kill=kill)

    def start_worker(
        self,
        number: int,
        *,
        support: str | None = None,
        properties: Mapping[str, str] | None = None,
        kafka_version: str | None = None,
        wait: bool = True,
    ) -> None:
        """Start a stopped or dead worker on its properties file, and wait until the group is whole
        and stable.

        ``support`` and ``properties`` are first set in the file; what else is in it stays.
        ``kafka_version`` makes it a worker of another version from now on.
        """
        name = self.worker_name(number)
        with launcher(self.layout) as launch:
            launch.end(name, kill=True)
            node, changes = launch.record.node(name), dict(properties or {})
            version = parse_version(kafka_version or node.kafka_version)
            if str(version) != node.kafka_version:
                node = replace(node, kafka_version=str(version))
                changes.setdefault("plugin.path", str(launch.jars(version).plugins))
            _edit(self.layout, node, support, changes)
            start(launch, self.group_id, [node], wait=wait)


def current(layout: SandboxLayout) -> SandboxRecord:
    """Return the sandbox's current record. Raises ConnectctlError if the sandbox does not exist any
    more.
    """
    found = record.load(layout)
    if found is None:
        raise ConnectctlError(
            f"Sandbox not found: {layout.name}",
            next_step=f"Start it: connectctl sandbox up --name {layout.name}.",
            code="no-sandbox",
        )
    return found


@contextmanager
def launcher(layout: SandboxLayout) -> Iterator[Launcher]:
    """A launcher for an existing sandbox, with its lock held."""
    with locked(layout.root, create=False, timeout=LOCK_PATIENCE):
        yield Launcher(layout, current(layout), silent)


def prepare(
    launch: Launcher,
    group_id: str,
    count: int,
    support: str,
    extra: Mapping[str, str],
    kafka_version: str | None = None,
) -> list[Node]:
    """Write the files of ``count`` more workers of a group; they are not started yet."""
    spec = launch.record.spec
    version = parse_version(kafka_version) if kafka_version else spec.version
    check_support(support, version)
    first = len(launch.record.workers(group_id)) + 1
    prefix = "worker" if group_id == spec.group_id else f"{group_id}-worker"
    ports = launch.free_ports(count)
    return [
        launch.prepare_worker(f"{prefix}-{first + at}", group_id, version, support, extra, port)
        for at, port in enumerate(ports)
    ]


def start(launch: Launcher, group_id: str, nodes: Sequence[Node], *, wait: bool = True) -> None:
    """Start workers of a group at once, and wait until it is stable with them."""
    for node in nodes:
        launch.start_worker(node)
    if wait:
        launch.wait_for_group(group_id, [node.name for node in nodes])


def _edit(
    layout: SandboxLayout, node: Node, support: str | None, changes: Mapping[str, str]
) -> None:
    changed = dict(changes)
    if support is not None:
        check_support(support, parse_version(node.kafka_version))
        changed[properties.SUPPORT_KEY] = support
    if changed:
        file = layout.properties(node.name)
        file.write_text(properties.with_changes(file.read_text(), changed))
