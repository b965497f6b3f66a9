"""Detects reasons to end the leases of a round early: tasks that run nowhere, room for more Spark
tasks, a newer generation of tasks, or partitions of the consumer group that no task has.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.attempt.control_channel import SILENCE

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.job.group_members import TaskMembers

LOST_AFTER = 2 * SILENCE
"""Seconds without a connection after which a task is lost. Spark runs a task again within a few
seconds, and a task that cannot connect ends itself.
"""
SETTLED_AFTER = 30.0
"""Seconds for which Spark must have room for more Spark tasks before leases end."""
LOOK = 2.0
"""Seconds between two checks of Spark's room."""
ENOUGH_LOOKS = 2


@dataclass(eq=False)
class EarlyEnds:
    """The detection in one run. ``room`` returns how many Spark tasks can run concurrently.
    ``stale_because`` returns the reason if a newer generation of tasks exists. ``members`` are the
    tasks' members of a consumer group, None for a source.
    """

    room: Callable[[], int]
    stale_because: Callable[[], str | None]
    members: TaskMembers | None
    now: Callable[[], float] = time.monotonic
    _incomplete: int = 0
    """The number of consecutive checks in which the group had partitions without a member."""
    _needed: bool = False

    def begin(self, tasks: Collection[int]) -> None:
        """Begin a round of ``tasks``."""
        self._looked = self._narrow = self.now()
        self._seen = dict.fromkeys(tasks, self.now())
        self._needed = False

    def lost(self, active: Collection[int], connected: Collection[int]) -> list[int]:
        """Return the ``active`` tasks without a connection for ``LOST_AFTER`` seconds."""
        self._seen |= dict.fromkeys(connected, self.now())
        return [n for n in active if self.now() - self._seen[n] > LOST_AFTER]

    def found(self, width: int) -> bool:
        """Return whether there is room for more than ``width`` Spark tasks, or a check of ``look``
        found a reason.
        """
        now = self.now()
        if now - self._looked >= LOOK:
            self._looked = now
            wider = False
            with suppress(Exception):  # the JVM has ended; the round reports it
                wider = 0 < width < min(len(self._seen), self.room())
            if not wider:
                self._narrow = now
        return self._needed or now - self._narrow >= SETTLED_AFTER

    def check(self, active: Collection[int]) -> None:
        """Check the generation and the consumer group, and remove members of tasks that have ended.
        A thread calls it periodically. Leases end once if a rebalance has not assigned all
        partitions at the second check.
        """
        with suppress(ConnectctlError):  # tasks check it themselves before they begin
            self._needed |= self.stale_because() is not None
        if self.members is not None:
            incomplete = self.members.settle(active, at_work=True)
            self._incomplete = self._incomplete + 1 if incomplete else 0
            self._needed |= self._incomplete == ENOUGH_LOOKS
