"""A run of a job from its request to its end: what is looked at, in which order, its plan, and its
execution on Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.core.saved_plan import check_where
from connectctl.ops.task_runtime.job import job_file as jobs
from connectctl.ops.task_runtime.job import preconditions, prepare, run_request, task_count
from connectctl.ops.task_runtime.job.local_plugin import import_from
from connectctl.ops.task_runtime.job.status_topic import RUN_PREFIX
from connectctl.ops.task_runtime.job.steps import CreateInternalTopic, RunTasks
from connectctl.ops.task_runtime.spi.plugins import connector_class, importable, path_of
from connectctl.ops.task_runtime.task.retries import RetryPolicy, default_seconds

if TYPE_CHECKING:
    from connectctl.ops.core.plan import Plan
    from connectctl.ops.task_runtime.attempt.control_channel import DriverChannel
    from connectctl.ops.task_runtime.job.internal_topics import RunClients
    from connectctl.ops.task_runtime.job.job_file import Job
    from connectctl.ops.task_runtime.job.prepare import PreparedJob
    from connectctl.ops.task_runtime.job.run_request import RunRequest
    from connectctl.ops.task_runtime.job.runner import JobResult
    from connectctl.ops.task_runtime.job.saved_run import SavedRun
    from connectctl.ops.task_runtime.job.scheduler import JobRun
    from connectctl.ops.task_runtime.job.steps import RecordedParts
    from connectctl.ops.task_runtime.job.task_count import TooManyTasks

Watch = Callable[["JobRun", "DriverChannel"], None]


@dataclass(frozen=True)
class RunAccess:
    """What a run is planned with and runs on; ``timeout`` in seconds.

    ``meet`` sends the first request to each cluster of a job: it raises ``NeverAnswered`` and
    ``UnknownHost``. ``clients`` opens what the run works with. ``spark_master`` and ``spark_conf``
    are the context's. ``report`` gets lines for people.
    """

    meet: Callable[[Job], None]
    clients: Callable[[Job], RunClients]
    timeout: float
    spark_master: str
    spark_conf: Mapping[str, Any]
    spark_log: Path
    report: Callable[[str], None]


@dataclass(frozen=True)
class PlannedRun:
    """A run that can begin: ``master`` is the Spark master that it comes to, ``outage`` retries its
    requests to Kafka.
    """

    access: RunAccess
    scene: RunClients
    job: PreparedJob
    plan: Plan
    master: str
    request: RunRequest
    outage: RetryPolicy

    @property
    def refusal(self) -> TooManyTasks | None:
        """Why none of its tasks may run (KIP-1004); None where they may."""
        return task_count.refusal(self.job.tasks_max)

    def store_refusal(self, refused: TooManyTasks, parts: RecordedParts) -> NoReturn:
        """Store the statuses FAILED of tasks of which none may run. Raises ``refused``, with which
        their step ends.
        """
        scene, ready, outage = self.scene, self.job, self.outage
        found, prefix = ready.tasks_max, RUN_PREFIX if ready.take_over else ""
        assert found is not None
        failure = (
            scene.kafka,
            ready.topics["status"],
            ready.name,
            prefix,
            found,
            len(ready.before.tasks),
        )

        def store() -> NoReturn:
            outage("store the statuses", lambda: task_count.store_failure(*failure))
            raise refused

        create = partial(prepare.create_topics, ready, scene, self.access.report)
        parts(CreateInternalTopic, lambda: outage("create topics", create))
        parts(RunTasks, store)
        raise refused

    def perform(
        self, parts: RecordedParts, progress: Callable[[], AbstractContextManager[Watch]]
    ) -> JobResult:
        """Run the tasks to their end, each part of it by ``parts``; ``progress`` gives what is
        called meanwhile.

        Raises ``BadInput`` without PySpark, and what a start raises.
        """
        # A dry run does without all that runs tasks.
        from connectctl.ops.clients.kafka_protocol.run_presence import Presence
        from connectctl.ops.clients.spark.session import close_session, open_session
        from connectctl.ops.task_runtime.job.plugin_distribution import plugin_archives, ship
        from connectctl.ops.task_runtime.job.runner import JobRunner

        access, scene, ready = self.access, self.scene, self.job
        conf = {**access.spark_conf, **ready.job.conf}
        if ready.job.packages:
            conf["spark.jars.packages"] = ",".join(ready.job.packages)
        try:
            spark = open_session(self.master, conf, access.spark_log, access.report)
        except ConnectctlError as e:
            if e.code == "no-pyspark":
                raise BadInput(
                    "connectctl run needs PySpark, which is not installed", next_step=e.next_step
                ) from e
            raise
        try:
            ship(spark, [*ready.job.plugins, *plugin_archives(ready.job, ready.path)])
            presence = Presence(scene.kafka, ready.group, ready.name, ready.topics["config"])
            with progress() as tell:
                given = scene, ready, spark, access.timeout, tell, access.report, self.request.lease
                asked = _patience(self.request, ready.job)
                return JobRunner(
                    *given, presence=presence, outage=self.outage, pending=asked, parts=parts
                ).go()
        finally:
            close_session(spark)


def plan_run(
    access: RunAccess, request: RunRequest, saved: SavedRun | None = None, *, waits: bool
) -> PlannedRun:
    """The run of ``request``, planned. Nothing is opened before the job file, the master and the
    connector will do.

    ``waits``: an outage from the first request on is waited for, where the job or the request say
    for how long. Raises ``Refused`` where ``saved`` is stale or another cluster's, and what reading
    and preparing the job raise.
    """
    job = jobs.read(Path(request.job))
    master = request.master or job.master or access.spark_master
    preconditions.check_master(master, access.timeout)
    importable(job.plugins)
    if job.directory is not None:
        import_from(job.directory)
    named = job.config.get("connector.class")
    path = path_of(named) if named else ""
    files = run_request.files_of(request, job, path.partition(":")[0])
    if saved is not None:
        saved.check(files)
    if named:
        connector_class(path, job.directory)
    asked = _patience(request, job)
    unmet = waits and (asked is not None or not job.until.ends)
    seconds = default_seconds(job.until) if asked is None else asked
    outage = RetryPolicy(seconds, access.report, wait_for_first_contact=unmet)
    outage("reach Kafka", lambda: access.meet(job))
    scene, ready = outage(
        "read the state of the cluster", lambda: _look(access, job, request, saved)
    )
    if ready.take_over:
        preconditions.check_take_over(scene, ready.name, ready.topics["config"])
    settings = run_request.settings_of(job, ready.config, access.spark_conf)
    plan = prepare.plan(
        ready, scene.kafka.cluster_id(), master, request.absolute(), files | settings
    )
    if saved is not None:
        saved.check(settings)
    return PlannedRun(access, scene, ready, plan, master, request, outage)


def _patience(request: RunRequest, job: Job) -> float | None:
    """Return the patience that somebody asked for; None for nobody."""
    return job.patience if request.patience is None else request.patience


def _look(
    access: RunAccess, job: Job, request: RunRequest, saved: SavedRun | None
) -> tuple[RunClients, PreparedJob]:
    scene = access.clients(job)
    if saved is not None:
        check_where(
            (saved.plan.cluster_id, saved.plan.group_id), (scene.kafka.cluster_id(), scene.group.id)
        )
    return scene, prepare.prepare_job(scene, job, take_over=request.take_over)
