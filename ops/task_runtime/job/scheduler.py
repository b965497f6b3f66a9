"""A run of leases until a job's end: round after round, whatever becomes of single attempts,
executors or tasks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.topics import KnownEnds, furthest
from connectctl.ops.task_runtime.attempt.task_attempt import FAILED, TaskLimits, TaskReport
from connectctl.ops.task_runtime.job.run_request import LEASE
from connectctl.ops.task_runtime.spi.latency_meter import LatencyMeter
from connectctl.ops.task_runtime.spi.metrics import TaskMeter
from connectctl.ops.task_runtime.spi.sink_meter import SinkMeter
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason
from connectctl.ops.task_runtime.task.attempt_loop import LONGER

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.job.job_file import Until

MAX_LOST_ROUNDS = 5
"""Rounds without any progress that Spark may lose one after the other."""
MAX_FENCED_ROUNDS = 5
"""Rounds in which a task may be fenced one after the other without a record of its own: then
somebody else has it.
"""
MAX_SLOW_ROUNDS = 3
"""Rounds one after the other in which a task, without a record, does not poll for as long as its
group lets it.
"""
MAX_TIMED_OUT_ROUNDS = 2
"""Rounds in which nothing but the time-out of its own transaction may end a task: the next one
would be as slow.
"""
UNASSIGNED_FOR = 60.0
"""Seconds that idle tasks wait for partitions which none of them has: longer than a session
time-out and a rebalance.
"""
PAUSE = 1.0
POLL = 0.2
"""Seconds between two looks at a round."""


class FinalStatus(StrEnum):
    """How a run came to its end. TAKEN: another run or worker has its tasks."""

    ENDED = "ended"
    STOPPED = "stopped"
    TAKEN = "taken"
    FAILED = "failed"


class Lease(Protocol):
    """A round that is under way."""

    reports: Any
    lost: str | None

    def start(self) -> None: ...
    def wait(self, seconds: float) -> bool: ...
    def cancel(self) -> None: ...


@dataclass
class TaskTotals:
    """What a task did in all rounds so far. ``failure`` and ``trace`` say why it is no longer run,
    ``stop_failure`` is what it raised while stopping.
    """

    records: int = 0
    transactions: int = 0
    aborted: int = 0
    instances: int = 0
    smallest: int | None = None
    largest: int = 0
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
    waited: float = 0.0
    unwritten: Collection[str] = ()
    unwritten_because: str | None = None
    meter: TaskMeter = field(default_factory=TaskMeter)
    sink: SinkMeter | None = None
    latency: LatencyMeter = field(default_factory=LatencyMeter)
    last_latency: LatencyMeter = field(default_factory=LatencyMeter)
    """That of its last lease."""

    @property
    def end(self) -> str:
        """How its last lease ended, in capitals as states are; UNASSIGNED where it had none."""
        if self.failure is not None:
            return "FAILED"
        return self.last.upper() if self.last else "UNASSIGNED"

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
        self.last_latency = LatencyMeter()
        self.last_latency.add(report.latency)
        if self.sink is not None:
            self.sink.add(report.sink)
        self.last, self.waited = report.reason, report.waited
        self.unwritten, self.unwritten_because = report.unwritten, report.unwritten_because
        self.stop_failure = report.detail if report.reason == EndReason.STOPPED else None
        fenced = report.reason == EndReason.FENCED
        self.fenced += fenced
        self.fenced_in_a_row = self.fenced_in_a_row + 1 if fenced and not report.records else 0
        slow = report.reason == EndReason.SLOW
        self.slow_in_a_row = self.slow_in_a_row + 1 if slow and not report.records else 0
        outlived = self.fenced_in_a_row >= MAX_TIMED_OUT_ROUNDS and LONGER in str(report.detail)
        outlived |= self.slow_in_a_row >= MAX_SLOW_ROUNDS
        if report.reason == FAILED or outlived:
            self.state, self.failure, self.trace = "FAILED", report.detail, report.trace


@dataclass
class JobRun:
    """A run of ``tasks`` (configurations by number). ``lease`` makes a round of them;
    ``stop_requested`` says whether the run is to end, ``overtaken`` that it ends because another
    run took the tasks over.

    ``regain`` is asked where tasks are stale, with why; it gives why they are another's, None where
    they are ours again. ``changed`` returns tasks that replace these, between two rounds; why they
    are another's; None where they continue. ``on_progress`` is called during a round,
    ``on_round_end`` after it; ``note`` gets lines for people. ``no_executors`` says that no
    executor is there to run tasks: then no end of a round is waited for. ``lost_rounds`` counts
    rounds that Spark lost. Totals have a sink's meter where it ``is_sink``.
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
    is_sink: bool = False
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    totals: dict[int, TaskTotals] = field(default_factory=dict)
    lost_rounds: int = 0
    reason: str | None = None
    reached: Mapping[str, KnownEnds] = field(default_factory=dict)
    """How far the offsets topics are known to reach, from one round to the next: see
    ``TaskSpec.reached``.
    """

    def __post_init__(self) -> None:
        self.totals = {
            n: TaskTotals(sink=SinkMeter() if self.is_sink else None) for n in self.tasks
        }
        self._began = self.now()
        self._known: set[str] = set()
        self._unassigned_since: float | None = None

    @property
    def waited(self) -> dict[int, float]:
        """For how many seconds tasks got no further when their last lease ended."""
        return {n: total.waited for n, total in self.totals.items() if total.waited}

    @property
    def quiet(self) -> dict[int, float]:
        """For how many seconds tasks had no record when their last lease ended."""
        return {n: total.quiet for n, total in self.totals.items() if total.quiet}

    @property
    def unwritten(self) -> dict[int, Collection[str]]:
        """The keys of offsets that tasks could not write to the global offsets topic when their
        last lease ended.
        """
        return {n: total.unwritten for n, total in self.totals.items() if total.unwritten}

    @property
    def active(self) -> list[int]:
        """The tasks that are not over."""
        totals = ((n, self.totals[n]) for n in self.tasks)
        return [n for n, total in totals if total.failure is None and total.last != EndReason.ENDED]

    @property
    def records(self) -> int:
        """How many records were committed in rounds that are over."""
        return sum(total.records for total in self.totals.values())

    @property
    def latency(self) -> LatencyMeter:
        """What was measured of all tasks in rounds that are over."""
        found = LatencyMeter()
        for total in self.totals.values():
            found.add(asdict(total.latency))
        return found

    def has_enough(self, messages: Iterable[Mapping[str, Any]]) -> bool:
        """Whether the tasks have committed all records that are asked for, by what they say of the
        round that is on.
        """
        so_far = self.records + sum(each.get("records", 0) for each in messages)
        return self.until.records is not None and so_far >= self.until.records

    def leases_end(
        self, messages: Mapping[int, Mapping[str, Any]], *, replaced: bool = False
    ) -> bool:
        """Whether a task's lease is over, all are idle, or tasks are to be ``replaced``, and all
        others have begun theirs, by what they say of the round that is on. A task that has not
        begun is not cut short: to begin may take it longer than a lease.
        """
        reported = [messages.get(number, {}) for number in self.active]
        idle = self.until.idle is not None and all(each.get("idle") for each in reported)
        over = replaced or idle or any(each.get("over") for each in reported)
        return over and all(each.get("begun") for each in reported)

    def run(self) -> FinalStatus:
        """Run to the end. Raises ``ConnectctlError`` where Spark gives no round any more."""
        active = dict(self.tasks)
        lost = 0
        while active:
            terms = self._limits()
            if terms is None:
                return self._outcome(FinalStatus.ENDED)
            if self.stop_requested():
                return self._outcome(FinalStatus.STOPPED)
            if (replaced := self.changed()) is not None:
                if isinstance(replaced, str):
                    self.reason = replaced
                    return self._outcome(FinalStatus.TAKEN)
                active = self._replace(replaced)
            before = self.records
            round_ = self._round(active, terms)
            if round_.lost is not None:
                lost += 1
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
            if ended := self._add_reports(round_.reports, active):
                return self._outcome(ended)
            lost = 0 if self.records > before else lost
        return self._outcome(FinalStatus.ENDED)

    def _replace(self, tasks: Mapping[int, Mapping[str, str]]) -> dict[int, Mapping[str, str]]:
        """Continue with ``tasks``, all of which run, as those of a new generation do; the totals
        stay.
        """
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
        return dict(tasks)

    def _round(self, active: Mapping[int, Mapping[str, str]], terms: TaskLimits) -> Lease:
        round_ = self.lease(active, terms)
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

    def _add_reports(
        self, reports: list[TaskReport], active: dict[int, Mapping[str, str]]
    ) -> FinalStatus | None:
        for report in reports:
            total = self.totals[report.task]
            total.add(report)
            self.reached = furthest(self.reached, report.reached)
            self._known.update(report.known)
            for line in report.lines:
                self.note(f"task {report.task}: {line}")
            if report.reason == EndReason.SLOW:
                self.note(f"warning: task {report.task}: {report.detail}")
            if report.reason == EndReason.ENDED or total.failure is not None:
                del active[report.task]
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
        if active and any(r.reason == EndReason.FENCED for r in reports):
            self.sleep(PAUSE)
        if active and self.until.idle is not None and all(self.totals[n].idle for n in active):
            return None if self._waits_for_partitions(reports) else FinalStatus.ENDED
        return None

    def _waits_for_partitions(self, reports: Iterable[TaskReport]) -> bool:
        """Whether idle tasks have to continue, because a rebalance has a partition on its way: it
        was a task's, is nobody's, and may have records. A task that failed keeps its own; what is
        another group member's, or gone, is not waited for long.
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
        some = ", ".join(sorted(missing)[:3]) + (", …" if len(missing) > 3 else "")
        self.note(
            f"No task of this run has had {some} for {UNASSIGNED_FOR:g} s: another member of the "
            "group has them, or they are deleted. It is unknown whether they were read to their "
            "end."
        )
        return False

    @property
    def _is_over(self) -> bool:
        """Whether the duration of the job is over: tasks that wait for an offset have no lease that
        ends.
        """
        return self.until.duration is not None and self.now() - self._began >= self.until.duration

    def _limits(self) -> TaskLimits | None:
        """What the next leases are to keep to; None where the job is done."""
        seconds, records = self.seconds, None
        if self.until.duration is not None:
            seconds = min(seconds, self.until.duration - (self.now() - self._began))
        if self.until.records is not None:
            records = self.until.records - self.records
        if seconds <= 0 or (records is not None and records <= 0):
            return None
        return TaskLimits(seconds, self.until.idle, records)

    def _outcome(self, ended: FinalStatus) -> FinalStatus:
        if ended is FinalStatus.STOPPED and (why := self.overtaken()):
            self.reason = why
            return FinalStatus.TAKEN
        return FinalStatus.FAILED if any(total.failure for total in self.totals.values()) else ended
