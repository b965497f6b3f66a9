"""When it is said that nobody is there to run a task, and that somebody is again."""

from __future__ import annotations

from connectctl.ops.task_runtime.job.executor_monitor import LOST_AFTER, POLL, ExecutorMonitor


class Cluster:
    """Executors as a test wants them, and what is said of them; a second passes with each look."""

    def __init__(self) -> None:
        self.there = 1
        self.counted = 0
        self.time = 100.0
        self.said: list[str] = []
        self.attendance = ExecutorMonitor(
            self.count, "spark://m:1", self.said.append, lambda: self.time
        )

    def count(self) -> int:
        self.counted += 1
        if self.there < 0:
            raise ConnectionError("Java is gone")
        return self.there

    def looks(self, there: int, seconds: float) -> bool:
        self.there = there
        for _ in range(int(seconds)):
            self.time += 1
            self.attendance.check()
        return self.attendance.none_left


def test_executors_that_are_there_are_nothing_to_talk_about() -> None:
    cluster = Cluster()
    assert not cluster.looks(2, 100)
    assert (cluster.said, cluster.counted) == ([], 100 // POLL)


def test_one_that_is_replaced_at_once_is_not_missed() -> None:
    cluster = Cluster()
    for _ in range(3):
        assert not cluster.looks(0, LOST_AFTER - POLL)
        assert not cluster.looks(1, POLL)
    assert not cluster.said


def test_their_absence_and_their_return_are_each_told_once() -> None:
    cluster = Cluster()
    assert cluster.looks(0, LOST_AFTER + 2 * POLL)
    assert cluster.looks(0, 100)
    assert len(cluster.said) == 1
    assert "All Spark executors of spark://m:1 were lost" in cluster.said[0]
    assert not cluster.looks(1, POLL)
    assert len(cluster.said) == 2
    assert cluster.looks(0, LOST_AFTER + 2 * POLL)
    assert len(cluster.said) == 3


def test_a_look_that_fails_changes_nothing() -> None:
    cluster = Cluster()
    assert not cluster.looks(-1, 100)
    assert cluster.looks(0, LOST_AFTER + 2 * POLL)
    assert cluster.looks(-1, 100)
    assert len(cluster.said) == 1
