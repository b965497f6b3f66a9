"""Decide when a cluster is healthy enough to continue. Pure: evaluates one health snapshot after
another.

A gate passes after several consecutive healthy snapshots, between which no task moved to another
worker, and fails at its deadline. A cooperative rebalance is two or more: the first revokes tasks,
the next assigns them to other workers, and between them the group is Stable (KIP-415). The clock of
the deadline does not count a pending rebalance delay (``scheduled.rebalance.max.delay.ms``): tasks
of a stopped worker are then waiting for reassignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from connectctl.ops.connect.health import Part, UnhealthyComponent, unhealthy_workers
from connectctl.ops.core.finding import some_of
from connectctl.ops.kafka.group_state import instability, is_stable
from connectctl.ops.operations.rolling.waiting import GateResult

Layout = tuple[Mapping[str, str], Mapping[Part, str]]


@dataclass(frozen=True)
class HealthSnapshot:
    """The cluster's health at one time; ``at`` in seconds of any clock.

    ``members`` are the workers in the group, address to member id; ``silent`` those whose REST
    server does not respond, with the reason. ``assigned`` has the member id of the worker to which
    the group gives each connector and task. ``problem`` is why nothing could be observed.
    """

    at: float
    state: str = "Unknown"
    members: Mapping[str, str] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)
    delay_ms: int = 0
    leader: str | None = None
    unhealthy_components: tuple[UnhealthyComponent, ...] = ()
    problem: str | None = None
    assigned: Mapping[Part, str] = field(default_factory=dict)

    @property
    def layout(self) -> Layout:
        """Members and assignments: while unchanged, no rebalance has moved a task."""
        return dict(self.members), dict(self.assigned)


@dataclass(frozen=True)
class HealthCriteria:
    """The criteria of a gate. ``expected`` workers must be in the group; ``baseline`` are the ranks
    before the upgrade.

    ``looks`` consecutive healthy snapshots, over at least ``settle`` seconds in which members and
    assignments stay the same; ``timeout`` in seconds; ``max_failures`` parts may be worse than the
    baseline. ``forgives_fencing``: tasks that cannot reach the fencing endpoint are left for later
    (KIP-618, Single-step downgrade). ``workers_only``: connectors, tasks and the rebalance delay
    are not judged, while a worker is away by the run itself.
    """

    expected: tuple[str, ...]
    baseline: Mapping[Part, int] = field(default_factory=dict)
    looks: int = 3
    timeout: float = 300.0
    max_failures: int = 0
    forgives_fencing: bool = False
    workers_only: bool = False
    settle: float = 0.0


@dataclass(frozen=True)
class GateState:
    """The state of a gate. ``failed`` are the parts that were FAILED in each of the last
    ``failing`` snapshots.

    ``healthy`` consecutive snapshots, all of the same ``layout``, the first of them at ``since``.
    """

    began: float
    healthy: int = 0
    failing: int = 0
    failed: frozenset[Part] = frozenset()
    delay: float = 0.0
    since: float = 0.0
    layout: Layout | None = None


@dataclass(frozen=True)
class WorkersGateResult(GateResult[GateState]):
    """The gate after one more snapshot; ``fenced`` are the tasks that are FAILED because of fencing
    alone.
    """

    fenced: tuple[UnhealthyComponent, ...] = ()


def worse(health: HealthSnapshot, criteria: HealthCriteria) -> list[UnhealthyComponent]:
    """The parts that are worse than before the upgrade and not tolerated."""
    if criteria.workers_only:
        return []
    found = [t for t in health.unhealthy_components if t.rank > criteria.baseline.get(t.part, 0)]
    return [t for t in found if not (criteria.forgives_fencing and t.fencing)]


def unhealthy(health: HealthSnapshot, criteria: HealthCriteria) -> tuple[str, ...]:
    """Everything unhealthy in the snapshot, as messages."""
    if health.problem:
        return (health.problem,)
    found = [why] if (why := instability(health.state)) else []
    found += map(str, unhealthy_workers(criteria.expected, health.members, health.silent))
    if criteria.workers_only:
        return tuple(found)
    if health.delay_ms:
        found.append(
            f"unassigned tasks wait for {health.delay_ms / 1000:g} s "
            "(scheduled.rebalance.max.delay.ms)"
        )
    components = worse(health, criteria)
    if len([c for c in components if c.rank == 2]) > criteria.max_failures or any(
        c.rank < 2 for c in components
    ):
        found += [str(c) for c in components]
    return tuple(found)


def evaluate(
    watch: GateState, health: HealthSnapshot, criteria: HealthCriteria
) -> WorkersGateResult:
    """Evaluate one more snapshot."""
    found = unhealthy(health, criteria)
    failed = _failed(health, criteria)
    same = failed == watch.failed and _settled(health, criteria)
    failing = (watch.failing + 1 if same else 1) if failed else 0
    unchanged = not found and watch.healthy > 0 and health.layout == watch.layout
    watch = replace(
        watch,
        healthy=watch.healthy + 1 if unchanged else 0 if found else 1,
        since=watch.since if unchanged else health.at,
        layout=health.layout,
        failing=failing,
        failed=failed,
        delay=max(watch.delay, health.delay_ms / 1000),
    )
    fenced = (
        tuple(t for t in worse(health, criteria) if t.by_fencing)
        if _settled(health, criteria)
        else ()
    )
    if watch.healthy >= criteria.looks and health.at - watch.since >= criteria.settle:
        return WorkersGateResult(watch, passed=True)
    if found and len(failed) > criteria.max_failures and failing > criteria.looks:
        return WorkersGateResult(watch, found, stopped=_joined(found), fenced=fenced)
    if health.at - watch.began >= criteria.timeout + watch.delay:
        waited = f"after {health.at - watch.began:.0f} s"
        why = _joined(found) or "connectors and tasks keep moving between workers"
        return WorkersGateResult(watch, found, stopped=f"{waited}: {why}", fenced=fenced)
    return WorkersGateResult(watch, found, fenced=fenced)


def _failed(health: HealthSnapshot, criteria: HealthCriteria) -> frozenset[Part]:
    return frozenset(t.part for t in worse(health, criteria) if t.rank == 2)


def _settled(health: HealthSnapshot, criteria: HealthCriteria) -> bool:
    """Whether statuses are reliable: all workers respond and no rebalance is pending."""
    return (
        not health.problem and is_stable(health.state) and not health.delay_ms and not health.silent
    )


MAX_NAMED = 6


def _joined(found: Iterable[str]) -> str:
    return some_of([*found], MAX_NAMED, "; ")
