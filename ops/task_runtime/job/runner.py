"""Runs the tasks of a job from their start to their end: generation or take-over, rounds of leases,
and statuses.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.attempt.control_channel import DriverChannel, driver_address
from connectctl.ops.task_runtime.connectors.dataframe import DataFrameSource
from connectctl.ops.task_runtime.dataframe.read import JobDataFrame, open_dataframe
from connectctl.ops.task_runtime.job import environment
from connectctl.ops.task_runtime.job import status_topic as words
from connectctl.ops.task_runtime.job.config_topic_records import ConfigTopicState, Generation
from connectctl.ops.task_runtime.job.environment import JobEnvironment
from connectctl.ops.task_runtime.job.rounds import Rounds, StartedTasks, write_final_statuses
from connectctl.ops.task_runtime.job.scheduler import FinalStatus, JobRun
from connectctl.ops.task_runtime.job.spark_round import warm
from connectctl.ops.task_runtime.job.status_topic import StatusWriter
from connectctl.ops.task_runtime.job.task_count import TooManyTasks, fail_tasks, refusal
from connectctl.ops.task_runtime.job.worker_takeover import await_stopped
from connectctl.ops.task_runtime.spi import tasks_max


@dataclass
class JobResult:
    """The result of a run. ``connector_failure`` is the failure of the connector, apart from those
    of its tasks.
    """

    outcome: FinalStatus
    run: JobRun
    seconds: float
    connector_failure: str | None = None


@dataclass
class JobRunner(JobEnvironment):
    """Runs the tasks of a job: ``opened``, then ``start`` and ``run``. ``own_tasks`` is the number
    of tasks that have begun.
    """

    own_tasks: int = 0
    _began: float = 0.0
    _frame: JobDataFrame | None = None
    _board: DriverChannel = field(init=False, repr=False)
    _statuses: StatusWriter = field(init=False, repr=False)
    _started: StartedTasks | None = None

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Prepare Spark for the tasks. A take-over prevents other runs of the connector."""
        self._began = time.monotonic()
        with self.signals.handled(), self._frames(), self._present():
            if self._frame is None:
                warm(
                    self.spark,
                    int(self.ready.config.get("tasks.max", "1")),
                    lambda: self.signals.count > 0,
                )
            with closing(DriverChannel(*driver_address(self.spark))) as self._board:
                yield

    @contextmanager
    def _frames(self) -> Iterator[None]:
        """Open the frame of a DataFrame source before anything is written, and close it at the
        end.
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
        """Close the group membership that shows that this run is alive, at the end of the context.
        A take-over joins now; other runs join when they start. Raises ``Refused`` for a take-over
        if another run has the connector.
        """
        if self.presence is None:
            yield
            return
        if self.ready.take_over:
            hold, timeout = self.presence.hold_alone, max(self.timeout, environment.LEAST_PATIENCE)
            self.retries("join the group of the run", lambda: hold(timeout))
        try:
            yield
        finally:
            self.presence.leave()

    def start(self) -> StartedTasks:
        """Return the tasks, after starting them if they are not started. Raises the errors of a
        start.
        """
        if self._started is not None:
            return self._started
        ready = self.ready
        if self.presence is not None and not ready.take_over:
            self.presence.join()
        prefix = words.RUN_PREFIX if ready.take_over else ""
        address = str(self._board.address)
        arguments = (self.scene.kafka, ready.topics["status"], ready.name, address, prefix)
        statuses = self.retries("read the statuses", lambda: StatusWriter(*arguments))
        try:
            stopped = await_stopped(self) if ready.take_over else None
            started = self._started = self._start(stopped, statuses)
        except TooManyTasks as e:
            statuses.connector(words.FAILED, str(e))
            raise
        finally:
            statuses.flush()
        self._statuses, self.own_tasks = statuses, len(started.tasks)
        return started

    def run(self) -> JobResult:
        """Run the tasks to their end, and return the result."""
        started, statuses = self.start(), self._statuses
        rounds = Rounds(self, started, self._board, statuses, self._frame)
        run = rounds.job_run()
        try:
            try:
                with rounds.watching(run):
                    outcome = run.run()
            except ConnectctlError as e:
                write_final_statuses(statuses, run, str(e))
                raise
            finally:
                self.own_tasks = rounds.most_tasks
            # With a reason, another run or worker has the tasks: it writes their statuses, and must
            # not be fenced.
            if run.reason is None:
                self._ended(started, run, statuses)
        finally:
            statuses.flush()
            if run.reason is None and self.ready.take_over and self.ready.hand_back_action is None:
                self.patiently("fence its tasks", lambda: self.fence_tasks(self.own_tasks))
        failed = FinalStatus.FAILED if started.failure else outcome
        return JobResult(failed, run, time.monotonic() - self._began, started.failure)

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
