"""Rounds of leases: what ends a run, what only costs time, and who is to blame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.attempt.task_attempt import TaskLimits, TaskReport
from connectctl.ops.task_runtime.job.job_file import Until
from connectctl.ops.task_runtime.job.scheduler import (
    MAX_FENCED_ROUNDS,
    MAX_LOST_ROUNDS,
    UNASSIGNED_FOR,
    FinalStatus,
    JobRun,
)
from connectctl.ops.task_runtime.job.task_totals import MAX_SLOW_ROUNDS, TaskTotals
from connectctl.ops.task_runtime.task.attempt_loop import REMEDIES

Answer = Sequence[TaskReport] | str


@dataclass
class Lease:
    answer: Answer
    waits: int = 0
    cancelled: bool = False
    reports: Sequence[TaskReport] = ()
    lost: str | None = None

    def start(self) -> None:
        if isinstance(self.answer, str):
            self.lost = self.answer
        else:
            self.reports = self.answer

    def wait(self, seconds: float) -> bool:
        self.waits -= 1
        return self.waits < 0 or self.cancelled

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class Spark:
    """Gives the answers in turn, the last one again and again; time goes on by the length of each
    lease.
    """

    answers: list[Answer]
    time: float = 0.0
    waits: int = 0
    asked: list[tuple[list[int], TaskLimits]] = field(default_factory=list)
    leases: list[Lease] = field(default_factory=list)

    def lease(self, tasks: Mapping[int, Mapping[str, str]], terms: TaskLimits) -> Lease:
        self.asked.append((list(tasks), terms))
        self.time += terms.seconds
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.leases.append(Lease(answer, self.waits))
        return self.leases[-1]

    # frozen
    def run(self, count: int = 1, until: Until = Until(), **more: object) -> JobRun:  # noqa: B008
        return JobRun(
            {n: {} for n in range(count)},
            until,
            self.lease,
            now=lambda: self.time,
            sleep=lambda seconds: None,
            **more,  # type: ignore[arg-type]
        )


def report(
    task: int = 0,
    how: str = "stopped",
    records: int = 0,
    *,
    idle: bool = False,
    why: str | None = None,
) -> TaskReport:
    return TaskReport(task, how, why, records=records, transactions=int(records > 0), idle=idle)


def once() -> Callable[[], bool]:
    answers = [False]
    return lambda: bool(answers.pop()) if answers else True


def test_leases_end_with_the_first_of_them_unless_a_task_has_not_begun() -> None:
    run = Spark([[report()]]).run(2)
    over, begun, waits = (
        {"begun": True, "over": True},
        {"begun": True, "over": False},
        {"begun": False, "over": False},
    )
    assert run.leases_end({0: over, 1: begun})
    assert not run.leases_end({0: begun, 1: begun})
    assert not run.leases_end({0: over, 1: waits})
    assert not run.leases_end({0: over})  # nothing was heard of the other
    run.totals[1].failure = "gone"
    assert run.leases_end({0: over})


def test_a_source_that_has_ended_ends_the_run() -> None:
    run = Spark([[report(how="stopped", records=5)], [report(how="ended", records=2)]]).run()
    assert (run.run(), run.records) == (FinalStatus.ENDED, 7)


def test_tasks_that_ended_are_not_leased_again() -> None:
    spark = Spark([[report(0, "ended"), report(1)], [report(1, "ended")]])
    assert spark.run(2).run() is FinalStatus.ENDED
    assert [tasks for tasks, _ in spark.asked] == [[0, 1], [1]]


def test_tasks_that_were_stale_and_are_ours_again_are_leased_again() -> None:
    spark = Spark(
        [
            [report(0, "stale", why="newer configs"), report(1)],
            [report(0, "ended"), report(1, "ended")],
        ]
    )
    asked: list[str] = []
    run = spark.run(2, regain=asked.append)
    assert (run.run(), run.reason, asked) == (FinalStatus.ENDED, None, ["newer configs"])
    assert [tasks for tasks, _ in spark.asked] == [[0, 1], [0, 1]]


def test_tasks_that_are_another_s_end_the_run_with_why() -> None:
    run = Spark([[report(how="stale", why="newer configs")]]).run(
        regain=lambda why: f"{why}, of a run that lives"
    )
    assert (run.run(), run.reason) == (FinalStatus.TAKEN, "newer configs, of a run that lives")


def test_a_run_is_idle_once_all_its_tasks_are_in_the_same_round() -> None:
    spark = Spark(
        [[report(0, idle=True), report(1, records=1)], [report(0, idle=True), report(1, idle=True)]]
    )
    assert spark.run(2, Until(idle=1.0)).run() is FinalStatus.ENDED
    assert len(spark.asked) == 2


def member(
    task: int, *assigned: str, known: tuple[str, ...] = (), failed: bool = False
) -> TaskReport:
    """An idle one's report, with the partitions that it has and that it had."""
    return replace(
        report(
            task, "failed" if failed else "stopped", idle=not failed, why="bang" if failed else None
        ),
        assigned=assigned,
        known=known or assigned,
    )


