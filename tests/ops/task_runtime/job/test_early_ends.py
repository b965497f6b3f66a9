"""Why leases end before their time: each reason, and what is none."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from connectctl.ops.core.errors import TimedOut
from connectctl.ops.task_runtime.job.early_ends import LOST_AFTER, SETTLED_AFTER, EarlyEnds


class Scene:
    """A run whose clock, room, generation and group are set."""

    def __init__(self, members: bool = False) -> None:
        self.time, self.slots, self.stale = 100.0, 2, ""
        self.incomplete = False
        self.settled: list[tuple[list[int], bool]] = []
        group: Any = self if members else None
        self.ends = EarlyEnds(lambda: self.slots, self._stale, group, lambda: self.time)
        self.ends.begin([0, 1, 2, 3])

    def _stale(self) -> str | None:
        if self.stale == "unknown":
            raise TimedOut("no answer")
        return self.stale or None

    def settle(self, active: Collection[int], *, at_work: bool = False) -> bool:
        self.settled.append((list(active), at_work))
        return self.incomplete

    def passes(self, seconds: float, width: int = 2) -> bool:
        """Return whether a reason is found while time passes."""
        found = False
        for _ in range(int(seconds)):
            self.time += 1
            found = self.ends.found(width)
        return found


def test_a_task_is_lost_once_it_has_had_no_connection_for_long_enough() -> None:
    scene = Scene()
    scene.time += LOST_AFTER
    assert scene.ends.lost([0, 1], [0]) == []
    scene.time += 1
    assert scene.ends.lost([0, 1], [0]) == [1]
    assert scene.ends.lost([0], [0]) == []  # task 1 has ended
    assert scene.ends.lost([0, 1], [0, 1]) == []
    scene.time += LOST_AFTER + 1
    assert scene.ends.lost([0, 1], []) == [0, 1]
    scene.ends.begin([0, 1])
    assert scene.ends.lost([0, 1], []) == []


def test_room_for_more_spark_tasks_has_to_last() -> None:
    scene = Scene()
    assert not scene.passes(3 * SETTLED_AFTER)
    scene.slots = 4
    assert not scene.passes(SETTLED_AFTER - 5)
    scene.slots = 2
    assert not scene.passes(SETTLED_AFTER)
    scene.slots = 4
    assert scene.passes(SETTLED_AFTER + 3)
    scene.ends.begin([0, 1, 2, 3])
    assert not scene.passes(3 * SETTLED_AFTER, width=4)


def test_more_room_than_tasks_and_a_round_that_has_not_begun_are_no_reason() -> None:
    scene = Scene()
    scene.ends.begin([0, 1])
    scene.slots = 100
    assert not scene.passes(3 * SETTLED_AFTER)
    assert not scene.passes(3 * SETTLED_AFTER, width=0)


def test_a_newer_generation_ends_leases_and_a_failing_look_does_not() -> None:
    scene = Scene()
    scene.stale = "unknown"
    scene.ends.check([0])
    assert not scene.ends.found(2)
    scene.stale = "newer configs"
    scene.ends.check([0])
    assert scene.ends.found(2)


@pytest.mark.parametrize("rounds", [1, 2])
def test_partitions_that_no_member_has_end_leases_once_by_the_second_look(rounds: int) -> None:
    scene = Scene(members=True)
    scene.incomplete = True
    scene.ends.check([0, 3])
    assert not scene.ends.found(2)
    scene.ends.check([0, 3])
    assert scene.ends.found(2)
    assert scene.settled == [([0, 3], True)] * 2
    scene.ends.begin([0, 3])
    for _ in range(3):
        scene.ends.check([0, 3])
        assert not scene.ends.found(2)
    if rounds == 2:
        scene.incomplete = False
        scene.ends.check([0, 3])
        scene.incomplete = True
        for _ in range(2):
            scene.ends.check([0, 3])
        assert scene.ends.found(2)
