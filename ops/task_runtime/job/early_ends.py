"""Why the leases of a round end before their time: tasks that run nowhere, room for more Spark
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
"""Seconds without a connection after which a task is lost: Spark runs it again within a few, or it
could not connect and has ended by itself.
"""
SETTLED_AFTER = 30.0
"""Seconds for which Spark has to have room for more Spark tasks."""
LOOK = 2.0
"""Seconds between two looks at Spark's room."""
ENOUGH_LOOKS = 2


@dataclass(eq=False)
class EarlyEnds:
    """Of a run. ``room`` returns how many Spark tasks can run at once, ``stale_because`` why its
    tasks are not the newest generation; ``members`` are its tasks' members of a consumer group,
    None for a source.
    """

    room: Callable[[], int]
    stale_because: Callable[[], str | None]
    members: TaskMembers | None
    now: Callable[[], float] = time.monotonic
    _incomplete: int = 0
    """In how many looks after each other the group had partitions that no member has."""
    _needed: bool = False

    def begin(self, tasks: Collection[int]) -> None:
        """Begin a round of ``tasks``."""
        self._looked = self._narrow = self.now()
        self._seen = dict.fromkeys(tasks, self.now())
        self._needed = False

    def lost(self, active: Collection[int], connected: Collection[int]) -> list[int]:
        """Return the ``active`` tasks that have had no connection for a while."""
        self._seen |= dict.fromkeys(connected, self.now())
        return [n for n in active if self.now() - self._seen[n] > LOST_AFTER]

    def found(self, width: int) -> bool:
        """Whether there is room for more than ``width`` Spark tasks, or a look found a reason."""
        now = self.now()
        if now - self._looked >= LOOK:
            self._looked = now
            wider = False
            with suppress(Exception):  # Java is gone, and the round tells of it
                wider = 0 < width < min(len(self._seen), self.room())
            if not wider:
                self._narrow = now
        return self._needed or now - self._narrow >= SETTLED_AFTER

    def look(self, active: Collection[int]) -> None:
        """Look at the generation and at the group, and take out members of tasks that are over;
        called now and then, on a thread. Leases end once for partitions that a rebalance has not
        assigned by the second look.
        """
        with suppress(ConnectctlError):  # tasks look themselves before they begin
            self._needed |= self.stale_because() is not None
        if self.members is not None:
            incomplete = self.members.settle(active, at_work=True)
            self._incomplete = self._incomplete + 1 if incomplete else 0
            self._needed |= self._incomplete == ENOUGH_LOOKS
