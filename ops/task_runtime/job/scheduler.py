"""Repeats rounds of leases until the end of a job, also after failures of attempts, executors or
tasks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.topics import KnownEnds, furthest
from connectctl.ops.task_runtime.attempt.control_channel import SILENCE
from connectctl.ops.task_runtime.attempt.task_attempt import REPORT, TaskLimits, TaskReport
from connectctl.ops.task_runtime.job.run_request import LEASE
from connectctl.ops.task_runtime.job.task_totals import LeaseTotals, TaskTotals
from connectctl.ops.task_runtime.spi.latency_meter import LatencyMeter
from connectctl.ops.task_runtime.spi.sink_meter import SinkMeter
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.job.job_file import Until

MAX_LOST_ROUNDS = 5
"""The most consecutive rounds without progress that Spark may lose."""
MAX_FENCED_ROUNDS = 5
"""The most consecutive rounds in which a task may be fenced without committing a record. After them
another producer uses its transactional id.
"""
UNASSIGNED_FOR = 60.0
"""Seconds for which idle tasks wait for partitions that none of them has. They are longer than a
session time-out and a rebalance.
"""
PAUSE = 1.0
POLL = 0.2
"""Seconds between two checks of a round."""


class FinalStatus(StrEnum):
    """The final status of a run. TAKEN: another run or worker has its tasks."""

    ENDED = "ended"
    STOPPED = "stopped"
    TAKEN = "taken"
    FAILED = "failed"


class Lease(Protocol):
    """A running round."""

    reports: Any
    lost: str | None

    def start(self) -> None: ...
    def wait(self, seconds: float) -> bool: ...
    def cancel(self) -> None: ...


@dataclass
class JobRun:
    """A run of ``tasks`` (configurations by number). ``lease`` makes a round of them, which lasts
    ``seconds`` at most. A task ends if the driver does not respond for ``silence`` seconds.
    ``stop_requested`` returns True if the run has to end. ``overtaken`` returns the reason if
    another run has taken over the tasks.

    ``regain`` is called with the reason if tasks are stale. It returns None if they were regained,
    or the reason if another run or worker has them. ``changed`` is called between two rounds. It
    returns the tasks that replace the current ones, None if these continue, or the reason if
    another run or worker has them.

    ``on_progress`` is called during a round, ``on_round_end`` after it. ``note`` receives lines for
    the user. ``no_executors`` returns True if no executor can run tasks: a round is cancelled then
    once the run has to end. ``lost_rounds`` counts rounds that Spark lost. ``totals`` include the
    last messages of the tasks, and the meter of a sink if ``is_sink``.
    """

    tasks: Mapping[int, Mapping[str, str]]
    until: Until
    lease: Callable[[Mapping[int, Mapping[str, str]], TaskLimits], Lease]
    stop_requested: Callable[[], bool] = lambda: False
    overtaken: Callable[[], str | None] = lambda: None
    stop: Callable[[], None] = lambda: None
    stop_now: Callable[[], bool] = lambda: False
    no_executors: Callable[[], bool] = lambda: False
    on_progress: Callable[[JobRun], None] = lambda run: None
    on_round_end: Callable[[JobRun], None] = lambda run: None
    regain: Callable[[str], str | None] = lambda why: why
    changed: Callable[[], Mapping[int, Mapping[str, str]] | str | None] = lambda: None
    note: Callable[[str], None] = lambda line: None
    seconds: float = LEASE
    silence: float = SILENCE
    is_sink: bool = False
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    totals: dict[int, TaskTotals] = field(default_factory=dict)
    lost_rounds: int = 0
    reason: str | None = None
    reached: Mapping[str, KnownEnds] = field(default_factory=dict)
    """The known end offsets of the offsets topics, kept between rounds (see ``TaskSpec.reached``).
    """

    def __post_init__(self) -> None:
        self.totals = {
            n: TaskTotals(sink=SinkMeter() if self.is_sink else None) for n in self.tasks
        }
        self._began = self._measured = self.now()
        self._latency: dict[int, LatencyMeter] = {}
        self._leases: dict[int, LeaseTotals] = {}
        self._observed: dict[int, Mapping[str, Any]] = {}
        self._known: set[str] = set()
        self._unassigned_since: float | None = None

    @property
    def waited(self) -> dict[int, float]:
        """The seconds without progress of each task that waits."""
        return {n: total.waited for n, total in self.totals.items() if total.waited}

    @property
    def quiet(self) -> dict[int, float]:
        """The seconds without a record of each task without records."""
        return {n: total.quiet for n, total in self.totals.items() if total.quiet}

    @property
    def unwritten(self) -> dict[int, Collection[str]]:
        """The keys of offsets that tasks could not write to the global offsets topic, by task."""
        return {n: total.unwritten for n, total in self.totals.items() if total.unwritten}

    @property
    def active(self) -> list[int]:
        """The tasks that have neither failed nor ended."""
        totals = ((n, self.totals[n]) for n in self.tasks)
        return [n for n, total in totals if total.failure is None and total.last != EndReason.ENDED]

    @property
    def records(self) -> int:
        """The number of committed records."""
        return sum(total.records for total in self.totals.values())

    @property
    def latency(self) -> LatencyMeter:
        """The measured latency of all tasks."""
        found = LatencyMeter()
        for total in self.totals.values():
            found.add(asdict(total.latency))
        return found

    @property
    def has_enough(self) -> bool:
        """True if the tasks have committed as many records as the job requests."""
        return self.until.records is not None and self.records >= self.until.records

    def observe(self, messages: Mapping[int, Mapping[str, Any]]) -> None:
        """Add the last ``messages`` of running tasks to the totals."""
        for number, message in messages.items():
            if number not in self._leases or message is self._observed.get(number):
                continue
            self._observed[number] = message
            if (report := TaskReport.of_message(message)) is not None:
                self._count(number, self._leases[number].update(report))
                self.reached = furthest(self.reached, report.reached)

    def _count(self, number: int, total: TaskTotals) -> None:
        total.last_latency = self.totals[number].last_latency
        self.totals[number] = total

    def measure_latency(self) -> None:
        """Determine the latency since the last measurement. Do nothing in the first seconds of a
        run.
        """
        first = not self._latency
        if not first and self.now() - self._measured < min(self.seconds, REPORT):
            return
        self._measured = self.now()
        for number, total in self.totals.items():
            total.last_latency = total.latency.since(self._latency.get(number, LatencyMeter()))
            if total.latency.counts:
                self._latency[number] = LatencyMeter()
                self._latency[number].add(asdict(total.latency))

    def leases_end(
        self,
        messages: Mapping[int, Mapping[str, Any]],
        *,
        early: bool = False,
        lost: Collection[int] = (),
    ) -> bool:
        """Return whether the leases of a round have to end, by the ``messages`` of its tasks.

        The reasons are that the lease of a task has ended, all tasks are idle, tasks are ``lost``,
        or ``early`` is True. In addition, all tasks that are not lost must have begun. A task that
        has not begun is not interrupted: its start may take longer than a lease.
        """
        reported = [messages.get(number, {}) for number in self.active if number not in lost]
        idle = self.until.idle is not None and all(each.get("idle") for each in reported)
        over = early or idle or bool(lost) or any(each.get("over") for each in reported)
        return over and all(each.get("begun") for each in reported)

    def run(self) -> FinalStatus:
        """Run the tasks to the end. Raises ``ConnectctlError`` if Spark repeatedly loses rounds."""
        lost = 0
        while self.active:
            terms = self._limits()
            if terms is None:
                return self._outcome(FinalStatus.ENDED)
            if self.stop_requested():
                return self._outcome(FinalStatus.STOPPED)
            if (replaced := self.changed()) is not None:
                if isinstance(replaced, str):
                    self.reason = replaced
                    return self._outcome(FinalStatus.TAKEN)
                self._replace(replaced)
            before = self.records
            round_ = self._round(terms)
            if round_.lost is not None:
                lost = 1 if self.records > before else lost + 1
                self.lost_rounds += 1
                if self.stop_requested():
                    return self._outcome(FinalStatus.STOPPED)
                if lost >= MAX_LOST_ROUNDS:
                    raise ConnectctlError(
                        f"Spark lost {lost} consecutive rounds of tasks",
                        why=round_.lost,
                        next_step="See Spark's log, then run it again: it resumes from the "
                        "committed offsets.",
                        code="spark",
                    )
                self.sleep(PAUSE)
                continue
            if ended := self._add_reports(round_.reports):
                return self._outcome(ended)
            lost = 0 if self.records > before else lost
        return self._outcome(FinalStatus.ENDED)

    def _replace(self, tasks: Mapping[int, Mapping[str, str]]) -> None:
        """Continue with ``tasks`` of a new generation, all of which run. The totals remain."""
        unwritten = set[str]()
        for total in (total for n, total in self.totals.items() if n not in tasks):
            unwritten.update(total.unwritten)
            total.unwritten = ()
        self.tasks = dict(tasks)
        for number in tasks:
            total = self.totals.setdefault(
                number, TaskTotals(sink=SinkMeter() if self.is_sink else None)
            )
            total.state, total.failure, total.trace, total.last = "RUNNING", None, None, None
            total.idle, total.quiet = False, 0.0
        if unwritten:
            first = self.totals[min(tasks)]
            first.unwritten = {*first.unwritten, *unwritten}

    def _round(self, terms: TaskLimits) -> Lease:
        self._leases = {n: LeaseTotals(self.totals[n]) for n in self.active}
        round_ = self.lease({n: self.tasks[n] for n in self.active}, terms)
        round_.start()
        stopped = cancelled = False
        while not round_.wait(POLL):
            if (self.stop_requested() or self._is_over) and not stopped:
                stopped = True
                self.stop()
            if not cancelled and (
                self.stop_now()
                or (self.no_executors() and (self.stop_requested() or self._limits() is None))
            ):
                cancelled = True
                round_.cancel()
            self.on_progress(self)
        return round_

    def _add_reports(self, reports: list[TaskReport]) -> FinalStatus | None:
        for report in reports:
            self._count(report.task, self._leases[report.task].end(report))
            self.reached = furthest(self.reached, report.reached)
            self._known.update(report.known)
            for line in report.lines:
                self.note(f"task {report.task}: {line}")
            if report.reason == EndReason.SLOW:
                self.note(f"warning: task {report.task}: {report.detail}")
            if report.reason == EndReason.STALE:
                self.reason = report.detail
        self.on_round_end(self)
        if self.reason is not None:
            self.reason = self.regain(self.reason)
            if self.reason is not None:
                return FinalStatus.STOPPED if self.stop_requested() else FinalStatus.TAKEN
            for total in self.totals.values():
                total.fenced_in_a_row = 0
            return None
        for number, total in self.totals.items():
            if total.fenced_in_a_row >= MAX_FENCED_ROUNDS:
                self.reason = (
                    f"task {number} is fenced repeatedly: another producer uses its "
                    "transactional id"
                )
                return FinalStatus.TAKEN
        active = self.active
        if active and any(r.reason == EndReason.FENCED for r in reports):
            self.sleep(PAUSE)
        if active and self.until.idle is not None and all(self.totals[n].idle for n in active):
            return None if self._waits_for_partitions(reports) else FinalStatus.ENDED
        return None

    def _waits_for_partitions(self, reports: Iterable[TaskReport]) -> bool:
        """Return whether idle tasks have to continue because a rebalance has not yet assigned a
        partition. A task had the partition, no task has it now, and it may have records.

        A failed task keeps its partitions. The wait is limited for partitions that were deleted or
        are assigned to another member of the group.
        """
        missing = self._known.difference(*(report.assigned for report in reports))
        if not missing or any(total.failure for total in self.totals.values()):
            self._unassigned_since = None
            return False
        if self._unassigned_since is None:
            self._unassigned_since = self.now()
        if self.now() - self._unassigned_since < UNASSIGNED_FOR:
            for total in self.totals.values():
                total.quiet = 0.0
            return True
        subset = ", ".join(sorted(missing)[:3]) + (", …" if len(missing) > 3 else "")
        self.note(
            f"No task of this run has had {subset} for {UNASSIGNED_FOR:g} s: another member of the "
            "group has them, or they are deleted. It is unknown whether they were read to their "
            "end."
        )
        return False

    @property
    def _is_over(self) -> bool:
        """True if the duration of the job has passed. It also ends tasks that wait for an offset:
        their lease does not end.
        """
        return self.until.duration is not None and self.now() - self._began >= self.until.duration

    def _limits(self) -> TaskLimits | None:
        """Return the limits of the next leases; None if the job is done."""
        seconds, records = self.seconds, None
        if self.until.duration is not None:
            seconds = min(seconds, self.until.duration - (self.now() - self._began))
        if self.until.records is not None:
            records = self.until.records - self.records
        if seconds <= 0 or (records is not None and records <= 0):
            return None
        return TaskLimits(
            seconds, self.until.idle, records, self.silence, min(REPORT, self.seconds)
        )

    def _outcome(self, ended: FinalStatus) -> FinalStatus:
        if ended is FinalStatus.STOPPED and (why := self.overtaken()):
            self.reason = why
            return FinalStatus.TAKEN
        return FinalStatus.FAILED if any(total.failure for total in self.totals.values()) else ended
