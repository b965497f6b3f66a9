"""The newest attempt of a task, if Spark runs several at once: speculative copies, and retried
stages.

They have one transactional id, so the newest fences the others. Spark uses the result of the
attempt that ends first, and a fenced one ends early: its result would count for the task, while the
copy still writes. So a fenced attempt queries the driver; if there is a newer attempt, it fails,
and Spark waits for the newer one.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from connectctl.ops.task_runtime.attempt.control_channel import DriverAddress, QuestionListener, ask


class Superseded(Exception):
    """Another attempt of the same task has taken over: the result of this one does not count."""


class AttemptRegistry(QuestionListener):
    """The driver's end: open while a DataFrame is written."""

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
    """The attempt's end: ``number`` is Spark's unique number of the attempt."""

    def __init__(self, address: DriverAddress, task: int, number: int):
        self._address, self._task, self._number = address, task, number

    def begin(self) -> None:
        """Register as the newest, before any older attempt is fenced."""
        self._ask(begins=True)

    @property
    def is_superseded(self) -> bool:
        """Whether there is a newer one. If the driver does not respond, it has abandoned the
        DataFrame: False then.
        """
        newest = self._ask(begins=False)
        return newest is not None and newest != self._number

    def _ask(self, *, begins: bool) -> Any:
        try:
            return ask(
                self._address, {"task": self._task, "attempt": self._number, "begins": begins}
            )
        except (OSError, ValueError):
            return None
