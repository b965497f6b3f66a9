"""The status of this machine's sandboxes: read only, without a lock, at any time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from connectctl.ops.core.errors import BadInput
from connectctl.ops.sandbox import processes, record
from connectctl.ops.sandbox.access import worker_url
from connectctl.ops.sandbox.layout import SandboxLayout
from connectctl.ops.sandbox.lock import is_held
from connectctl.ops.sandbox.ports import LOOPBACK, answers
from connectctl.ops.sandbox.record import Node, SandboxRecord
from connectctl.ops.sandbox.spec import check_name


class SandboxState(StrEnum):
    """The state of a process, or of a sandbox as a whole."""

    RUNNING = "RUNNING"
    STARTING = "STARTING"
    STOPPED = "STOPPED"
    DEAD = "DEAD"
    DEGRADED = "DEGRADED"
    LEFTOVER = "LEFTOVER"


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """One process. ``uptime`` in seconds and ``memory`` (resident) in bytes are None if it does not
    run.

    STOPPED: on purpose. DEAD: it should run. STARTING: it runs and does not listen yet.
    """

    name: str
    state: SandboxState
    kafka_version: str
    group_id: str
    address: str
    pid: int | None
    uptime: float | None
    memory: int | None
    log: Path


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    """One sandbox. DEGRADED: a process died. LEFTOVER: an ``up`` failed or was killed; ``up`` or
    ``down`` removes it.
    """

    name: str
    state: SandboxState
    bootstrap_servers: str
    group_id: str
    cluster_id: str
    processes: tuple[ProcessStatus, ...]


def status(name: str) -> SandboxStatus:
    """Return the status of the sandbox of this name. Raises BadInput when there is none."""
    check_name(name)
    processes.require_psutil()
    layout = SandboxLayout.of(name)
    known = record.load(layout)
    if known is None:
        if not layout.root.is_dir() and layout.root not in processes.roots():
            raise BadInput(
                f"Sandbox not found: {name}",
                next_step=f"Start it: connectctl sandbox up --name {name}.",
                code="no-sandbox",
            )
        return SandboxStatus(name, _unfinished(layout), "", "", "", ())
    found = tuple(_process(known, node, layout) for node in known.nodes)
    lost = any(process.state is SandboxState.DEAD for process in found)
    running = SandboxState.DEGRADED if lost else SandboxState.RUNNING
    return SandboxStatus(
        name=name,
        state=running if known.ready else _unfinished(layout),
        bootstrap_servers=known.bootstrap_servers,
        group_id=known.spec.group_id,
        cluster_id=known.cluster_id,
        processes=found,
    )


def _unfinished(layout: SandboxLayout) -> SandboxState:
    return SandboxState.STARTING if is_held(layout.root) else SandboxState.LEFTOVER


def _process(known: SandboxRecord, node: Node, layout: SandboxLayout) -> ProcessStatus:
    used = processes.usage(node.pid, node.created, layout.root) if node.pid is not None else None
    if node.pid is None:
        state = SandboxState.STOPPED
    elif used is None:
        state = SandboxState.DEAD
    else:
        state = SandboxState.RUNNING if answers(node.port) else SandboxState.STARTING
    return ProcessStatus(
        name=node.name,
        state=state,
        kafka_version=node.kafka_version,
        group_id=node.group_id,
        address=worker_url(known.spec, node.port) if node.group_id else f"{LOOPBACK}:{node.port}",
        pid=node.pid if used else None,
        uptime=used[0] if used else None,
        memory=used[1] if used else None,
        log=layout.log(node.name),
    )
