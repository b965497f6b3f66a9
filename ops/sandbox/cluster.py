"""The embedded cluster: a real broker and real Connect workers on this machine, brought up,
handled, taken down.

Nothing here keeps a process or a file alive by itself: what runs is in ``sandbox.json``, and every
JVM carries a mark on its command line, so that a command that is killed at any point leaves nothing
that the next one cannot find.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from connectctl.ops.core.errors import Refused
from connectctl.ops.core.interrupts import put_in_order
from connectctl.ops.sandbox import (
    access,
    archives,
    groups,
    processes,
    record,
    registry,
    security,
)
from connectctl.ops.sandbox.context import write_context
from connectctl.ops.sandbox.groups import LOCK_PATIENCE, Group
from connectctl.ops.sandbox.handle import Sandbox
from connectctl.ops.sandbox.launch import PATIENCE, Launcher, new_cluster_id
from connectctl.ops.sandbox.layout import BROKER, SandboxLayout, broker_name, sandboxes
from connectctl.ops.sandbox.lock import locked
from connectctl.ops.sandbox.ports import answers
from connectctl.ops.sandbox.progress import OnProgress, SandboxProgress, silent
from connectctl.ops.sandbox.record import SandboxRecord
from connectctl.ops.sandbox.spec import SandboxSpec, check_name

__all__ = ["Group", "Sandbox", "SandboxProgress", "SandboxSpec", "down", "find", "names", "up"]


def up(spec: SandboxSpec, on_progress: OnProgress = silent) -> Sandbox:
    """Start a sandbox, and return when the broker responds and the workers are one stable group.

    One that runs with the same options is left unchanged; one that is not whole (a process died,
    the machine was restarted, ``up`` was killed) is started again. Raises Refused if it runs with
    other options, BadInput for a version that cannot be downloaded, ConnectctlError with the log if
    a process dies; then only the logs remain.
    """
    processes.require_psutil()
    layout = SandboxLayout.of(spec.name)

    def waiting() -> None:
        on_progress(
            SandboxProgress(f"Waiting for another command on the sandbox {spec.name} to finish")
        )

    lock = locked(layout.root, create=True, timeout=LOCK_PATIENCE, on_wait=waiting)
    with lock, put_in_order(f"removing the incomplete sandbox {spec.name}"):
        known = record.load(layout)
        if known is not None and is_whole(known, layout):
            if differences := known.spec.differences(spec):
                raise Refused(
                    f"Sandbox {spec.name} is running with other options",
                    why="; ".join(differences),
                    next_step="Use another --name, or first run: connectctl sandbox down --name "
                    f"{spec.name}.",
                    code="other-options",
                )
            return Sandbox(layout, was_running=True)
        if known is not None:
            on_progress(SandboxProgress(f"Sandbox {spec.name} is incomplete: recreating it"))
        processes.sweep(layout.root)
        _empty(layout.root)
        try:
            _bring_up(spec, layout, on_progress)
        except BaseException as error:
            processes.sweep(layout.root)
            _empty(layout.root, keep=() if isinstance(error, KeyboardInterrupt) else (layout.logs,))
            if not any(layout.logs.glob("*")):
                _remove(layout.root)
            raise
    return Sandbox(layout)


def down(name: str) -> bool:
    """End every process of a sandbox and remove its files; returns whether any existed. Raises
    TimedOut.
    """
    check_name(name)
    processes.require_psutil()
    layout = SandboxLayout.of(name)
    with locked(layout.root, create=False, timeout=LOCK_PATIENCE) as lock:
        killed = processes.sweep(layout.root)
        if lock is not None:
            _remove(layout.root)
    return bool(killed) or lock is not None


def names() -> list[str]:
    """Return the names of all sandboxes that have a directory or a process."""
    processes.require_psutil()
    home = sandboxes()
    found = (
        {entry.name for entry in home.iterdir() if entry.is_dir()} if home.is_dir() else set[str]()
    )
    return sorted(found | {root.name for root in processes.roots() if root.parent == home})


def find(name: str) -> Sandbox:
    """Return the sandbox of this name, which ``up`` has brought up. Raises ConnectctlError when
    there is none.
    """
    check_name(name)
    sandbox = Sandbox(SandboxLayout.of(name))
    _ = sandbox.record
    return sandbox


def is_whole(known: SandboxRecord, layout: SandboxLayout) -> bool:
    """Return whether ``up`` finished, the brokers run, and every process that was not stopped on
    purpose lives and listens.
    """
    started = [node for node in known.nodes if node.pid is not None]
    return (
        known.ready
        and known.brokers.keys() <= {node.name for node in started}
        and all(
            processes.is_alive(node.pid, node.created, layout.root) and answers(node.port)
            for node in started
        )
    )


def _bring_up(spec: SandboxSpec, layout: SandboxLayout, on_progress: OnProgress) -> None:
    launch = Launcher(layout, SandboxRecord(spec, new_cluster_id(), {}), on_progress)
    launch.java()
    used = {archives.BROKER: spec.version.broker} | (
        {archives.CONNECT: spec.version} if spec.workers else {}
    )
    for version in set(used.values()):
        launch.jars(version)
    archived = {kind: launch.archive(version, kind) for kind, version in used.items()}
    if missing := {kind: path for kind, path in archived.items() if not path.exists()}:
        on_progress(
            SandboxProgress(f"Preparing Kafka {spec.version} for faster starts (only once)")
        )
        _train(spec, layout, missing)
    _start(launch)
    write_context(layout, launch.record)
    launch.mark_ready()


def _train(spec: SandboxSpec, layout: SandboxLayout, missing: Mapping[str, Path]) -> None:
    """Run the same for a moment, so that its JVMs leave archives of their classes for all later
    ones.
    """
    workers = min(spec.workers, 1)
    plain = SandboxSpec(
        spec.name, workers=workers, support=spec.support, kafka_version=spec.kafka_version
    )
    launch = Launcher(layout, SandboxRecord(plain, new_cluster_id(), {}), training=True)
    _start(launch)
    # One that had to be killed may have left half an archive.
    if all(
        launch.end(node.name, kill=False, timeout=PATIENCE)
        for node in reversed(launch.record.nodes)
    ):
        for kind, path in missing.items():
            archives.keep(launch.draft(kind), path)
    processes.sweep(layout.root)
    _empty(layout.root)


def _start(launch: Launcher) -> None:
    """Start all processes of the record's spec, and wait until it is ready."""
    spec, layout = launch.record.spec, launch.layout
    layout.logs.mkdir()
    listeners = tuple(access.protocols(spec))
    ports = launch.free_ports(len(listeners) * spec.brokers)
    numbers = range(1, spec.brokers + 1)
    own = {
        broker_name(n): dict(zip(listeners, ports[n - 1 :: spec.brokers], strict=True))
        for n in numbers
    }
    launch.record = SandboxRecord(spec, launch.record.cluster_id, own.pop(BROKER), peers=own)
    launch.save()
    if spec.secured:
        layout.root.chmod(0o700)
        launch.on_progress(SandboxProgress("Creating certificates and passwords"))
        launch.security.create()
    launch.on_progress(
        SandboxProgress("Starting the broker" if not own else f"Starting {spec.brokers} brokers")
    )
    for number in numbers:
        launch.format_broker(number)
    launch.start_brokers(numbers)
    if spec.registry:
        registry.start(launch)
        launch.plugins = (registry.plugins(launch),)
    launch.wait_for_brokers(numbers)
    if spec.secured:
        security.grant(launch.access().client)
    if spec.workers:
        launch.on_progress(
            SandboxProgress(f"Starting {spec.workers} worker{'s' * (spec.workers > 1)}")
        )
    nodes = groups.prepare(
        launch, spec.group_id, spec.workers, spec.support, spec.extra_worker_properties
    )
    groups.start(launch, spec.group_id, nodes)
    if spec.registry:
        launch.on_progress(SandboxProgress("Waiting for the Schema Registry"))
        registry.wait(launch)


def _empty(root: Path, keep: tuple[Path, ...] = ()) -> None:
    for entry in root.iterdir():
        if entry.is_dir() and entry not in keep:
            shutil.rmtree(entry)
        elif entry not in keep:
            entry.unlink()


def _remove(root: Path) -> None:
    """Remove a sandbox's directory, and those above that only sandboxes need, if no other is in
    them.
    """
    shutil.rmtree(root)
    with suppress(OSError):
        root.parent.rmdir()
        root.parent.parent.rmdir()
