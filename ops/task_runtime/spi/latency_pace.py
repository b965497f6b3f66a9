"""When a transaction has to end so that its oldest record is readable in time. Pure: the time is an
argument.

To commit as late as possible, the duration of the commit must be estimated: writing the outstanding
records and the offsets, and the coordinator's response. The estimate is the longest recent
duration, which decays as later ones are shorter. So transactions become smaller if a broker becomes
slow, down to one for each batch, and larger when it is fast again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FADING = 16
"""Each shorter duration reduces the longest by this fraction of the difference."""
RESERVE = 0.1
"""The reserved part of the promise: brokers write markers after their response, and consumers have
to fetch.
"""
REST = 0.02
"""Seconds for which the loop pauses after a poll without records."""
FIRST = 0.25
"""The assumed duration of the first commit, as a part of the promise."""


@dataclass
class FadingMaximum:
    """The longest of the recent durations, in seconds."""

    value: float = 0.0

    def observe(self, seconds: float) -> None:
        self.value = (
            seconds if seconds > self.value else self.value + (seconds - self.value) / FADING
        )


@dataclass
class LatencyPace:
    """Keeps the transactions of a task short enough for ``promise``. Times are in seconds, all of
    one clock.
    """

    promise: float
    oldest: float | None = None
    """The time at which the oldest record of the open transaction was polled."""
    commit: FadingMaximum = field(init=False)
    """From the decision to end a transaction until it is readable."""
    handling: FadingMaximum = field(default_factory=FadingMaximum)
    """From a batch until the next one can be requested: after that batch it may be too late."""
    _given: float | None = None
    _decided: float | None = None

    def __post_init__(self) -> None:
        self.commit = FadingMaximum(self.promise * FIRST)

    def polled(self, at: float) -> None:
        self.oldest = at if self.oldest is None else self.oldest
        self._given, self._decided = at, None

    def ready(self, now: float) -> None:
        """Note that the next batch is requested: the previous one was handed to the producer."""
        if self._given is not None:
            self.handling.observe(now - self._given)
            self._given = None

    @property
    def deadline(self) -> float | None:
        """Return when the open transaction has to end, which may be in the past; None if none is
        open.
        """
        if self.oldest is None:
            return None
        return self.oldest + self.promise * (1 - RESERVE) - self.commit.value - self.handling.value

    def is_due(self, now: float) -> bool:
        return self.deadline is not None and now >= self.deadline

    def decided(self, now: float) -> None:
        """Note that the transaction ends now."""
        self._decided, self._given = now, None

    def ended(self, now: float) -> None:
        """Note that the transaction is committed, or aborted as the task requested."""
        if self._decided is not None and self.oldest is not None:
            self.commit.observe(now - self._decided)
        self.oldest = self._decided = self._given = None
