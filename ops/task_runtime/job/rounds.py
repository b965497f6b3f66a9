"""Runs the rounds of the tasks of a run. During and between rounds the driver monitors the tasks
and reports their progress.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from connectctl.ops.core.finding import counted
from connectctl.ops.task_runtime.attempt.control_channel import SILENCE, DriverChannel
from connectctl.ops.task_runtime.attempt.shared_clients import GLOBAL, PRIMARY
from connectctl.ops.task_runtime.attempt.task_attempt import REPORT, TaskLimits
from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
from connectctl.ops.task_runtime.job import status_topic as words
from connectctl.ops.task_runtime.job.early_ends import EarlyEnds
from connectctl.ops.task_runtime.job.executor_monitor import executor_monitor
from connectctl.ops.task_runtime.job.group_members import LeaseGap
from connectctl.ops.task_runtime.job.prepare import offsets_topic
from connectctl.ops.task_runtime.job.scheduler import JobRun, Lease
from connectctl.ops.task_runtime.job.spark_round import (
    SparkRound,
    connected_shares,
    is_dynamic,
    room,
)
from connectctl.ops.task_runtime.job.stale_run import RegainTasks, TakenOver, replace_tasks
from connectctl.ops.task_runtime.job.stall_report import StallReport
from connectctl.ops.task_runtime.job.task_changes import TaskChanges
from connectctl.ops.task_runtime.spi.metrics import metrics
from connectctl.ops.task_runtime.spi.sink import SinkConnector
from connectctl.ops.task_runtime.task.committed_offsets import current_ends
from connectctl.ops.task_runtime.task.generation_check import GenerationCheck
from connectctl.ops.task_runtime.task.progress import heartbeat

if TYPE_CHECKING:
    from connectctl.ops.kafka.topics import KnownEnds
    from connectctl.ops.task_runtime.dataframe.read import JobDataFrame
    from connectctl.ops.task_runtime.job.config_topic_records import Generation
    from connectctl.ops.task_runtime.job.environment import JobEnvironment
    from connectctl.ops.task_runtime.job.status_topic import StatusWriter


@dataclass(frozen=True)
class StartedTasks:
    """The tasks that run. ``failure`` is the connector's failure if its previous tasks run."""

    generation: Generation
    tasks: list[dict[str, str]]
    failure: str | None


