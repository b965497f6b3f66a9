"""Tasks that share a Spark task: all of them run at once, and what becomes of one is its own
business.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
from connectctl.ops.task_runtime.attempt.task_attempt import FAILED, TaskReport
from connectctl.ops.task_runtime.job import spark_round
from connectctl.ops.task_runtime.job.spark_round import (
    SparkRound,
    connected_shares,
    room,
    side_by_side,
    slots,
)


def test_all_tasks_of_a_share_run_at_once() -> None:
    together = threading.Barrier(20)

    def run(task: int) -> TaskReport:
        together.wait(60)  # breaks where one of them waits for another to be over
        return TaskReport(task, "ended")

    assert sorted(report.task for report in side_by_side(range(20), run)) == list(range(20))


def test_a_report_comes_when_its_task_is_over_and_not_when_all_are() -> None:
    release = threading.Event()

    def run(task: int) -> TaskReport:
        if task == 0:
            release.wait(60)
        return TaskReport(task, "ended")

    reports = side_by_side([0, 1], run)
    assert next(reports).task == 1
    release.set()
    assert next(reports).task == 0


@pytest.mark.parametrize(
    "bang", [RuntimeError("bang"), SystemExit("bang"), KeyboardInterrupt("bang")]
)
def test_what_a_task_raises_is_its_own_report_and_takes_no_neighbour_along(
    bang: BaseException,
) -> None:
    def run(task: int) -> TaskReport:
        if task == 1:
            raise bang
        return TaskReport(task, "ended", records=5)

    reports = {report.task: report for report in side_by_side(range(3), run)}
    assert (reports[1].reason, reports[1].detail) == (FAILED, f"{type(bang).__name__}: bang")
    assert "in run" in str(reports[1].trace)
    assert [reports[n].records for n in (0, 2)] == [5, 5]


class Spark:
    """As much of a session as tells how many Spark tasks can run at once; itself a frame that
    counts its partitions.
    """

    def __init__(self, at_once: int = 4, **conf: str):
        self._at_once, self._conf = at_once, {k.replace("__", "."): v for k, v in conf.items()}
        self.asked: tuple[int, ...] = ()
        self.collected, self.release = threading.Event(), threading.Event()
        self.sparkContext: Any = self
        self._jsc: Any = self

    def getConf(self) -> dict[str, str]:
        return self._conf

    def sc(self) -> Spark:
        return self

    def resourceProfileManager(self) -> Spark:
        return self

    def defaultResourceProfile(self) -> str:
        return "default"

    def maxNumConcurrentTasks(self, profile: str) -> int:
        return self._at_once if profile == "default" else 0

    def addJobTag(self, tag: str) -> None:
        pass

    def range(self, *asked: int) -> Spark:
        self.asked = asked
        return self

    def mapInArrow(self, function: Any, schema: str) -> Spark:
        return self

    def collect(self) -> list[Any]:
        self.collected.set()
        self.release.wait(60)
        return []


@pytest.mark.parametrize(
    ("spark", "expected"),
    [
        (Spark(4), 4),
        (Spark(4, spark__dynamicAllocation__enabled="false"), 4),
        (
            Spark(
                1,
                spark__dynamicAllocation__enabled="true",
                spark__dynamicAllocation__maxExecutors="3",
            ),
            3,
        ),
        (
            Spark(
                1,
                spark__dynamicAllocation__enabled="true",
                spark__dynamicAllocation__maxExecutors="3",
                spark__executor__cores="4",
                spark__task__cpus="2",
            ),
            6,
        ),
    ],
)
def test_slots_are_those_that_are_there_or_that_spark_may_ask_for(
    spark: Any, expected: int
) -> None:
    assert slots(spark) == expected


@pytest.mark.parametrize(
    ("tasks", "at_once", "partitions"), [(8, 2, 2), (2, 8, 2), (100, 8, 8), (3, 0, 1)]
)
def test_a_round_has_as_many_spark_tasks_as_can_run_at_once(
    tasks: int, at_once: int, partitions: int
) -> None:
    assert asked(Spark(at_once), tasks) == (0, tasks, 1, partitions)
    assert asked(Spark(at_once), tasks, most=1) == (0, tasks, 1, 1)


def asked(spark: Any, tasks: int, most: int | None = None) -> tuple[int, ...]:
    """Return what a round of so many tasks asks Spark for."""
    nothing: Any = None
    spark.release.set()
    round_ = SparkRound(spark, nothing, {n: {} for n in range(tasks)}, nothing, nothing, most=most)
    round_.start()
    assert round_.wait(60)
    assert (round_.lost, round_.width) == (None, spark.asked[-1])
    return tuple(spark.asked)


def test_the_spark_tasks_that_run_are_those_that_have_a_connected_task() -> None:
    assert connected_shares(range(8), 4, {0, 1, 7}) == 2
    assert connected_shares([3, 5, 9], 3, {5, 9}) == 2
    assert connected_shares([3, 5], 0, ()) == 0


def test_where_executors_are_requested_as_needed_it_is_unknown_how_many_can_run() -> None:
    spark: Any = Spark(4)
    dynamic: Any = Spark(4, spark__dynamicAllocation__enabled="true")
    assert (room(spark), room(dynamic)) == (4, 0)


def test_workers_are_warmed_for_as_many_spark_tasks_as_will_run_and_no_longer_than_a_stop_is_wished_for() -> (
    None
):
    spark: Any = Spark(4)
    spark_round.warm(spark, 3, wanted=spark.collected.is_set)
    assert (spark.asked, spark.release.is_set()) == ((0, 3, 1, 3), False)
    spark.release.set()


def test_a_spark_that_cannot_be_warmed_is_left_to_the_rounds_which_tell_why() -> None:
    broken: Any = object()
    spark_round.warm(broken, 3)
