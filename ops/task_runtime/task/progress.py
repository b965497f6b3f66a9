"""A task's current request to Kafka, and since when it is blocked; reported to the driver also
during a blocked call.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SLOW = 5.0
"""Seconds without a response that are not reported."""
_LONGEST = 500


class TaskProgress:
    """The progress of a task with Kafka. ``waited``: seconds that it waited in the previous
    lease.
    """

    def __init__(self, waited: float = 0.0, now: Callable[[], float] = time.monotonic):
        self._now = now
        self._asked: float | None = None
        self._failing = now() - waited if waited else None
        self._what, self._why = "continue", ""
        self._answered = self._endless = False

    @contextmanager
    def asking(self, what: str) -> Iterator[None]:
        """Mark a call to which Kafka may not respond. One that raises lasts until ``failed`` or the
        next call.
        """
        self._asked, self._what = self._now(), what
        yield
        self._asked = None

    def waits(self, why: str, endless: bool = False) -> None:  # a callback
        """Note what the call waits for although Kafka responds to it; ``endless``: that wait has no
        limit.
        """
        self._why, self._answered, self._endless = why, True, endless

    def failed(self, why: str, longest: float = math.inf) -> bool:
        """Note a failure or unknown outcome; whether it is the first.

        It counts from the begin of the call, unless that took over ``longest`` seconds: then the
        process was suspended.
        """
        new = self._failing is None
        if self._failing is None:
            now = self._now()
            self._failing = (
                now if self._asked is None or now - self._asked > longest else self._asked
            )
        self._asked, self._why, self._answered = None, why, False
        return new

    def restart(self) -> None:
        """Measure the time of the following failure separately."""
        self._failing = self._now()

    def recovered(self) -> None:
        """Note that Kafka has responded to every request."""
        self._failing = self._asked = None
        self._why, self._answered = "", False

    @property
    def waited(self) -> float:
        """Seconds without progress, 0 if the task makes progress."""
        began = self._asked if self._failing is None else self._failing
        return 0.0 if began is None else max(0.0, self._now() - began)

    @property
    def message(self) -> dict[str, Any] | None:
        """Return the message to the driver; None without anything to report. ``answered``: Kafka
        responds, and the task has to wait; ``endless``: that wait has no limit.
        """
        if (waited := self.waited) < SLOW:
            return None
        found = {"seconds": round(waited, 1), "what": self._what, "why": self._why[:_LONGEST]}
        return {**found, "answered": True, "endless": self._endless} if self._answered else found


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
