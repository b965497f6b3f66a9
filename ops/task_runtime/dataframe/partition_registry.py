"""Who has which source partition, where a frame is written as Spark has split it: the driver gives
each to one task.

What a frame's own partitions hold is unknown beforehand, and Spark may split it otherwise when it
reads it again. So a task asks before it sends the first row of a source partition. What was given
once stays given for the whole generation, whichever attempt asks, so that no two tasks of a
generation ever send the same source partition; an older one is fenced.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.attempt.control_channel import DriverAddress, QuestionListener, ask

CONNECT_TIMEOUT = 10.0


class PartitionRegistry(QuestionListener):
    """The driver's end: open while a generation's tasks run."""

    def __init__(self, host: str, bind: str | None = None):
        self._owners: dict[str, int] = {}
        self._lock = threading.Lock()
        super().__init__(host, bind, lambda asked: self.give(int(asked["task"]), asked["places"]))

    def give(self, task: int, places: Sequence[str]) -> tuple[str, int] | None:
        """Give all of ``places`` to ``task``, or none: then the first that is another's, and
        whose.
        """
        with self._lock:
            for place in places:
                if self._owners.get(place, task) != task:
                    return place, self._owners[place]
            self._owners.update(dict.fromkeys(places, task))
        return None


class PartitionRegistryClient:
    """A task's end. Raises ``ConnectctlError`` where a source partition is another task's, or
    nobody can be asked.
    """

    def __init__(self, address: DriverAddress, task: int):
        self._address, self._task = address, task

    def __call__(self, places: Sequence[tuple[Any, ...]]) -> None:
        """Ask for source partitions, given as the values of their columns."""
        named = [connect_json(list(place)) for place in places]
        try:
            answer = ask(
                self._address, {"task": self._task, "places": named}, connect=CONNECT_TIMEOUT
            )
        except (OSError, ValueError) as e:
            what = "Lost connection to the Spark driver"
            raise ConnectctlError(what, why=str(e)) from e
        if answer is not None:
            place, owner = answer
            raise ConnectctlError(
                f"The source partition {place} is in two partitions of the DataFrame",
                why=f"tasks {owner} and {self._task} both received rows of it",
                next_step="Set partitioned to false, so that the DataFrame is shuffled by source "
                "partition.",
                code="not-partitioned",
            )
