"""The wait until a connector has reached a requested state, by a series of statuses.

Statuses over REST have no time. Right after a restart the status is still the earlier one, so that
an unchanged FAILED counts only after a while. A task is RUNNING before it has done anything, so
that RUNNING counts only if it lasts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from connectctl.ops.connect.connector import (
    Connector,
    State,
    Verdict,
    at_rest,
    paused,
    requested_state,
    verdict_of,
)
from connectctl.ops.connect.health import failed_parts

GRACE = 5.0
"""Seconds for which an unchanged status may still be the earlier one."""
STEADY = 5.0
"""Seconds for which RUNNING must last: a sink's first put follows its first rebalance, which takes
three.
"""


@dataclass(frozen=True)
class WaitState:
    """A wait for ``wanted``. ``before`` are the statuses when it began; ``changed`` the parts that
    have changed since.
    """

    wanted: State
    before: Connector
    changed: frozenset[int] = frozenset()
    good_since: float | None = None


@dataclass(frozen=True)
class WaitProgress:
    """The wait after one more status: still waiting, ``done``, or ``failed``."""

    waiting: WaitState
    verdict: Verdict
    done: bool = False
    failed: bool = False


def evaluate(waiting: WaitState, now: Connector, elapsed: float) -> WaitProgress:
    """Return the progress of the wait after the status ``now``, ``elapsed`` seconds after the
    request was accepted.
    """
    changed = waiting.changed | _changed(waiting.before, now)
    waiting = replace(waiting, changed=changed)
    verdict = verdict_of(now, now.owners)
    if waiting.wanted is not State.RUNNING:
        rests = at_rest(now) if waiting.wanted is State.STOPPED else paused(now, accepted=True)
        return WaitProgress(waiting, verdict, done=rests)
    fresh = changed | (now.parts.keys() if elapsed >= GRACE else set())
    if failed_parts(now).keys() & fresh:
        return WaitProgress(waiting, verdict, failed=True)
    good = (
        requested_state(now) is State.RUNNING
        and verdict.state is State.RUNNING
        and bool(fresh)
        and (bool(now.tasks) or elapsed >= GRACE)
    )
    since = (waiting.good_since if waiting.good_since is not None else elapsed) if good else None
    done = since is not None and elapsed - since >= STEADY
    return WaitProgress(replace(waiting, good_since=since), verdict, done=done)


def _changed(before: Connector, now: Connector) -> frozenset[int]:
    old, new = before.parts, now.parts
    return frozenset(part for part in old.keys() | new.keys() if old.get(part) != new.get(part))
