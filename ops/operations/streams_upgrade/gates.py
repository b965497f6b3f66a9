"""Whether a stream application is healthy enough to continue: pure verdicts from one look after another."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from connectctl.ops.kafka.consumer_group import ClientGroup
from connectctl.ops.operations.rolling.waiting import GateResult


@dataclass(frozen=True)
class ApplicationHealth:
    """The application at one moment, ``at`` in seconds of any clock.

    ``lag`` is how many records wait for it, None where it has committed nothing. ``progress`` is the sum of all offsets
    that it has committed: it grows with every record that is done. ``problem`` is why nothing could be seen.
    """

    at: float
    group: ClientGroup = field(default_factory=lambda: ClientGroup("", "Unknown"))
    lag: int | None = None
    progress: int = 0
    problem: str | None = None


@dataclass(frozen=True)
class ApplicationCriteria:
    """What a gate wants: ``members`` in a stable group for ``looks`` looks in a row, within ``timeout`` seconds.

    ``lag`` is what waited before anything was changed: less than that is not a reason to stop.
    """

    members: int
    lag: int = 0
    looks: int = 3
    timeout: float = 300.0


@dataclass(frozen=True)
class ApplicationGateState:
    """A gate that is being waited for. ``since`` is the first of the healthy looks in a row, ``last`` the newest."""

    began: float
    healthy: int = 0
    since: ApplicationHealth | None = None
    last: ApplicationHealth | None = None


def unhealthy(
    health: ApplicationHealth, last: ApplicationHealth | None, criteria: ApplicationCriteria
) -> tuple[str, ...]:
    """All that keeps the look from being healthy, in words."""
    if health.problem:
        return (health.problem,)
    found = [] if health.group.state == "Stable" else [f"the group is {health.group.state}"]
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
    """Take one more look into account. Over the healthy looks in a row the lag must not have grown beyond the old one."""
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
            watch, found, stopped=f"after {waited:.0f} s: {'; '.join(found) or 'not healthy for long enough'}"
        )
    return GateResult(watch, found)
