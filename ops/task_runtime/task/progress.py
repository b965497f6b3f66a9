"""What a task asks of Kafka, and since when it gets no further: reported to the driver also while a call does not return."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SLOW = 5.0
"""Seconds without an answer that are not reported."""
_LONGEST = 500


class TaskProgress:
    """The progress of a task with Kafka. ``waited`` are seconds that it has waited before, in the lease before this one."""

    def __init__(self, waited: float = 0.0, now: Callable[[], float] = time.monotonic):
        self._now = now
        self._asked: float | None = None
        self._failing = now() - waited if waited else None
        self._what, self._why = "continue", ""

    @contextmanager
    def asking(self, what: str) -> Iterator[None]:
        """A call that Kafka may not answer. One that raises is not over before ``failed``, or another one."""
        self._asked, self._what = self._now(), what
        yield
        self._asked = None

    def waits(self, why: str) -> None:
        """What the call that is not answered waits for."""
        self._why = why

    def failed(self, why: str, longest: float = math.inf) -> bool:
        """Kafka is in the way, or in doubt; whether it was not before.

        It is since it was asked, but for a call that took more than ``longest`` seconds: then the process was suspended.
        """
        new = self._failing is None
        if self._failing is None:
            now = self._now()
            self._failing = now if self._asked is None or now - self._asked > longest else self._asked
        self._asked, self._why = None, why
        return new

    def restart(self) -> None:
        """What comes is another trouble than what was, with a time of its own."""
        self._failing = self._now()

    def recovered(self) -> None:
        """Kafka has answered whatever was asked."""
        self._failing = self._asked = None
        self._why = ""

    @property
    def waited(self) -> float:
        """Seconds for which the task got no further, 0 where it does."""
        began = self._asked if self._failing is None else self._failing
        return 0.0 if began is None else max(0.0, self._now() - began)

    @property
    def message(self) -> dict[str, Any] | None:
        """As sent to the driver; None where there is nothing to report."""
        if (waited := self.waited) < SLOW:
            return None
        return {"seconds": round(waited, 1), "what": self._what, "why": self._why[:_LONGEST]}


@contextmanager
def heartbeat(beat: Callable[[], None], every: float) -> Iterator[None]:
    """Call ``beat`` every so many seconds on another thread."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(every):
            beat()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
