"""Which attempt of a task is the newest, where Spark runs several at once: copies by speculation, and stages tried again.

They have one transactional id, so that the newest fences the others. Spark takes the result of whichever comes to its
end first, and one that was fenced does so early: its end would count for the task, while the copy still writes. So an
attempt that was fenced asks the driver; where there is a newer one, it fails, and Spark waits for the other.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from connectctl.ops.task_runtime.attempt.control_channel import DriverAddress, QuestionListener, ask


class Superseded(Exception):
    """Another attempt of the same task has taken over: no end of this one is the task's."""


class AttemptRegistry(QuestionListener):
    """The driver's end: open while a frame is written."""

    def __init__(self, host: str, bind: str | None = None):
        self._newest: dict[int, int] = {}
        self._lock = threading.Lock()
        super().__init__(host, bind, self._newest_of)

    def _newest_of(self, asked: Mapping[str, Any]) -> int | None:
        task = int(asked["task"])
        with self._lock:
            if asked["begins"]:
                self._newest[task] = int(asked["attempt"])
            return self._newest.get(task)


class Attempt:
    """An attempt's end: ``number`` is Spark's own of it, which no other has."""

    def __init__(self, address: DriverAddress, task: int, number: int):
        self._address, self._task, self._number = address, task, number

    def begin(self) -> None:
        """Be the newest, before anything older is fenced."""
        self._ask(begins=True)

    @property
    def is_superseded(self) -> bool:
        """Whether there is a newer one. A driver that cannot be asked has given the frame up: then nothing depends on it."""
        newest = self._ask(begins=False)
        return newest is not None and newest != self._number

    def _ask(self, *, begins: bool) -> Any:
        try:
            return ask(self._address, {"task": self._task, "attempt": self._number, "begins": begins})
        except (OSError, ValueError):
            return None
