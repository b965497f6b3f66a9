"""A task on a separate thread, so that its transaction can be committed during a poll without
records.

A task is called by one thread, always the same one (``SourceTask``). ``CallingThread`` calls it on
the loop's thread, if nothing has to happen during a call. A task that promises a latency is called
on a ``TaskThread``: the loop waits for a poll until the open transaction has to end, and waits
again after that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.spi.connector import Batch

T = TypeVar("T")


class PollResult(NamedTuple):
    """The batch of a poll, None if the task has finished; its end and duration, by the monotonic
    clock.
    """

    batch: Batch | None
    at: float
    seconds: float


def timed(work: Callable[[], Batch | None]) -> PollResult:
    """Return the result of ``work``, a poll, with its times."""
    began = time.monotonic()
    batch = work()
    now = time.monotonic()
    return PollResult(batch, now, now - began)


class CallingThread:
    """The thread of the caller, with the methods of ``TaskThread``: no call is made during another."""

    is_busy = False

    def call(self, work: Callable[[], T]) -> T:
        return work()

    def later(self, work: Callable[[], None]) -> None:
        work()

    def poll(self, work: Callable[[], Batch | None], patience: float | None) -> PollResult:
        return timed(work)

    def close(self) -> None:
        pass


class TaskThread:
    """A thread for one task, which ends with ``close``."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="task")
        self._polling: Future[PollResult] | None = None
        self._later: list[Future[None]] = []

    @property
    def is_busy(self) -> bool:
        """Return whether a poll is in progress, so that any other call would wait for its end."""
        return self._polling is not None

    def call(self, work: Callable[[], T]) -> T:
        """Do ``work``, after a poll in progress."""
        return self._thread.submit(work).result()

    def later(self, work: Callable[[], None]) -> None:
        """The same, without waiting for the poll; the next ``poll`` raises its exception."""
        if self.is_busy:
            self._later.append(self._thread.submit(work))
        else:
            self.call(work)

    def poll(self, work: Callable[[], Batch | None], patience: float | None) -> PollResult | None:
        """Poll, or wait for the poll in progress; None if it is not over after ``patience``
        seconds.
        """
        if self._polling is None:
            # Work that ``later`` received during a poll was done after the poll.
            later, self._later = self._later, []
            for each in later:
                each.result()
            self._polling = self._thread.submit(timed, work)
        wait([self._polling], patience)
        if not self._polling.done():
            return None
        done, self._polling = self._polling, None
        return done.result()

    def close(self) -> None:
        self._thread.shutdown(wait=False)
