"""Failures that a test asks for, each at the occasion with a number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from enum import StrEnum


class Fault(StrEnum):
    """A fault. ``fail_at={Fault.POLL: 2}`` is the second poll of the run, ``{Fault.POLL: (2, 3)}``
    also the third.

    All faults of commits count the same commits.
    """

    POLL = "poll"
    """``poll`` of a source task raises ``RetriableError`` and is not called."""
    PUT = "put"
    """``put`` of a sink task raises ``RetriableError`` and is not called."""
    REBALANCE = "rebalance"
    """In a poll of the consumer group (sinks, transforms) all partitions are revoked and assigned
    again.
    """
    PARTIAL_REBALANCE = "partial rebalance"
    """One partition is revoked and assigned again, as in a cooperative rebalance; the task keeps
    the others.
    """
    COMMIT_LOST = "commit lost"
    """The commit is not answered, and did not happen."""
    COMMIT_UNANSWERED = "commit unanswered"
    """The commit is not answered, and did happen."""
    CRASH_BEFORE_COMMIT = "crash before commit"
    """The process is killed just before the commit: a new task starts at the committed offsets;
    ``stop`` was not called.
    """
    CRASH_AFTER_COMMIT = "crash after commit"
    """The process is killed just after the commit, before the task hears of it."""

    @property
    def occasion(self) -> str:
        return "commit" if "commit" in self else str(self)


FailAt = Mapping[Fault, int | Collection[int]]
"""Which failures happen, and at which occasions of their kind; 1 is the first of the run."""


class Crash(BaseException):
    """The process of the task is killed; not an ``Exception``, because nothing in it can handle
    that.
    """


class Faults:
    """Counts the occasions of a run, and returns the fault of each."""

    def __init__(self, fail_at: FailAt):
        self._at = {fault: {n} if isinstance(n, int) else set(n) for fault, n in fail_at.items()}
        self.seen = Counter[str]()

    def next(self, occasion: str) -> Fault | None:
        """Count one more ``occasion``; return its fault, if any."""
        self.seen[occasion] += 1
        found = (
            f
            for f, numbers in self._at.items()
            if f.occasion == occasion and self.seen[occasion] in numbers
        )
        return next(found, None)
