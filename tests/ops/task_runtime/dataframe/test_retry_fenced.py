"""Tasks of a frame that were fenced are run again, for as long as nobody else has begun a
generation.
"""

from __future__ import annotations

from collections.abc import Collection

import pytest
from connectctl.ops.task_runtime.dataframe.micro_batch import Late
from connectctl.ops.task_runtime.dataframe.retry_fenced import until_through
from connectctl.ops.task_runtime.dataframe.task import FrameReport
from connectctl.ops.task_runtime.job.scheduler import MAX_FENCED_ROUNDS
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason

Active = Collection[int] | None


class Passes:
    """Gives the reports of one pass after the other, of the tasks that are asked for; the last pass
    stays.
    """

    def __init__(self, *passes: list[FrameReport]) -> None:
        self.passes, self.asked, self.slept = list(passes), list[Active](), 0

    def __call__(self, active: Active) -> list[FrameReport]:
        self.asked.append(active)
        reports = self.passes.pop(0) if len(self.passes) > 1 else self.passes[0]
        return [report for report in reports if active is None or report.task in active]

    def sleep(self, seconds: float) -> None:
        self.slept += 1


def fenced(task: int, records: int = 0, skipped: int = 0, late: int = 0) -> FrameReport:
    return FrameReport(
        task,
        EndReason.FENCED,
        records=records,
        transactions=bool(records),
        skipped=skipped,
        late=late,
    )


def ended(task: int, records: int = 0, skipped: int = 0, late: int = 0) -> FrameReport:
    return FrameReport(
        task,
        EndReason.ENDED,
        records=records,
        transactions=bool(records),
        skipped=skipped,
        late=late,
    )


def test_only_those_that_were_fenced_are_run_again() -> None:
    passes = Passes([ended(0, 5), fenced(1, 3)], [ended(1, 4, skipped=3)])
    reports = until_through(passes, sleep=passes.sleep)
    assert passes.asked == [None, [1]]
    assert [(r.reason, r.records, r.skipped, r.transactions) for r in reports] == [
        ("ended", 5, 0, 1),
        ("ended", 7, 0, 2),
    ]


def test_what_was_committed_before_the_first_pass_is_counted_as_skipped_once() -> None:
    passes = Passes([fenced(0, 3, skipped=2)], [ended(0, 4, skipped=5)])
    assert [report.skipped for report in until_through(passes, sleep=passes.sleep)] == [2]


@pytest.mark.parametrize(("late", "counted"), [(Late.DROP, 2), (None, 3)])
def test_late_rows_are_counted_once(late: Late | None, counted: int) -> None:
    passes = Passes([fenced(0, 1, late=1)], [ended(0, 1, late=2)])
    assert [report.late for report in until_through(passes, late, passes.sleep)] == [counted]


def test_a_task_that_is_fenced_again_and_again_is_another_ones() -> None:
    passes = Passes([fenced(0)])
    (report,) = until_through(passes, sleep=passes.sleep)
    assert report.reason == EndReason.FENCED
    assert len(passes.asked) == MAX_FENCED_ROUNDS


def test_one_that_gets_on_between_two_fences_is_not_given_up() -> None:
    some = [[fenced(0, 1)] for _ in range(3 * MAX_FENCED_ROUNDS)]
    passes = Passes(*some, [ended(0, 1)])
    (report,) = until_through(passes, sleep=passes.sleep)
    assert (report.reason, report.records) == (EndReason.ENDED, 3 * MAX_FENCED_ROUNDS + 1)


@pytest.mark.parametrize("how", [EndReason.STALE, "failed"])
def test_nothing_is_run_again_beside_a_task_that_is_another_ones_or_has_failed(how: str) -> None:
    passes = Passes([FrameReport(0, how), fenced(1)])
    until_through(passes, sleep=passes.sleep)
    assert passes.asked == [None]
