"""The owner of each source partition, if a frame is written in its own partitions: the driver
assigns each to one task.

The content of a frame's own partitions is unknown beforehand, and Spark may distribute it
differently when it reads the frame again. So a task claims a source partition before it sends the
first row. An assignment lasts for the whole generation, whichever attempt claims it, so that no two
tasks of a generation ever send the same source partition; an older generation is fenced.
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
        super().__init__(
            host, bind, lambda asked: self.assign(int(asked["task"]), asked["partitions"])
        )

    def assign(self, task: int, partitions: Sequence[str]) -> tuple[str, int] | None:
        """Assign all of ``partitions`` to ``task``, or none: then return the first that is another
        task's, and that task.
        """
        with self._lock:
            for name in partitions:
                if self._owners.get(name, task) != task:
                    return name, self._owners[name]
            self._owners.update(dict.fromkeys(partitions, task))
        return None


class PartitionRegistryClient:
    """The client of a task. Raises ``ConnectctlError`` if a source partition is another task's, or
    the driver does not respond.
    """

    def __init__(self, address: DriverAddress, task: int):
        self._address, self._task = address, task

    def __call__(self, partitions: Sequence[tuple[Any, ...]]) -> None:
        """Ask for source partitions, given as the values of their columns."""
        named = [connect_json(list(partition)) for partition in partitions]
        try:
            answer = ask(
                self._address, {"task": self._task, "partitions": named}, connect=CONNECT_TIMEOUT
            )
        except (OSError, ValueError) as e:
            what = "Lost connection to the Spark driver"
            raise ConnectctlError(what, why=str(e)) from e
        if answer is not None:
            partition, owner = answer
            raise ConnectctlError(
                f"The source partition {partition} is in two partitions of the DataFrame",
                why=f"tasks {owner} and {self._task} both received rows of it",
                next_step="Set partitioned to false, so that the DataFrame is shuffled by source "
                "partition.",
                code="not-partitioned",
            )
