"""The context of the steps of a run: its tasks on Spark, and its connector on the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.core.finding import counted
from connectctl.ops.operations.cluster.denied_rights import denied
from connectctl.ops.task_runtime.job import task_count
from connectctl.ops.task_runtime.job.hand_back import WorkersContext
from connectctl.ops.task_runtime.job.planned_run import PlannedRun
from connectctl.ops.task_runtime.job.prepare import create_topic
from connectctl.ops.task_runtime.job.scheduler import FinalStatus, JobRun
from connectctl.ops.task_runtime.job.status_topic import RUN_PREFIX
from connectctl.ops.task_runtime.job.task_rights import task_rights
from connectctl.ops.task_runtime.job.worker_takeover import stop_on_workers, workers_of

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import TransactionCalls
    from connectctl.ops.kafka.acls import Right
    from connectctl.ops.operations.connectors.context import StepContext
    from connectctl.ops.task_runtime.attempt.control_channel import DriverChannel
    from connectctl.ops.task_runtime.job.runner import JobResult, JobRunner
    from connectctl.ops.task_runtime.task.retries import RetryPolicy
    from pyspark.sql import SparkSession


@dataclass(kw_only=True)
class SparkJobContext(WorkersContext):
    """The context of a run in this process. ``tell`` receives its progress. ``result`` is the
    result of its tasks.

    ``is_held`` is True while the connector is stopped on its workers and was not handed back.
    ``runner`` exists while the context is open, unless none of the tasks may run.
    """

    planned: PlannedRun
    continues: bool = False
    tell: Callable[[JobRun, DriverChannel], None] = lambda run, board: None
    result: JobResult | None = None
    is_held: bool = False
    runner: JobRunner = field(init=False)

    def __post_init__(self) -> None:
        self.lock_patience = max(self.lock_patience, self.planned.outage.seconds)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Open Spark, and prepare it for the tasks. Raises ``BadInput`` without PySpark."""
        if self.planned.refusal is not None:
            yield
            return
        # A dry run does not import the modules that run tasks.
        from connectctl.ops.clients.kafka_protocol.run_presence import Presence
        from connectctl.ops.task_runtime.job.runner import JobRunner

        run, access = self.planned, self.planned.access
        ready, scene, clients = run.job, run.scene, access.clients
        with _spark(run) as spark:
            self.runner = JobRunner(
                scene,
                ready,
                spark,
                clients.timeout,
                self.tell,
                clients.note,
                access.request.lease,
                presence=Presence(scene.kafka, ready.group, ready.name, ready.topics["config"]),
                outage=run.outage,
                pending=access.patience,
            )
            with self.runner.opened():
                yield

    @property
    def retries(self) -> RetryPolicy:
        return self.runner.patiently

    def create_topic(self, topic: str) -> None:
        """Create a topic of the group."""
        run = self.planned
        note = run.access.clients.note
        policy = run.outage if run.refusal is not None else self.runner.retries
        policy("create topics", lambda: create_topic(run.job, run.scene, topic, note))

    def rights(self) -> Iterable[Right]:
        """Return the rights that the tasks need."""
        return task_rights(self.planned.scene, self.planned.job)

    def denied(self, rights: Iterable[Right]) -> Right | None:
        """Return the first of ``rights`` that brokers report as missing."""
        return denied(self.planned.access.clients.own_rights, rights)

    def start_tasks(self) -> None:
        """Start the tasks, unless they are started."""
        self.runner.start()

    def stop_on_workers(self) -> str | None:
        """Stop the connector on its workers, and wait until it is STOPPED."""
        self.is_held = True
        return stop_on_workers(self.runner, self.workers())

    def taken_back(self, name: str) -> str | None:
        state = super().taken_back(name)
        self.is_held = state is None
        return state

    def hand_back(self, name: str, verb: str) -> str | None:
        state = super().hand_back(name, verb)
        self.is_held = False
        return state

    def run_tasks(self) -> str:
        """Run the tasks to their end. Raises ``ConnectctlError`` if they failed, or another run or
        worker has them.
        """
        if (refused := self.planned.refusal) is not None:
            self._store_failure()
            raise refused
        result = self.result = self.runner.run()
        reason = result.run.reason
        self.lost = reason is not None
        if result.outcome not in (FinalStatus.ENDED, FinalStatus.STOPPED):
            failures = (total.failure for total in result.run.totals.values())
            why = reason or result.connector_failure or next(filter(None, failures), None)
            what = f"{self.planned.job.name} has {result.outcome.value}"
            raise ConnectctlError(what, why=why, code=result.outcome.value)
        return f"{result.outcome.value} with {counted(result.run.records, 'record')}"

    def _store_failure(self) -> None:
        """Store the status FAILED of a connector of which no task may run, and of failed tasks."""
        run, ready = self.planned, self.planned.job
        assert ready.tasks_max is not None
        prefix = RUN_PREFIX if ready.take_over else ""
        status = ready.topics["status"]
        arguments = run.scene.kafka, status, ready.name, prefix, ready.tasks_max
        run.outage(
            "store the statuses",
            lambda: task_count.store_failure(*arguments, len(ready.before.tasks)),
        )

    def workers(self) -> StepContext:
        return workers_of(self.runner).within(self)

    def calls(self) -> TransactionCalls:
        return self.planned.scene.calls

    def ids(self) -> Sequence[str]:
        ready = self.planned.job
        return [task_id(ready.group, ready.name, n) for n in range(self.runner.own_tasks)]


@contextmanager
def _spark(run: PlannedRun) -> Iterator[SparkSession]:
    """Yield a session on the run's master, with its plugins. Raises ``BadInput`` without
    PySpark.
    """
    from connectctl.ops.clients.spark.session import close_session, open_session
    from connectctl.ops.task_runtime.job.plugin_distribution import plugin_archives, ship

    access, ready = run.access, run.job
    clients = access.clients
    conf = {**clients.settings.section("spark.conf"), **ready.job.conf}
    if ready.job.packages:
        conf["spark.jars.packages"] = ",".join(ready.job.packages)
    try:
        spark = open_session(access.master, conf, clients.spark_log, clients.note)
    except ConnectctlError as e:
        if e.code == "no-pyspark":
            raise BadInput(
                "connectctl run needs PySpark, which is not installed", next_step=e.next_step
            ) from e
        raise
    try:
        ship(spark, [*ready.job.plugins, *plugin_archives(ready.job, ready.path)])
        yield spark
    finally:
        close_session(spark)
