"""The time for one question, in attempts: a request to a broker that has died waits for all of its
own time, so that the first attempt is short, and a broker that is only slow gets longer ones.
"""

from __future__ import annotations

import time

SHORTEST = 0.1
"""Seconds that any attempt has."""


class Patience:
    """``seconds`` for all attempts together, ``first`` for the first of them."""

    def __init__(self, seconds: float, first: float) -> None:
        self._seconds, self._began, self._next = seconds, time.monotonic(), first

    @property
    def spent(self) -> float:
        """Return the seconds since the first attempt began."""
        return time.monotonic() - self._began

    @property
    def left(self) -> float:
        """Return the seconds that remain; below 0 if the time is over."""
        return self._seconds - self.spent

    @property
    def attempt(self) -> float:
        """Return the seconds for the next attempt."""
        return max(SHORTEST, min(self._next, self.left))

    @property
    def is_last(self) -> bool:
        """Return whether the next attempt takes what remains."""
        return self._next >= self.left

    def grow(self) -> None:
        """Give the next attempt twice the time of this one."""
        self._next *= 2
