"""The time at which a caller wants control back, whatever its requests wait for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Unacknowledged(TimeoutError):
    """Records are not sent, or not acknowledged, in time. They are kept, and none is lost."""


class Limit:
    """A limit of all waits of a producer, in addition to their own; none by default."""

    _ends: float | None = None

    @contextmanager
    def until(self, ends: float | None) -> Iterator[None]:
        """Limit the waits in the block to ``ends``, a time of ``time.monotonic``, if given."""
        before, self._ends = self._ends, ends
        try:
            yield
        finally:
            self._ends = before

    @property
    def is_set(self) -> bool:
        """Return whether a limit is in force."""
        return self._ends is not None

    def of(self, seconds: float) -> float:
        """Return ``seconds``, or the remaining time if that is less."""
        return (
            seconds if self._ends is None else min(seconds, max(0.0, self._ends - time.monotonic()))
        )

    def check(self) -> None:
        """Raise ``Unacknowledged`` if the time is over."""
        if self._ends is not None and time.monotonic() >= self._ends:
            raise Unacknowledged("records are not acknowledged in time")

    def wait(self, seconds: float, arrives: Callable[[float], bool]) -> None:
        """Wait for ``arrives``, which is called with the seconds that it may take. Raises
        ``TimeoutError`` after ``seconds``, and ``Unacknowledged`` if the limit is over before.
        """
        remaining = self.of(seconds)
        if arrives(remaining):
            return
        if remaining < seconds:
            raise Unacknowledged("records are not acknowledged in time")
        raise TimeoutError("timed out")

    def sleep(self, seconds: float) -> None:
        """Wait for ``seconds``. Raises as ``check``, before and afterwards."""
        self.check()
        time.sleep(self.of(seconds))
        self.check()