def test_idle_tasks_go_on_while_a_partition_is_on_its_way_from_one_to_the_other() -> None:
    on_its_way: Answer = [member(0, "in-0", known=("in-0", "in-1")), member(1)]
    spark = Spark([on_its_way, [member(0, "in-0"), member(1, "in-1")]])
    run = spark.run(2, Until(idle=1.0))
    assert run.run() is FinalStatus.ENDED
    assert len(spark.asked) == 2


def test_a_partition_that_stays_another_members_is_not_waited_for_for_ever_and_it_is_said() -> None:
    lines: list[str] = []
    gone: Answer = [member(0, "in-0", known=("in-0", "in-1")), member(1)]
    spark = Spark([gone])
    run = spark.run(2, Until(idle=1.0), note=lines.append, seconds=30.0)
    assert run.run() is FinalStatus.ENDED
    assert spark.time > UNASSIGNED_FOR
    assert "No task of this run has had in-1 for 60 s" in "".join(lines)


def test_the_partitions_of_a_task_that_failed_are_not_waited_for() -> None:
    spark = Spark([[member(0, "in-0"), member(1, known=("in-1",), failed=True)]])
    assert spark.run(2, Until(idle=1.0)).run() is FinalStatus.FAILED
    assert len(spark.asked) == 1


def test_records_are_counted_over_rounds_and_leases_are_told_what_is_left() -> None:
    spark = Spark([[report(records=6)]])
    assert spark.run(until=Until(records=10)).run() is FinalStatus.ENDED
    assert [terms.records for _, terms in spark.asked] == [10, 4]


def test_the_last_lease_is_as_short_as_what_is_left_of_the_duration() -> None:
    spark = Spark([[report()]])
    assert spark.run(until=Until(duration=70.0), seconds=30.0).run() is FinalStatus.ENDED
    assert [terms.seconds for _, terms in spark.asked] == [30.0, 30.0, 10.0]


def test_a_lost_round_is_run_again_and_progress_forgives_those_before() -> None:
    answers: list[Answer] = ["killed"] * (MAX_LOST_ROUNDS - 1) + [[report(records=1)]]
    answers += ["killed"] * (MAX_LOST_ROUNDS - 1) + [[report(how="ended")]]
    run = Spark(answers).run()
    assert (run.run(), run.lost_rounds) == (FinalStatus.ENDED, 2 * (MAX_LOST_ROUNDS - 1))


def test_rounds_that_are_lost_again_and_again_end_it_with_sparks_words() -> None:
    with pytest.raises(ConnectctlError, match="no such executor"):
        Spark(["no such executor"]).run().run()


def test_a_task_that_failed_leaves_the_others_at_work_and_fails_the_run() -> None:
    spark = Spark([[report(0, "failed", why="bang"), report(1)], [report(1, "ended", 3)]])
    run = spark.run(2)
    assert run.run() is FinalStatus.FAILED
    assert (run.totals[0].failure, run.totals[0].state, run.records) == ("bang", "FAILED", 3)
    assert spark.asked[1][0] == [1]


