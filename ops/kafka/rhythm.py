"""How regularly something was written: what is kept of any number of times."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Rhythm:
    """The first and the last of some times, the longest gap between two that follow each other, and
    how many there are. In seconds, times since the epoch.
    """

    first: float
    last: float
    longest: float = 0.0
    count: int = 1

    @property
    def span(self) -> float:
        """Return how long it is from the first to the last."""
        return self.last - self.first

    def add(self, at: float) -> None:
        """Take the next time. One that is earlier than the last, by another clock, is not a gap."""
        self.count += 1
        if at > self.last:
            self.longest, self.last = max(self.longest, at - self.last), at
