"""A run says once that it does not keep the latency that it promised, and once that it does again."""

from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.task_runtime.job.latency_report import ENOUGH, LatencyReport, worst


def said(p99: float | None, transactions: int = ENOUGH, promise: float = 0.1) -> dict[str, Any]:
    return {"transactions": transactions, "latency": {"promise": promise, "p99": p99, "records": 1, "missed": 0}}


def test_a_promise_that_is_missed_is_said_once_and_once_that_it_is_kept_again() -> None:
    lines: list[str] = []
    report = LatencyReport("c", lines.append)
    for p99 in (0.09, 0.14, 0.15, 0.2, 0.08, 0.07):
        report.update({0: said(p99)})
    assert [line.split(". ")[0] for line in lines] == [
        "latency promise missed: p99 140 ms of task 0 of c, 100 ms promised",
        "latency promise met again: p99 80 ms of task 0 of c, 100 ms promised",
    ]
    assert not any("\n" in line for line in lines)


def test_each_task_is_told_of_by_itself() -> None:
    lines: list[str] = []
    report = LatencyReport("c", lines.append)
    for _ in range(2):
        report.update({0: said(0.2), 1: said(0.01), 2: said(0.3)})
    assert [line[line.index("task") :][:6] for line in lines] == ["task 0", "task 2"]


@pytest.mark.parametrize("message", [said(9.0, ENOUGH - 1), said(None), {"transactions": 100}])
def test_nothing_is_said_of_a_few_transactions_nor_of_what_was_not_measured_or_promised(
    message: dict[str, Any],
) -> None:
    lines: list[str] = []
    LatencyReport("c", lines.append).update({0: message})
    assert lines == []


def test_where_nothing_was_measured_progress_says_nothing() -> None:
    assert worst({}) is None
    assert worst({0: {"transactions": 3}, 1: said(None)}) is None