def test_a_stale_task_means_that_another_run_has_them_all() -> None:
    run = Spark([[report(0, "stale", why="newer"), report(1)]]).run(2)
    assert (run.run(), run.reason) == (FinalStatus.TAKEN, "newer")


def test_a_task_fenced_by_an_attempt_of_its_own_goes_on_in_the_next_round() -> None:
    run = Spark(
        [
            [report(how="fenced")],
            [report(how="fenced", records=1)],
            [report(how="ended", records=1)],
        ]
    ).run()
    assert (run.run(), run.totals[0].fenced) == (FinalStatus.ENDED, 2)


def test_a_task_fenced_again_and_again_is_anothers() -> None:
    spark = Spark([[report(how="fenced")]])
    run = spark.run()
    assert (run.run(), len(spark.asked)) == (FinalStatus.TAKEN, MAX_FENCED_ROUNDS)
    assert "fenced repeatedly" in str(run.reason)


def test_a_task_whose_transactions_outlive_their_time_fails_with_what_can_be_done_and_is_not_taken_for_anothers() -> (
    None
):
    spark = Spark([[report(how="fenced", why=f"its epoch is old. {REMEDIES}")]])
    run = spark.run()
    assert (run.run(), len(spark.asked), run.reason) == (FinalStatus.FAILED, 2, None)
    assert (run.totals[0].end, REMEDIES in str(run.totals[0].failure)) == ("FAILED", True)


def test_one_slow_transaction_is_no_failure() -> None:
    slow = report(how="fenced", why=f"its epoch is old. {REMEDIES}")
    run = Spark(
        [[slow], [report(how="stopped", records=1)], [slow], [report(how="ended", records=1)]]
    ).run()
    assert (run.run(), run.totals[0].failure) == (FinalStatus.ENDED, None)


def test_a_wish_to_stop_is_passed_on_once_and_ends_it_after_the_round() -> None:
    told: list[int] = []
    spark = Spark([[report(records=1)]], waits=5)
    run = spark.run(stop_requested=once(), stop=lambda: told.append(1))
    assert (run.run(), told, len(spark.asked)) == (FinalStatus.STOPPED, [1], 1)
    assert not spark.leases[0].cancelled


def test_a_second_wish_cancels_the_round() -> None:
    spark = Spark(["cancelled"], waits=1000)
    run = spark.run(stop_requested=once(), stop_now=lambda: True)
    assert (run.run(), spark.leases[0].cancelled) == (FinalStatus.STOPPED, True)


@pytest.mark.parametrize(
    ("wanted", "until", "expected"),
    [
        (once(), Until(), FinalStatus.STOPPED),
        (lambda: False, Until(duration=20.0), FinalStatus.ENDED),
    ],
)
def test_where_nobody_runs_tasks_the_end_of_a_round_is_not_waited_for(
    wanted: Callable[[], bool], until: Until, expected: FinalStatus
) -> None:
    spark = Spark(["cancelled"], waits=1000)
    run = spark.run(until=until, stop_requested=wanted, no_executors=lambda: True)
    assert (run.run(), spark.leases[0].cancelled, len(spark.leases)) == (expected, True, 1)


def test_a_round_without_anybody_waits_for_somebody_as_long_as_no_end_is_wanted() -> None:
    spark = Spark([[report(how="ended")]], waits=1000)
    assert (spark.run(no_executors=lambda: True).run(), spark.leases[0].cancelled) == (
        FinalStatus.ENDED,
        False,
    )


def test_a_connector_without_tasks_has_nothing_to_do() -> None:
    assert Spark([[]]).run(0).run() is FinalStatus.ENDED


def test_sizes_of_transactions_are_kept_over_rounds() -> None:
    run = Spark(
        [
            [TaskReport(0, "stopped", smallest=3, largest=9)],
            [TaskReport(0, "ended", smallest=5, largest=20)],
        ]
    ).run()
    run.run()
    assert (run.totals[0].smallest, run.totals[0].largest) == (3, 20)


