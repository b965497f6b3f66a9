"""Monitors the executors that run tasks. If all executors are lost, Spark waits for a new one
without a message and without a limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.clients.spark import executors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL = 2.0
"""Seconds between two checks."""
LOST_AFTER = 10.0
"""Seconds without an executor after which it is reported. Spark replaces a lost executor within a
few seconds.
"""

LOST = (
    "All Spark executors of {} were lost; tasks wait for a new executor. "
    "SIGTERM or Ctrl-C ends the run; the next run resumes from the committed offsets."
)
BACK = "A new Spark executor of {} is available: tasks continue."


@dataclass(eq=False)
class ExecutorMonitor:
    """A periodic check of the number of executors, which ``count`` returns. ``note`` receives a
    line when all executors are lost, and when one is available again.
    """

    count: Callable[[], int]
    master: str
    note: Callable[[str], None]
    now: Callable[[], float] = time.monotonic
    none_left: bool = False
    _checked: float | None = None
    _lost_since: float | None = None

    def check(self) -> None:
        """Count the executors, unless the last check was less than ``POLL`` seconds ago. Raises
        nothing: a failed check does not end a run.
        """
        now = self.now()
        if self._checked is not None and now - self._checked < POLL:
            return
        self._checked = now
        try:
            has_executors = self.count() > 0
        except Exception:  # noqa: BLE001  # the JVM has ended; the round reports it
            return
        if has_executors:
            self._lost_since = None
        elif self._lost_since is None:
            self._lost_since = now
        nobody = self._lost_since is not None and now - self._lost_since >= LOST_AFTER
        if nobody != self.none_left:
            self.none_left = nobody
            self.note((LOST if nobody else BACK).format(self.master))


def executor_monitor(spark: SparkSession, note: Callable[[str], None]) -> ExecutorMonitor:
    """Return the monitor of a session. Executors in the driver's process are never lost."""
    context = spark.sparkContext
    if not executors.apart(context.master):
        return ExecutorMonitor(lambda: 1, context.master, note)
    status = context._jsc.sc().statusTracker()
    # one of them is the driver
    return ExecutorMonitor(lambda: len(status.getExecutorInfos()) - 1, context.master, note)
