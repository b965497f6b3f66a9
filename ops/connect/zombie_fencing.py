"""A leader's round of zombie fencing: its duration, and whether it can end in time. Pure.

``Admin.fenceProducers`` sends the ids of one coordinator one by one, with the retry back-off
between them although nothing failed (measured on 4.3.1). ``AdminApiDriver`` doubles it since 3.7
from ``retry.backoff.ms`` to ``retry.backoff.max.ms``; before, all pauses are the first one. The
leader gives the round 90 s; a follower gives a request that it forwards 30 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from connectctl.ops.config.numbers import whole_number
from connectctl.ops.connect.release import older
from connectctl.ops.core.finding import Finding, Severity, counted
from connectctl.ops.core.rule import Rule

BLOCKED_BY_FENCING = Rule("FENCE008", Severity.ERROR)
LEADER_LIMIT = 90.0
FORWARD_LIMIT = 30.0
FIRST_BACKOFF, LONGEST_BACKOFF = (
    "admin.override.retry.backoff.ms",
    "admin.override.retry.backoff.max.ms",
)
CURE = {FIRST_BACKOFF: "10", LONGEST_BACKOFF: "10"}
"""The overrides with which 200 ids took 0.94 s instead of 3 minutes."""
_GROWS_SINCE = (3, 7, 0)
SLOW = 3.0
"""Seconds that a round may take before it is reported."""


@dataclass(frozen=True)
class Backoff:
    """The admin client's retry back-off for a connector, in seconds: ``first``, doubling up to
    ``longest``.

    ``versions`` are the workers'; none are known if it is empty. Of several versions the slower one
    counts, because any of the workers may be the leader.
    """

    first: float = 0.1
    longest: float = 1.0
    versions: Sequence[str] = ()

    @classmethod
    def of(cls, config: Mapping[str, str], versions: Sequence[str] = ()) -> Backoff:
        """Return the back-off of a connector's admin client by its configuration, with Kafka's
        defaults.
        """
        first = _milliseconds(config.get(FIRST_BACKOFF), 100)
        longest = max(first, _milliseconds(config.get(LONGEST_BACKOFF), 1000))
        return cls(first / 1000, longest / 1000, tuple(versions))

    @property
    def last(self) -> float:
        """Return the longest pause that a round reaches."""
        all_older = bool(self.versions) and all(older(v, _GROWS_SINCE) for v in self.versions)
        return self.first if all_older else self.longest

    def seconds(self, ids: int) -> float:
        """Return the time for ``ids`` of one coordinator, which are fenced one after another."""
        return (
            sum(min(self.last, self.first * 2.0**k) for k in range(min(ids - 1, 64)))
            + max(0, ids - 65) * self.last
        )


def _milliseconds(text: str | None, default: int) -> int:
    number = whole_number(text)
    return default if number is None else number


@dataclass(frozen=True)
class FencingRound:
    """A round that is due or under way. ``ids`` and ``left`` count ids by coordinator, ``left``
    those not yet fenced.

    ``since`` is the age of the task configs that the round is for, in seconds. ``failed`` are the
    tasks whose traces report that fencing failed. ``began`` is when these task configs were
    written, in seconds since the epoch, None if that is unknown.
    """

    connector: str
    ids: Sequence[int]
    left: Sequence[int]
    since: float
    backoff: Backoff
    workers: int = 1
    failed: Sequence[int] = ()
    began: float | None = None

    @property
    def total(self) -> float:
        """Return the time for the whole round; coordinators work in parallel."""
        return max(map(self.backoff.seconds, self.ids), default=0.0)

    @property
    def remaining(self) -> float:
        """Return the remaining time: by the ids that are not fenced yet if states show them, else
        by the elapsed time.
        """
        if 0 < sum(self.left) < sum(self.ids):
            return max(self.left) * self.backoff.last
        return max(0.0, self.total - self.since)


def ids_to_fence(record: int | None, tasks: int, pending: bool) -> int:
    """Return the number of ids that the leader fences before tasks start.

    Source: ``DistributedHerder.doFenceZombieSourceTasks``.
    """
    if not pending or record is None or not tasks or (record == 1 and tasks == 1):
        return 0
    return record


def diagnose(round_: FencingRound) -> Finding | None:
    """Return FENCE008 if a round of fencing keeps the tasks from starting; None for a short
    round.
    """
    cure, began = f"connectctl connectors cure {round_.connector}", round_.began
    if round_.failed:
        failed = counted(len(round_.failed), "task")
        message = (
            f"The leader could not finish a round of fencing for {counted(sum(round_.ids), 'id')}; "
            f"{failed} failed by it."
        )
        return BLOCKED_BY_FENCING.found(round_.connector, message, cure, since=began)
    if round_.total <= SLOW:
        return None
    message = (
        f"Tasks are blocked by zombie fencing ({counted(sum(round_.ids), 'id')}, sequential, "
        f"{round_.since:.0f} s so far), although their status is RUNNING."
    )
    if round_.total > LEADER_LIMIT:
        message += (
            f" It needs about {round_.total:.0f} s and is given {LEADER_LIMIT:.0f}: all "
            "tasks will fail."
        )
        return BLOCKED_BY_FENCING.found(round_.connector, message, cure, since=began)
    message += f" About {round_.remaining:.0f} s are left."
    if round_.total > FORWARD_LIMIT and round_.workers > 1:
        message += f" A task that asked through another worker fails after {FORWARD_LIMIT:.0f} s."
    return BLOCKED_BY_FENCING.found(
        round_.connector, message, cure, severity=Severity.WARNING, since=began
    )