def test_changed_tasks_replace_all_others_behind_a_round_and_the_totals_stay() -> None:
    spark = Spark(
        [
            [report(0, records=5), report(1, "failed", why="gone")],
            [report(n, "ended") for n in range(3)],
        ]
    )
    answers: list[dict[int, dict[str, str]] | None] = [
        {n: {"share": str(n)} for n in range(3)},
        None,
    ]
    run = spark.run(2, changed=lambda: answers.pop() if answers else None)
    assert (run.run(), run.records) == (FinalStatus.ENDED, 5)
    assert [tasks for tasks, _ in spark.asked] == [[0, 1], [0, 1, 2]]
    assert [(n, total.state) for n, total in run.totals.items()] == [
        (n, "RUNNING") for n in range(3)
    ]


def test_changed_tasks_that_are_fewer_leave_no_offsets_unwritten_and_wait_for_none_that_are_gone() -> (
    None
):
    first = [report(0), replace(report(1), unwritten=("k",))]
    answers: list[dict[int, dict[str, str]] | None] = [{0: {}}, None]
    spark = Spark([first, [report(0)], [report(0, "ended")]])
    run = spark.run(2, changed=lambda: answers.pop() if answers else None)
    seen: list[object] = []

    def lease(tasks: Mapping[int, Mapping[str, str]], limits: TaskLimits) -> Lease:
        seen.append((run.active, run.unwritten))
        return spark.lease(tasks, limits)

    run.lease = lease
    assert run.run() is FinalStatus.ENDED
    assert [tasks for tasks, _ in spark.asked] == [[0, 1], [0], [0]]
    assert seen == [([0, 1], {}), ([0], {0: {"k"}}), ([0], {})]


def test_tasks_that_others_replaced_are_not_replaced_again() -> None:
    run = Spark([[report(0)]]).run(changed=lambda: "a new set of task configs")
    assert (run.run(), run.reason) == (FinalStatus.TAKEN, "a new set of task configs")


def test_leases_end_early_for_changed_tasks_once_all_have_begun() -> None:
    run = Spark([[report()]]).run(2)
    begun = {"begun": True}
    assert run.leases_end({0: begun, 1: begun}, early=True)
    assert not run.leases_end({0: begun, 1: {"begun": False}}, early=True)


def test_leases_end_for_tasks_that_run_nowhere_once_all_others_have_begun() -> None:
    run = Spark([[report()]]).run(3)
    begun = {"begun": True}
    assert run.leases_end({0: begun, 1: begun}, lost=[2])
    assert not run.leases_end({0: begun, 1: {"begun": False}}, lost=[2])
    assert not run.leases_end({0: begun, 1: begun, 2: begun})


def message(task: int, attempt: str, how: str = "running", **more: Any) -> dict[str, Any]:
    return {"task": task, "attempt": attempt, "reason": how, "begun": True, **more}


def heard(answer: Answer, *messages: dict[str, Any], count: int = 1) -> JobRun:
    """Return a run that has heard ``messages`` in its first round, which ``answer`` ended."""
    left = list(messages)
    spark = Spark([answer, [report(n, "ended") for n in range(count)]], waits=len(left))
    run = spark.run(count)
    run.on_progress = lambda run: run.observe({m["task"]: m for m in left[:1] if left.pop(0)})
    run.run()
    return run


def test_what_a_task_reports_counts_while_it_runs_and_once_when_it_ends() -> None:
    spark = Spark([[replace(report(0, "ended", records=9), attempt="a")]], waits=2)
    run = spark.run(until=Until(records=8))
    seen: list[tuple[int, bool]] = []
    counts = [3, 8]

    def observe(run: JobRun) -> None:
        run.observe({0: message(0, "a", records=counts.pop(0))})
        seen.append((run.records, run.has_enough))

    run.on_progress = observe
    assert run.run() is FinalStatus.ENDED
    assert (seen, run.records) == ([(3, False), (8, True)], 9)


