"""Starting the processes of a sandbox. Everything here is called with the sandbox's lock held."""

from __future__ import annotations

import base64
import subprocess
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from connectctl.ops.clients import java
from connectctl.ops.config import whole_file
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.sandbox import (
    access,
    archives,
    logs,
    processes,
    properties,
    readiness,
    record,
)
from connectctl.ops.sandbox.jars.cache import Jars, jars_of
from connectctl.ops.sandbox.jars.versions import KafkaVersion, parse_version
from connectctl.ops.sandbox.layout import SandboxLayout, broker_name, is_broker
from connectctl.ops.sandbox.ports import free_ports
from connectctl.ops.sandbox.progress import OnProgress, silent
from connectctl.ops.sandbox.record import Node, SandboxRecord
from connectctl.ops.sandbox.security import Security

PATIENCE = 300.0
"""Seconds for a broker or a group to become ready: a hundred times what an idle machine needs."""

GRACE = 15.0
"""Seconds for a process to stop by itself before it is killed; a worker gives its tasks 5."""

_HEAP = "-Xmx512m"
# Made for a short life on a shared machine: no compiler threads that optimise for hours to come,
# one collector thread.
_JVM: tuple[str, ...] = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
)


@dataclass(slots=True)
class Launcher:
    """Starts nodes of one sandbox and keeps its record true: what runs is written down before
    anything else happens.

    ``training``: its JVMs write class-data archives when they end, if there are none yet.
    ``plugins`` are directories of plugins that workers have besides Kafka's.
    """

    layout: SandboxLayout
    record: SandboxRecord
    on_progress: OnProgress = silent
    training: bool = False
    plugins: tuple[Path, ...] = ()
    _java: java.Java | None = field(default=None, repr=False)

    def save(self) -> None:
        record.save(self.record, self.layout)

    def mark_ready(self) -> None:
        """Write down that everything has answered."""
        self.record = replace(self.record, ready=True)
        self.save()

    def java(self) -> java.Java:
        self._java = self._java or java.find_java()
        return self._java

    @property
    def security(self) -> Security:
        """Return the secrets of this sandbox; there are none where it is not secured."""
        return Security(self.layout.security)

    def access(self) -> access.Access:
        return access.access(self.layout, self.record)

    def jars(self, version: KafkaVersion) -> Jars:
        return jars_of(version, self.java, self.on_progress, [processes.mark(self.layout.root)])

    def format_broker(self, number: int) -> None:
        """Write a broker's ``server.properties``, and its empty storage with Kafka's own tool."""
        spec, name = self.record.spec, broker_name(number)
        home = self.layout.home(name)
        home.mkdir(parents=True)
        extra = {
            **(self.security.of_broker() if spec.secured else {}),
            **spec.extra_broker_properties,
        }
        text = properties.render(
            properties.broker_properties(
                home / "data",
                self.record.brokers[name],
                access.protocols(spec),
                extra,
                access.internal(spec),
                number=number,
                controllers=[
                    ports[properties.CONTROLLER] for ports in self.record.brokers.values()
                ],
            )
        )
        file = whole_file.write(self.layout.properties(name), text)
        if spec.secured:
            # Passwords in a file: an argument could be read by everybody.
            arguments = [f"@{self.security.format_arguments(self.record.cluster_id, file)}"]
        else:
            arguments = ["format", "-t", self.record.cluster_id, "-c", str(file)]
        version = spec.version.broker
        command = self._command(
            version, "kafka.tools.StorageTool", name, heap="-Xmx128m", writes=False
        )
        run = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, errors="replace", check=False
        )
        self.security.forget_arguments()
        with self.layout.log(name).open("a") as log:
            log.write(run.stdout + run.stderr)
        if run.returncode != 0:
            raise self._failed(name, "could not format its storage")

    def start_brokers(self, numbers: Sequence[int]) -> None:
        """Start brokers at once, without waiting."""
        spec = self.record.spec
        version = spec.version.broker
        for name in map(broker_name, numbers):
            node = Node(name, self.record.brokers[name][access.internal(spec)], str(version))
            properties_file = str(self.layout.properties(name))
            self._spawn(node, [*self._command(version, "kafka.Kafka", name), properties_file])

    def wait_for_brokers(self, numbers: Sequence[int]) -> None:
        names = [broker_name(number) for number in numbers]
        with self.watching(names) as check:
            deadline = time.monotonic() + PATIENCE
            for name in names:
                port = self.record.node(name).port
                client = self.access().client
                readiness.wait_for_broker(
                    client, port, self.record.cluster_id, check=check, deadline=deadline
                )

    def prepare_worker(
        self,
        name: str,
        group_id: str,
        version: KafkaVersion,
        support: str,
        extra: Mapping[str, str],
        port: int,
    ) -> Node:
        """Write a new worker's ``worker.properties``; return the node that is not started yet."""
        self.layout.home(name).mkdir(parents=True)
        spec = self.record.spec
        text = properties.render(
            properties.worker_properties(
                version,
                group_id,
                bootstrap_servers=self.record.bootstrap_servers,
                port=port,
                plugin_path=",".join(map(str, [self.jars(version).plugins, *self.plugins])),
                support=support,
                extra={**(self.security.of_worker(port) if spec.secured else {}), **extra},
                replicas=spec.brokers,
            )
        )
        whole_file.write(self.layout.properties(name), text)
        node = Node(name, port, str(version), group_id)
        self.record = self.record.with_node(node)
        self.save()
        return node

    def start_worker(self, node: Node) -> None:
        """Start a worker on the properties file that is there, without waiting."""
        version = parse_version(node.kafka_version)
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        options = self.security.java_options() if self.record.spec.secured else []
        command = self._command(version, main, node.name, options)
        self._spawn(node, [*command, str(self.layout.properties(node.name))])

    def wait_for_group(self, group_id: str, started: Collection[str] = ()) -> None:
        """Wait until the workers ``started`` and the other live ones are one stable group.

        Workers that were killed meanwhile are not waited for. A group without any worker is ready.
        """
        root = self.layout.root
        running = [
            node
            for node in self.record.workers(group_id)
            if node.name in started or processes.is_alive(node.pid, node.created, root)
        ]
        if not running:
            return
        urls = [access.worker_url(self.record.spec, node.port) for node in running]
        with self.watching([node.name for node in running]) as check:
            deadline = time.monotonic() + PATIENCE
            readiness.wait_for_group(self.access(), group_id, urls, check=check, deadline=deadline)

    def end(self, name: str, *, kill: bool, timeout: float = GRACE) -> bool:
        """Stop a node and wait until it is gone; returns whether it ended by itself, in ``timeout``
        seconds.
        """
        node = self.record.node(name)
        if node.pid is None:
            return False
        orderly = processes.end(
            node.pid, node.created, self.layout.root, kill=kill, timeout=timeout
        )
        self.record = self.record.with_node(replace(node, pid=None, created=0.0))
        self.save()
        return orderly

    def free_ports(self, count: int) -> list[int]:
        """Ports that nothing listens on and no sandbox has written down."""
        others = (record.load(SandboxLayout(root)) for root in self.layout.root.parent.iterdir())
        return free_ports(
            count, taken=set().union(*(known.ports() for known in (*others, self.record) if known))
        )

    def archive(self, version: KafkaVersion, kind: str) -> Path:
        return archives.archive(self.jars(version).root, kind, self.java().build)

    def draft(self, kind: str) -> Path:
        return self.layout.root / f"{kind}.jsa"

    def _command(
        self,
        version: KafkaVersion,
        main: str,
        name: str,
        more: Sequence[str] = (),
        *,
        heap: str = _HEAP,
        writes: bool = True,
    ) -> list[str]:
        """Return the command of one JVM. Of several that write an archive, only one may:
        ``writes``.
        """
        kind = archives.BROKER if is_broker(name) else archives.CONNECT
        draft = self.draft(kind) if self.training and writes else None
        shared = archives.options(self.archive(version, kind), draft)
        logging = logs.write_logging(version, self.layout.home(name))
        options = [processes.mark(self.layout.root), heap, *_JVM, *shared, logging, *more]
        return [self.java().path, *options, "-cp", str(self.jars(version).root / kind / "*"), main]

    def start_java(self, node: Node, arguments: Sequence[str]) -> None:
        """Start another JVM, without waiting."""
        options = [processes.mark(self.layout.root), _HEAP, *_JVM]
        self._spawn(node, [self.java().path, *options, *arguments])

    def _spawn(self, node: Node, command: Sequence[str]) -> None:
        home, log = self.layout.home(node.name), self.layout.log(node.name)
        pid, created = processes.spawn(command, cwd=home, log=log)
        self.record = self.record.with_node(replace(node, pid=pid, created=created))
        self.save()

    @contextmanager
    def watching(self, names: Sequence[str]) -> Iterator[Callable[[], None]]:
        """Yield a function that raises if one of these nodes has died, and add the log to errors of
        the wait.
        """
        nodes = [self.record.node(name) for name in names]

        def check() -> None:
            for node in nodes:
                if not processes.is_alive(node.pid, node.created, self.layout.root):
                    raise self._failed(node.name, "stopped during startup")

        try:
            yield check
        except TimedOut as late:
            log = self.layout.log(names[-1])
            late.why = f"{late.why}; log of {names[-1]}: {_telling_line(log)}"
            late.next_step = f"See its log: {log}."
            raise

    def _failed(self, name: str, what: str) -> ConnectctlError:
        log = self.layout.log(name)
        return ConnectctlError(
            f"{name} of sandbox {self.layout.name} {what}",
            why=_telling_line(log),
            next_step=f"See its log: {log}.",
            code="sandbox-process-died",
        )


def new_cluster_id() -> str:
    """Return a cluster id in Kafka's form: 22 characters; not with a dash in front, which its tools
    take for an option.
    """
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith(
        "-"
    ):
        continue
    return text


def _telling_line(log: Path) -> str:
    return logs.telling_line("\n".join(logs.last_lines(log, 2000)))
