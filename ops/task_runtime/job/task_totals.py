"""The totals of the tasks of a run: of ended leases, and of the reports of current leases."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from connectctl.ops.task_runtime.attempt.task_attempt import AT_WORK, FAILED, TaskReport
from connectctl.ops.task_runtime.spi.metrics import Totals
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason
from connectctl.ops.task_runtime.task.attempt_loop import LONGER

MAX_SLOW_ROUNDS = 3
"""The consecutive rounds after which a task fails if it commits no record and exceeds
``max.poll.interval.ms``.
"""
MAX_TIMED_OUT_ROUNDS = 2
"""The consecutive rounds, without a record, after which a task fails if its own transaction timed
out each time. The next round would be as slow.
"""
MOST_ATTEMPTS = 64
"""The most earlier attempts of a task in one lease that are distinguished from new ones."""


@dataclass
class TaskTotals(Totals):
    """The totals of a task in all leases. ``failure`` and ``trace`` are the reason why it does not
    run any more. ``stop_failure`` is the error that it raised while stopping.
    """

    doubts: int = 0
    fenced: int = 0
    state: str = "RUNNING"
    failure: str | None = None
    trace: str | None = None
    idle: bool = False
    quiet: float = 0.0
    fenced_in_a_row: int = 0
    slow_in_a_row: int = 0
    last: str | None = None
    stop_failure: str | None = None

    @property
    def end(self) -> str:
        """The reason why its last lease ended, in capitals like a state; UNASSIGNED without a
        lease.
        """
        if self.failure is not None:
            return "FAILED"
        return self.last.upper() if self.last else "UNASSIGNED"

    def plus(self, report: TaskReport) -> TaskTotals:
        """Return the totals with ``report``."""
        found = replace(
            self,
            meter=replace(self.meter),
            sink=self.sink and replace(self.sink),
            latency=replace(self.latency, counts=dict(self.latency.counts)),
        )
        found.add(report)
        return found

    def add(self, report: TaskReport) -> None:
        self.records += report.records
        self.transactions += report.transactions
        self.aborted += report.aborted
        self.instances += report.instances
        self.doubts += report.doubts
        self.largest = max(self.largest, report.largest)
        if report.smallest is not None:
            self.smallest = min(report.smallest, self.smallest or report.smallest)
        self.idle, self.quiet = report.idle, report.quiet
        self.meter.add(report.meter)
        self.latency.add(report.latency)
        if self.sink is not None:
            self.sink.add(report.sink)
        self.last, self.waited = report.reason, report.waited
        self.unwritten_because = report.unwritten_because
        if report.unwritten is not None:
            self.unwritten = report.unwritten
        self.stop_failure = report.detail if report.reason == EndReason.STOPPED else None
        fenced = report.reason == EndReason.FENCED
        self.fenced += fenced
        if report.reason != AT_WORK or report.records:
            slow = report.reason == EndReason.SLOW
            self.fenced_in_a_row = self.fenced_in_a_row + 1 if fenced and not report.records else 0
            self.slow_in_a_row = self.slow_in_a_row + 1 if slow and not report.records else 0
        outlived = self.fenced_in_a_row >= MAX_TIMED_OUT_ROUNDS and LONGER in str(report.detail)
        outlived |= self.slow_in_a_row >= MAX_SLOW_ROUNDS
        if report.reason == FAILED or outlived:
            self.state, self.failure, self.trace = "FAILED", report.detail, report.trace


@dataclass
class LeaseTotals:
    """The totals of a task during a lease: those ``before`` the lease, and the ``current`` report
    of its newest attempt. Spark may run several attempts one after the other.
    """

    before: TaskTotals
    current: TaskReport | None = None

    def __post_init__(self) -> None:
        self._earlier = self.before
        self._counted: deque[str] = deque(maxlen=MOST_ATTEMPTS)

    def update(self, report: TaskReport) -> TaskTotals:
        """Return the totals with ``report``, which replaces older reports of its attempt."""
        if self.current is not None and report.attempt != self.current.attempt:
            self._earlier = self._earlier.plus(self.current)
            self._counted.append(self.current.attempt)
        self.current = report
        return self._earlier.plus(report)

    def end(self, report: TaskReport) -> TaskTotals:
        """Return the totals with the report that Spark has returned."""
        if not report.attempt:  # of all attempts
            return self.before.plus(report)
        if report.attempt in self._counted:
            report = TaskReport(report.task, report.reason, report.detail, report.trace)
        elif self.current is None or self.current.attempt == report.attempt:
            return self._earlier.plus(report)
        return self.update(report)