def test_a_task_that_failed_is_failed_at_once_and_the_others_are_not_cut_short() -> None:
    run = heard(
        [replace(report(0, "failed", why="bang"), attempt="a"), report(1, "ended")],
        message(0, "a", "failed", detail="bang", trace="at x", over=True),
        count=2,
    )
    assert (run.totals[0].failure, run.active) == ("bang", [])
    spark = Spark([[report(1, "ended")]], waits=1)
    run = spark.run(2)
    run.on_progress = lambda run: run.observe({0: message(0, "a", "failed", detail="bang")})
    seen: list[bool] = []
    run.on_round_end = lambda run: seen.append(
        run.leases_end({0: message(0, "a", "failed", over=True), 1: message(1, "b")})
    )
    assert run.run() is FinalStatus.FAILED
    assert (run.totals[0].failure, run.totals[0].state, seen) == ("bang", "FAILED", [False])


def test_attempts_that_were_lost_count_with_their_last_report() -> None:
    ended = [replace(report(0, "ended", records=4), attempt="b")]
    run = heard(
        ended,
        message(0, "a", records=3, transactions=2),
        message(0, "a", records=5, transactions=3),
        message(0, "b", records=1, transactions=1),
    )
    assert (run.records, run.totals[0].transactions) == (9, 4)


def test_an_attempt_that_ends_for_the_newer_one_is_counted_once() -> None:
    fenced = [replace(report(0, "fenced", records=5), attempt="a")]
    run = heard(fenced, message(0, "a", records=5), message(0, "b", records=1))
    assert (run.records, run.totals[0].fenced) == (6, 1)


def test_a_round_that_spark_lost_counts_with_its_last_reports_and_is_progress() -> None:
    answers: list[Answer] = ["killed"] * MAX_LOST_ROUNDS + [[report(how="ended", records=1)]]
    spark = Spark(answers, waits=1)
    run = spark.run()
    run.on_progress = lambda run: run.observe(
        {0: message(0, f"attempt {len(spark.asked)}", records=2)}
    )
    assert (run.run(), run.lost_rounds) == (FinalStatus.ENDED, MAX_LOST_ROUNDS)
    assert run.records == 2 * MAX_LOST_ROUNDS + 1


def test_a_lost_attempt_leaves_the_count_of_fences_as_it_was() -> None:
    total = TaskTotals(fenced_in_a_row=2)
    assert total.plus(report(how="running")).fenced_in_a_row == 2
    assert total.plus(report(how="running", records=1)).fenced_in_a_row == 0


def slow(records: int = 0) -> TaskReport:
    return report(how="slow", records=records, why="put() took 12.0 s")


def test_a_task_that_its_group_does_not_wait_for_is_failed_by_the_slow_call_and_not_taken_for_fenced() -> (
    None
):
    notes: list[str] = []
    run = Spark([[slow()]]).run(note=notes.append)
    assert (run.run(), run.totals[0].failure) == (FinalStatus.FAILED, "put() took 12.0 s")
    assert notes == ["warning: task 0: put() took 12.0 s"] * MAX_SLOW_ROUNDS


def test_a_task_that_is_slow_now_and_then_continues() -> None:
    answers: list[Answer] = [
        [slow()],
        [slow()],
        [slow(records=5)],
        [slow()],
        [slow()],
        [report(how="ended")],
    ]
    assert Spark(answers).run().run() is FinalStatus.ENDED


def test_leases_end_once_all_tasks_are_idle_and_the_next_ones_know_for_how_long() -> None:
    spark = Spark(
        [[replace(report(0), quiet=5.0), replace(report(1), quiet=4.0)], [report(0, idle=True)]]
    )
    run = spark.run(2, Until(idle=12.0))
    quiet: list[dict[int, float]] = []
    run.on_round_end = lambda run: quiet.append(run.quiet)
    idle, busy = {"begun": True, "idle": True}, {"begun": True, "idle": False}
    assert run.leases_end({0: idle, 1: idle})
    assert not run.leases_end({0: idle, 1: busy})
    assert not run.leases_end({0: idle})
    assert not Spark([]).run(2).leases_end({0: idle, 1: idle})
    run.totals[1].failure = "gone"
    assert run.leases_end({0: idle})
