"""A thread for the polls of a consumer, whose callbacks are events between two calls of the task.

librdkafka tells of a revocation in a callback within a poll, and takes the partitions when it
returns. So that the task commits before that without being called during its own poll, the poll is
made here: a callback is held until the task asks for the next event. At any time one of the two
threads waits for the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any


class PollThread:
    """Makes one call after the other, each of which may be held."""

    def __init__(self) -> None:
        self._calls = SimpleQueue[Callable[[], Any] | None]()
        self._results = SimpleQueue[tuple[Any, BaseException | None] | None]()
        self._go_on = SimpleQueue[None]()
        self.is_held = False
        """Whether a call is held, and goes on with the next ``call``."""
        threading.Thread(target=self._run, name="poll", daemon=True).start()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                self._results.put((call(), None))
            except BaseException as e:  # noqa: BLE001  # raised by the thread that waits for it
                self._results.put((None, e))

    def call(self, call: Callable[[], Any]) -> Any:
        """Return the result of ``call``, or of the call that is held; None if it is held now."""
        if self.is_held:
            self.is_held = False
            self._go_on.put(None)
        else:
            self._calls.put(call)
        if (result := self._results.get()) is None:
            self.is_held = True
            return None
        found, error = result
        if error is not None:
            raise error
        return found

    def hold(self) -> None:
        """Wait, within a call, until the task goes on."""
        self._results.put(None)
        self._go_on.get()

    def close(self, last: Callable[[], None]) -> None:
        """End, after what is held and ``last``; without waiting for it. Calls do not hold any
        more.
        """
        if self.is_held:
            self._go_on.put(None)
        self._calls.put(last)
        self._calls.put(None)