class Rounds:
    """The rounds of the ``started`` tasks of a ``run``. ``frame`` is that of a DataFrame source."""

    def __init__(
        self,
        run: JobEnvironment,
        started: StartedTasks,
        board: DriverChannel,
        statuses: StatusWriter,
        frame: JobDataFrame | None,
    ):
        self._run, self._started, self._board, self._statuses, self._frame = (
            run,
            started,
            board,
            statuses,
            frame,
        )
        self._generation, self._tasks = started.generation, started.tasks
        """The newest generation and its tasks, since the start or since the tasks were regained or
        replaced.
        """
        self.most_tasks = len(started.tasks)
        """The number of tasks that have begun."""
        ready, longest = run.ready, max(run.patience, run.outage.seconds)
        refresh = ready.connector.refresh_seconds(ready.config)
        self._changes = TaskChanges(refresh, ready.changed_tasks, run.note)
        self._work = self._spec()
        self._gap = LeaseGap(ready.subscription, run.note)
        self._executors = executor_monitor(run.spark, run.note)
        self._early = EarlyEnds(lambda: room(run.spark), self._stale_because, run.members)
        self._round_now: SparkRound | None = None
        self._narrow: int | None = None
        """The number of Spark tasks of the next round, if Spark cannot determine it in advance."""
        self._failed: list[int] = []
        self._written = time.monotonic()
        self._stalled = StallReport(ready.name, longest, run.scene.target.silent, run.note)
        self._invisibility_reported = False

    @contextmanager
    def watching(self, job: JobRun) -> Iterator[None]:
        """Check for changed tasks, a newer generation and unassigned partitions in the context."""
        with (
            self._changes.watching(lambda: self._tasks),
            heartbeat(lambda: self._early.check(job.active), REPORT),
        ):
            yield

    def job_run(self) -> JobRun:
        """Return the run of the tasks, ready to begin. Their statuses are written."""
        run, started, ready = self._run, self._started, self._run.ready
        job = JobRun(
            dict(enumerate(started.tasks)),
            ready.job.until,
            lambda tasks, limits: self._round(job, tasks, limits),
            stop_requested=lambda: run.signals.count > 0 or run.overtaken() is not None,
            overtaken=run.overtaken,
            stop=self._board.stop,
            stop_now=lambda: run.signals.count > 1,
            no_executors=lambda: self._executors.none_left,
            on_progress=self._progress,
            on_round_end=self._round_end,
            regain=self._regained,
            changed=self._replaced,
            note=run.note,
            is_sink=isinstance(ready.connector, SinkConnector),
            # A DataFrame is read in one job: if a lease ended earlier, Spark would read all rows
            # again.
            seconds=run.lease if self._frame is None else math.inf,
            silence=SILENCE if self._frame is None else math.inf,
            reached=run.retries("list the end offsets of the offsets topics", self._reached),
        )
        self._board.answer = lambda: {which: asdict(ends) for which, ends in job.reached.items()}
        self._statuses.drop_other_tasks(len(started.tasks))
        self._write_statuses(job)
        return job

    def _spec(self) -> TaskSpec:
        run, ready = self._run, self._run.ready
        return TaskSpec(
            group=ready.group,
            connector=ready.name,
            path=ready.path,
            config=dict(ready.config),
            generation=self._generation,
            home=run.scene.kafka.client,
            target=run.scene.target.client,
            offsets=offsets_topic(ready),
            global_offsets=ready.topics["offsets"] if ready.dedicated_offsets_topic else None,
            delivery=ready.delivery,
            timeout=run.timeout,
            patience=run.patience,
            outage=run.outage.seconds,
            subscription=ready.subscription,
            tasks=len(self._tasks),
            pending=run.pending,
            endless=not ready.job.until.ends,
        )

    def _round(
        self, job: JobRun, tasks: Mapping[int, Mapping[str, str]], limits: TaskLimits
    ) -> Lease:
        run, address = self._run, self._board.address
        self._board.begin_round()
        work = replace(
            self._work,
            generation=self._generation,
            reached=job.reached,
            waited=job.waited,
            quiet=job.quiet,
            unwritten=job.unwritten,
        )
        if run.members is not None:
            run.members.settle(tasks)
        if self._frame is not None:
            return self._frame.round(work, len(self._tasks), tasks, limits, address)
        self._early.begin(tasks)
        self._round_now = SparkRound(run.spark, work, tasks, limits, address, most=self._narrow)
        self._narrow = None
        return self._round_now

    def _round_end(self, job: JobRun) -> None:
        self._write_statuses(job)
        self._statuses.flush()
        self._gap.begin()

    def _write_statuses(self, job: JobRun) -> None:
        self._written = time.monotonic()
        job.measure_latency()
        failure = self._started.failure
        self._statuses.connector(words.FAILED if failure else words.RUNNING, failure)
        for number in job.tasks:
            total = job.totals[number]
            self._statuses.task(number, total.state, total.trace, metrics(total))

    def _progress(self, job: JobRun) -> None:
        """Evaluate the messages of the tasks, a few times a second."""
        run, board = self._run, self._board
        self._executors.check()
        messages = dict(board.messages)
        job.observe(messages)
        for task, line in board.take_lines():
            run.note(f"task {task}: {line}")
        self._stalled.update(messages, job.active)
        self._tell_unseen()
        self._gap.end(bool(messages))
        if self._frame is None and job.has_enough:
            board.stop()  # another task may wait for one that has ended to leave the consumer group
        early, lost = self._changes.found, self._lost(job)
        if self._round_now is not None:
            early |= self._early.found(self._round_now.width)
        if job.leases_end(messages, early=early, lost=lost):
            board.end_leases()
        failed = [n for n, total in job.totals.items() if total.failure]
        if failed != self._failed or time.monotonic() - self._written >= REPORT:
            self._failed = failed
            self._write_statuses(job)
        run.tell(job, board)

    def _stale_because(self) -> str | None:
        run = self._run
        return GenerationCheck(run.scene.kafka, self._generation, run.timeout).stale_because()

    def _lost(self, job: JobRun) -> list[int]:
        """Return the tasks that run nowhere. With dynamic allocation the next round has only as
        many Spark tasks as were connected.
        """
        if (now := self._round_now) is None:
            return []
        connected = self._board.connected
        lost = self._early.lost(job.active, connected)
        if lost and self._narrow is None and is_dynamic(self._run.spark):
            self._narrow = max(1, connected_shares(now.tasks, now.width, connected))
        return lost

    def _tell_unseen(self) -> None:
        """Note once that other commands cannot see this run."""
        presence = self._run.presence
        if (
            presence is not None
            and presence.problem is not None
            and not self._invisibility_reported
        ):
            self._invisibility_reported = True
            self._run.note(
                f"warning: commands that change offsets cannot see this run: {presence.problem}"
            )

    def _regained(self, why: str) -> str | None:
        """Regain the tasks that are stale because of ``why``. Return None, or the reason if they
        cannot be regained.
        """
        run, ready = self._run, self._run.ready
        if run.presence is None or ready.take_over:
            return why
        regain = RegainTasks(
            run.leader,
            ready.name,
            ready.config,
            self._tasks,
            self._generation,
            run.presence.others,
            lambda: bool(run.scene.kafka.group(ready.group).members),
            run.retries,
            run.note,
        )
        try:
            self._generation = regain()
        except TakenOver as e:
            return str(e)
        return None

    def _replaced(self) -> Mapping[int, Mapping[str, str]] | str | None:
        """Start a new generation of changed tasks. Return the tasks, or the reason if others have
        replaced them, or None if nothing has changed.
        """
        run, name = self._run, self._run.ready.name
        if (tasks := self._changes.take()) is None:
            return None
        most = max(len(self._tasks), len(tasks))
        self.most_tasks = max(self.most_tasks, most)
        try:
            if run.ready.take_over:
                run.retries("fence older tasks", lambda: run.fence_tasks(most))
            else:
                self._generation = replace_tasks(
                    run.leader, name, run.ready.config, self._generation, tasks
                )
        except TakenOver as e:
            return str(e)
        run.note(
            f"{name} continues with {counted(len(tasks), 'task')}: topics or partitions have "
            "changed"
        )
        self._tasks = tasks
        self._statuses.drop_other_tasks(len(tasks))
        self._work = self._spec()
        return dict(enumerate(tasks))

    def _reached(self) -> dict[str, KnownEnds]:
        work, scene = self._work, self._run.scene
        found = {PRIMARY: current_ends(scene.target, work.offsets)}
        return found | (
            {GLOBAL: current_ends(scene.kafka, work.global_offsets)} if work.global_offsets else {}
        )


def write_final_statuses(statuses: StatusWriter, job: JobRun, failure: str | None) -> None:
    statuses.connector(words.FAILED if failure else words.STOPPED, failure)
    for number in job.tasks:
        total = job.totals[number]
        state = words.FAILED if total.failure else words.UNASSIGNED
        statuses.task(number, state, total.trace, metrics(total))
