"""The polling thread of a consumer. It makes callbacks events between two calls of the task.

librdkafka calls a callback within a poll before it revokes partitions, and revokes them when the
callback returns. The task has to commit before that, outside its own poll. So this thread polls,
and holds a callback until the task requests the next event. One of the two threads always waits for
the other. This thread makes all calls of the consumer: a call of another thread while a callback is
held may never return (confluent-kafka keeps the interpreter's lock in some calls).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

Result = tuple[Any, BaseException | None]
"""The return value or the exception of a call."""


class PollThread:
    """A thread that makes the calls of one consumer, one after the other."""

    def __init__(self) -> None:
        self._polls = SimpleQueue[Callable[[], Any] | None]()
        self._asked = SimpleQueue[Callable[[], Any] | None]()
        """Calls while a poll is held; None to release it."""
        self._results = SimpleQueue[Result | None]()
        self.is_held = False
        """True while a poll is held, until the next ``poll``."""
        self._thread = threading.Thread(target=self._run, args=(self._polls,), daemon=True)
        self._thread.start()

    def _run(self, calls: SimpleQueue[Callable[[], Any] | None]) -> None:
        while (call := calls.get()) is not None:
            try:
                self._results.put((call(), None))
            except BaseException as e:  # noqa: BLE001  # raised by the thread that waits for it
                self._results.put((None, e))

    def poll(self, call: Callable[[], Any]) -> Any:
        """Return the result of ``call``, or of the poll that is held; None if it is held now."""
        if self.is_held:
            self._asked.put(None)
        else:
            self._polls.put(call)
        result = self._results.get()
        self.is_held = result is None
        return None if result is None else _value(result)

    def ask(self, call: Callable[[], Any]) -> Any:
        """Return the result of ``call``, also while a poll is held."""
        if threading.current_thread() is self._thread:
            return call()
        (self._asked if self.is_held else self._polls).put(call)
        result = self._results.get()
        assert result is not None
        return _value(result)

    def hold(self) -> None:
        """Wait, within a poll, until the next event is requested."""
        self._results.put(None)
        self._run(self._asked)

    def close(self, last: Callable[[], None]) -> None:
        """End the thread after the held poll and ``last``, without waiting for it."""
        if self.is_held:
            self._asked.put(None)
        self._polls.put(last)
        self._polls.put(None)


def _value(result: Result) -> Any:
    found, error = result
    if error is not None:
        raise error
    return found
