"""Whether there is anybody to run a task. Where all executors are gone, Spark waits for another in
silence, for ever.
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
"""Seconds between two looks."""
LOST_AFTER = 10.0
"""Seconds without an executor after which that is said: Spark replaces one that was lost within a
few.
"""

LOST = (
    "All Spark executors of {} were lost; tasks wait for a new executor. "
    "SIGTERM or Ctrl-C ends the run; the next run resumes from the committed offsets."
)
BACK = "A new Spark executor of {} is available: tasks continue."


@dataclass(eq=False)
class ExecutorMonitor:
    """What ``count`` says of executors, looked at now and then; ``note`` hears when all are gone,
    and when one is back.
    """

    count: Callable[[], int]
    master: str
    note: Callable[[str], None]
    now: Callable[[], float] = time.monotonic
    none_left: bool = False
    _checked: float | None = None
    _lost_since: float | None = None

    def check(self) -> None:
        """See who is there, unless that was seen a moment ago. Nothing is raised: a run does not
        end for a look.
        """
        now = self.now()
        if self._checked is not None and now - self._checked < POLL:
            return
        self._checked = now
        try:
            there = self.count() > 0
        except Exception:  # noqa: BLE001  # Java is gone, and the round tells of it
            return
        if there:
            self._lost_since = None
        elif self._lost_since is None:
            self._lost_since = now
        nobody = self._lost_since is not None and now - self._lost_since >= LOST_AFTER
        if nobody != self.none_left:
            self.none_left = nobody
            self.note((LOST if nobody else BACK).format(self.master))


def executor_monitor(spark: SparkSession, note: Callable[[str], None]) -> ExecutorMonitor:
    """That of a session. Executors in the driver's own process are there as long as it is."""
    context = spark.sparkContext
    if not executors.apart(context.master):
        return ExecutorMonitor(lambda: 1, context.master, note)
    status = context._jsc.sc().statusTracker()
    # one is the driver
    return ExecutorMonitor(lambda: len(status.getExecutorInfos()) - 1, context.master, note)
