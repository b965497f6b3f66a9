"""When a transaction has to end for its oldest record to be visible in time. Pure: every method is given the time.

A transaction that is to be committed at the last moment needs to know how long that takes: to write what is still on its
way, the offsets, and the coordinator's answer. What the last ones took is a good guess, and the slow ones among them count:
of each duration the pace keeps the longest, which fades as later ones are shorter. So transactions become smaller where a
broker becomes slow, down to one for each batch, and larger once it is quick again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FADING = 16
"""Of how many shorter durations each takes a part off the longest."""
RESERVE = 0.1
"""The part of the promise that is kept free: brokers write markers behind their answer, and readers have to fetch."""
REST = 0.02
"""Seconds for which the loop rests behind a poll that gave nothing."""
FIRST = 0.25
"""The part of the promise that the first commit is taken to need."""


@dataclass
class FadingMaximum:
    """The longest of the last durations, in seconds."""

    value: float = 0.0

    def observe(self, seconds: float) -> None:
        self.value = seconds if seconds > self.value else self.value + (seconds - self.value) / FADING


@dataclass
class LatencyPace:
    """Keeps the transactions of a task short enough for ``promise``. Times are in seconds, of any one clock."""

    promise: float
    oldest: float | None = None
    """When the oldest record of the open transaction was polled."""
    commit: FadingMaximum = field(init=False)
    """From the decision to end a transaction until readers can see it."""
    handling: FadingMaximum = field(default_factory=FadingMaximum)
    """From a batch until the next one can be asked for: it may be the one behind which it is too late."""
    _given: float | None = None
    _decided: float | None = None

    def __post_init__(self) -> None:
        self.commit = FadingMaximum(self.promise * FIRST)

    def polled(self, at: float) -> None:
        self.oldest = at if self.oldest is None else self.oldest
        self._given, self._decided = at, None

    def ready(self, now: float) -> None:
        """The next batch is asked for: what was given before is on its way."""
        if self._given is not None:
            self.handling.observe(now - self._given)
            self._given = None

    @property
    def deadline(self) -> float | None:
        """When the open transaction is to be ended, which may be past; None where none is open."""
        if self.oldest is None:
            return None
        return self.oldest + self.promise * (1 - RESERVE) - self.commit.value - self.handling.value

    def is_due(self, now: float) -> bool:
        return self.deadline is not None and now >= self.deadline

    def decided(self, now: float) -> None:
        """It ends now, for whatever reason."""
        self._decided, self._given = now, None

    def ended(self, now: float) -> None:
        """It is committed, or aborted as the task wished."""
        if self._decided is not None and self.oldest is not None:
            self.commit.observe(now - self._decided)
        self.oldest = self._decided = self._given = None
