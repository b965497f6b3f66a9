"""Evaluate whether a Streams application is healthy enough to continue. Pure: one snapshot after
another.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from connectctl.ops.kafka.consumer_group import ClientGroup
from connectctl.ops.kafka.group_state import instability
from connectctl.ops.operations.rolling.waiting import GateResult


@dataclass(frozen=True)
class ApplicationHealth:
    """The health of the application at one time; ``at`` in seconds of any clock.

    ``lag``: its consumer lag in records, None if it has committed nothing. ``progress``: the sum of
    all its committed offsets, which grows with every processed record. ``problem``: why it could
    not be observed.
    """

    at: float
    group: ClientGroup = field(default_factory=lambda: ClientGroup("", "Unknown"))
    lag: int | None = None
    progress: int = 0
    problem: str | None = None


@dataclass(frozen=True)
class ApplicationCriteria:
    """The criteria of a gate: ``members`` in a stable group for ``looks`` consecutive snapshots,
    within ``timeout`` seconds.

    ``lag`` is the lag before any change: a lag up to that passes.
    """

    members: int
    lag: int = 0
    looks: int = 3
    timeout: float = 300.0


@dataclass(frozen=True)
class ApplicationGateState:
    """The state of a gate. ``since`` is the first of the consecutive healthy snapshots, ``last``
    the newest snapshot.
    """

    began: float
    healthy: int = 0
    since: ApplicationHealth | None = None
    last: ApplicationHealth | None = None


def unhealthy(
    health: ApplicationHealth, last: ApplicationHealth | None, criteria: ApplicationCriteria
) -> tuple[str, ...]:
    """Everything unhealthy in the snapshot, as messages."""
    if health.problem:
        return (health.problem,)
    found = [why] if (why := instability(health.group.state)) else []
    count = len(health.group.members)
    if count != criteria.members:
        found.append(f"the group has {count} members and should have {criteria.members}")
    if not found and last is not None and _stuck(health, last):
        found.append(f"no offset was committed, lag {health.lag}")
    return tuple(found)


def _stuck(health: ApplicationHealth, last: ApplicationHealth) -> bool:
    return (health.lag or 0) > (last.lag or 0) and health.progress <= last.progress


def evaluate(
    watch: ApplicationGateState, health: ApplicationHealth, criteria: ApplicationCriteria
) -> GateResult[ApplicationGateState]:
    """Evaluate one more snapshot. Over consecutive healthy ones, the lag must not grow beyond the
    lag before the change.
    """
    found = unhealthy(health, watch.last, criteria)
    if found:
        watch = replace(watch, healthy=0, since=None, last=health)
    else:
        watch = replace(watch, healthy=watch.healthy + 1, since=watch.since or health, last=health)
    if watch.healthy >= criteria.looks and watch.since is not None:
        before, now = watch.since.lag or 0, health.lag or 0
        if now <= max(before, criteria.lag):
            return GateResult(watch, passed=True)
        found = (f"lag {now}, {now - before} more than {criteria.looks} observations before",)
        watch = replace(watch, healthy=0, since=None)
    waited = health.at - watch.began
    if waited >= criteria.timeout:
        return GateResult(
            watch,
            found,
            stopped=f"after {waited:.0f} s: {'; '.join(found) or 'not healthy for long enough'}",
        )
    return GateResult(watch, found)
