"""A run from its start to its end: generation or take-over, rounds of leases, statuses, and the
hand-back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.attempt.control_channel import DriverChannel, driver_address
from connectctl.ops.task_runtime.connectors.dataframe import DataFrameSource
from connectctl.ops.task_runtime.dataframe.read import open_dataframe
from connectctl.ops.task_runtime.job import environment
from connectctl.ops.task_runtime.job import status_topic as words
from connectctl.ops.task_runtime.job.config_topic_records import ConfigTopicState, Generation
from connectctl.ops.task_runtime.job.environment import JobEnvironment
from connectctl.ops.task_runtime.job.prepare import create_topics
from connectctl.ops.task_runtime.job.rounds import Rounds, StartedTasks, write_final_statuses
from connectctl.ops.task_runtime.job.scheduler import FinalStatus, JobRun
from connectctl.ops.task_runtime.job.spark_round import warm
from connectctl.ops.task_runtime.job.status_topic import StatusWriter
from connectctl.ops.task_runtime.job.steps import CreateInternalTopic, RunTasks, StartTasks
from connectctl.ops.task_runtime.job.task_count import TooManyTasks, fail_tasks, refusal
from connectctl.ops.task_runtime.job.worker_takeover import WorkerTakeOver
from connectctl.ops.task_runtime.spi import tasks_max

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.dataframe.read import JobDataFrame


@dataclass
class JobResult:
    """What came of a run. ``connector_failure`` is the connector's own, besides those of its
    tasks.
    """

    outcome: FinalStatus
    run: JobRun
    seconds: float
    connector_failure: str | None = None


@dataclass
class JobRunner(JobEnvironment):
    """Runs it."""

    _frame: JobDataFrame | None = None

    def go(self) -> JobResult:
        """Run to the end. Raises what a start raises; what becomes of tasks is in the result."""
        began = time.monotonic()
        with self.signals.handled(), self._frames():
            self.parts(CreateInternalTopic, self._create_topics)
            with self._present():
                return self._warmed(began)

    def _create_topics(self) -> None:
        self.retries("create topics", lambda: create_topics(self.ready, self.scene, self.note))

    @contextmanager
    def _frames(self) -> Iterator[None]:
        """The frame of a DataFrame's job is looked at before anything is written, and let go of at
        the end.
        """
        if not isinstance(self.ready.connector, DataFrameSource):
            yield
            return

        self._frame = open_dataframe(
            self.spark, self.ready, self.scene, self.patience, self.retries
        )
        self._frame.wanted = lambda: self.signals.count > 0
        try:
            yield
            for line in self._frame.notes:
                self.note(line)
        finally:
            self._frame.close()

    @contextmanager
    def _present(self) -> Iterator[None]:
        """Others see that this run is alive. Raises ``Refused`` where another run has taken the
        connector over.
        """
        if self.presence is None:
            yield
            return
        if self.ready.take_over:
            hold, timeout = self.presence.hold_alone, max(self.timeout, environment.LEAST_PATIENCE)
            self.retries("join the group of the run", lambda: hold(timeout))
        else:
            self.presence.join()
        try:
            yield
        finally:
            self.presence.leave()

    def _warmed(self, began: float) -> JobResult:
        if self._frame is None:
            warm(
                self.spark,
                int(self.ready.config.get("tasks.max", "1")),
                lambda: self.signals.count > 0,
            )
        with closing(DriverChannel(*driver_address(self.spark))) as board:
            return self._go(board, began)

    def _go(self, board: DriverChannel, began: float) -> JobResult:
        ready = self.ready
        prefix = words.RUN_PREFIX if ready.take_over else ""
        arguments = (
            self.scene.kafka,
            ready.topics["status"],
            ready.name,
            str(board.address),
            prefix,
        )
        statuses = self.retries("read the statuses", lambda: StatusWriter(*arguments))
        take_over = WorkerTakeOver(self)
        try:
            with take_over.held() as taken:
                started = self.parts(StartTasks, lambda: self._start(taken, statuses))
                take_over.own_tasks = len(started.tasks)
                rounds = Rounds(self, started, board, statuses, self._frame)
                run = rounds.job_run()
                try:
                    with rounds.watching(run):
                        outcome = self.parts(RunTasks, run.run)
                except ConnectctlError as e:
                    write_final_statuses(statuses, run, str(e))
                    raise
                finally:
                    take_over.own_tasks = rounds.most_tasks
                # Whoever has the tasks by now tells of them, and is not to be fenced.
                take_over.lost = run.reason is not None
                if not take_over.lost:
                    self._ended(started, run, statuses)
        except TooManyTasks as e:
            statuses.connector(words.FAILED, str(e))
            raise
        finally:
            statuses.flush()
        failed = FinalStatus.FAILED if started.failure else outcome
        return JobResult(failed, run, time.monotonic() - began, started.failure)

    def _ended(self, started: StartedTasks, run: JobRun, statuses: StatusWriter) -> None:
        if self.members is not None:
            self.members.remove(range(len(started.tasks)))
        write_final_statuses(statuses, run, started.failure)
        statuses.flush()

    def _start(self, taken: ConfigTopicState | None, statuses: StatusWriter) -> StartedTasks:
        ready = self.ready
        verdicts: list[tasks_max.TasksMaxResult] = []

        def choose(before: ConfigTopicState) -> list[dict[str, str]]:
            verdict = tasks_max.evaluate(
                ready.name, ready.config, ready.task_configs(), before.tasks
            )
            if refused := refusal(verdict):
                fail_tasks(statuses, verdict, len(before.tasks))
                raise refused
            if verdict.warning and not verdicts and verdict.warning not in ready.notes:
                self.note(f"warning: {verdict.warning}")
            verdicts.append(verdict)
            return [dict(task) for task in verdict.tasks]

        if taken is None:
            generation = self.leader.start(ready.name, ready.config, choose)
            tasks = [dict(task) for task in verdicts[-1].tasks]
        else:
            tasks = choose(taken)
            generation = Generation(
                ready.topics["config"], ready.name, taken.commit, taken.target_at
            )
            most = max(ready.before.transactional_ids, len(tasks))
            self.retries("fence older tasks", lambda: self.fence_tasks(most))
        return StartedTasks(generation, tasks, verdicts[-1].failed)
