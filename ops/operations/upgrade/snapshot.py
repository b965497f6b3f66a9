"""The input of the planner of a roll, and the parts of it that a plan depends on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from connectctl.ops.connect.health import (
    UnhealthyComponent,
    UnhealthyWorker,
    unhealthy_workers,
)
from connectctl.ops.connect.worker import Support
from connectctl.ops.core.errors import BadInput, did_you_mean
from connectctl.ops.core.finding import Finding
from connectctl.ops.operations.upgrade.mode import SourceSupport, WorkerMode


@dataclass(frozen=True)
class RollingWorker:
    """A worker as a roll observes it. ``problem``: why it does not respond. ``obstacle``: why it
    could not be changed.

    ``change_descriptions``: by value, what setting it and restarting will do. ``lost``: for a
    worker outside the group that only an earlier run recorded, the id of that run.
    """

    address: str
    url: str
    mode: WorkerMode
    leader: bool = False
    version: str | None = None
    support: Support = Support.UNKNOWN
    member: str | None = None
    problem: str | None = None
    obstacle: str | None = None
    restart_group: str | None = None
    by_hand: bool = False
    lost: str | None = None
    change_descriptions: Mapping[str, str] = field(default_factory=dict)

    @property
    def broken(self) -> bool:
        """Whether it serves no requests now, so that restarting it first interrupts nothing."""
        return self.problem is not None or self.member is None

    @property
    def value(self) -> SourceSupport:
        """Its mode."""
        return self.mode.value

    @property
    def maybe_enabled(self) -> bool:
        """Whether it is enabled, or may be."""
        return self.value is SourceSupport.ENABLED or (
            self.value is SourceSupport.UNKNOWN and self.support is Support.UNKNOWN
        )


@dataclass(frozen=True)
class RollingSnapshot:
    """A Connect cluster as a roll observes it. ``baseline``: what was unhealthy before the roll.

    ``delay_ms`` is the pending rebalance delay, ``max_delay`` the leader's
    ``scheduled.rebalance.max.delay.ms`` if its driver reports it. ``dedicated``: the source
    connectors with a dedicated offsets topic. ``exceeds_tasks_max``: the connectors with more tasks
    than their tasks.max. ``taken_at`` is an ISO time. ``findings`` are on how connectors were
    observed.
    """

    cluster_id: str
    group_id: str
    state: str
    workers: tuple[RollingWorker, ...]
    protocol: str = "sessioned"
    delay_ms: int = 0
    max_delay: str | None = None
    baseline: tuple[UnhealthyComponent, ...] = ()
    dedicated: tuple[str, ...] = ()
    exceeds_tasks_max: tuple[str, ...] = ()
    connectors: int | None = None
    driver: str = "manual"
    taken_at: str = ""
    unseen: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def leader(self) -> RollingWorker | None:
        """The leader, None if unknown."""
        return next((worker for worker in self.workers if worker.leader), None)

    @property
    def unhealthy_workers(self) -> tuple[UnhealthyWorker, ...]:
        """The workers that are not in the group, or do not respond."""
        members = [worker.address for worker in self.workers if worker.member is not None]
        problems = {worker.address: worker.problem for worker in self.workers if worker.problem}
        return unhealthy_workers([worker.address for worker in self.workers], members, problems)

    def leaving_out(self, without: Collection[str]) -> RollingSnapshot:
        """Return the cluster without removed workers. Raises ``BadInput`` for any other worker."""
        known = {worker.address: worker for worker in self.workers}
        for name in without:
            if name not in known:
                with_port = next((w for w in known if w.startswith(f"{name}:")), name)
                others = f"Known workers: {', '.join(known) or 'none'}."
                hint = did_you_mean(with_port, known, others)
                raise BadInput(f"Unknown worker: {name}", next_step=hint, code="unknown-worker")
            if known[name].member is not None:
                raise BadInput(
                    f"{name} is in the group, and cannot be excluded",
                    why="exactly-once needs the same mode on every worker of the group (KIP-618)",
                    next_step="--without takes workers that are down; stop it first, or leave the "
                    "option out.",
                )
        return replace(self, workers=tuple(w for w in self.workers if w.address not in without))

    def to_baseline(self) -> Baseline:
        """Return the baseline that the steps of a run need."""
        return Baseline(
            {w.address: WorkerBefore(str(w.value), w.version, w.broken) for w in self.workers},
            unhealthy=self.baseline,
        )


@dataclass(frozen=True)
class WorkerBefore:
    """A worker before a run: its mode, its release, and whether it served no requests."""

    mode: str
    version: str | None = None
    broken: bool = False


@dataclass(frozen=True)
class Baseline:
    """The state before a run, as its steps need it. ``workers`` are by address."""

    workers: Mapping[str, WorkerBefore] = field(default_factory=dict)
    unhealthy: tuple[UnhealthyComponent, ...] = ()

    @property
    def broken(self) -> tuple[str, ...]:
        """The addresses of workers that served no requests."""
        return tuple(address for address, worker in self.workers.items() if worker.broken)

    def has_workers_of(self, other: Baseline) -> bool:
        """Whether workers, modes and releases are the same: a plan depends on them, and its steps
        find the leader.
        """
        mine, others = (
            {a: (w.mode, w.version) for a, w in each.workers.items()} for each in (self, other)
        )
        return mine == others
