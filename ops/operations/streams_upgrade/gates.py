"""Whether a stream application is healthy enough to go on: pure verdicts from one look after another."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from connectctl.ops.kafka.consumer_group import ClientGroup


@dataclass(frozen=True)
class Look:
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
class Demand:
    """What a gate wants: ``members`` in a stable group for ``looks`` looks in a row, within ``timeout`` seconds.

    ``lag`` is what waited before anything was changed: less than that is no reason to stop.
    """

    members: int
    lag: int = 0
    looks: int = 3
    timeout: float = 300.0


@dataclass(frozen=True)
class Watch:
    """A gate that is being waited for. ``since`` is the first of the healthy looks in a row, ``last`` the newest."""

    began: float
    healthy: int = 0
    since: Look | None = None
    last: Look | None = None


@dataclass(frozen=True)
class Seen:
    """The gate after one more look: passed, stopped for a reason, or still waiting, with what is not healthy."""

    watch: Watch
    unwell: tuple[str, ...] = ()
    passed: bool = False
    stopped: str | None = None


def unwell(look: Look, last: Look | None, demand: Demand) -> tuple[str, ...]:
    """All that keeps the look from being healthy, in words."""
    if look.problem:
        return (look.problem,)
    found = [] if look.group.state == "Stable" else [f"the group is {look.group.state}"]
    count = len(look.group.members)
    if count != demand.members:
        found.append(f"the group has {count} members and should have {demand.members}")
    if not found and last is not None and _stuck(look, last):
        found.append(f"no offset was committed, lag {look.lag}")
    return tuple(found)


def _stuck(look: Look, last: Look) -> bool:
    return (look.lag or 0) > (last.lag or 0) and look.progress <= last.progress


def take(watch: Watch, look: Look, demand: Demand) -> Seen:
    """Take one more look into account. Over the healthy looks in a row the lag must not have grown beyond the old one."""
    found = unwell(look, watch.last, demand)
    if found:
        watch = replace(watch, healthy=0, since=None, last=look)
    else:
        watch = replace(watch, healthy=watch.healthy + 1, since=watch.since or look, last=look)
    if watch.healthy >= demand.looks and watch.since is not None:
        before, now = watch.since.lag or 0, look.lag or 0
        if now <= max(before, demand.lag):
            return Seen(watch, passed=True)
        found = (f"lag {now}, {now - before} more than {demand.looks} observations before",)
        watch = replace(watch, healthy=0, since=None)
    waited = look.at - watch.began
    if waited >= demand.timeout:
        return Seen(watch, found, stopped=f"after {waited:.0f} s: {'; '.join(found) or 'not healthy for long enough'}")
    return Seen(watch, found)
