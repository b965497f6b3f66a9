"""Plans a run of a job, and defines the order of the checks and observations."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.saved_plan import check_where
from connectctl.ops.operations.operation import Planned
from connectctl.ops.task_runtime.job import job_file as jobs
from connectctl.ops.task_runtime.job import (
    preconditions,
    prepare,
    run_clients,
    run_request,
    task_count,
)
from connectctl.ops.task_runtime.job.local_plugin import import_from
from connectctl.ops.task_runtime.spi.converters import converter_modules
from connectctl.ops.task_runtime.spi.plugins import connector_class, importable, path_of
from connectctl.ops.task_runtime.task.retries import NO_RETRIES, RetryPolicy, default_seconds

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import Clients
    from connectctl.ops.task_runtime.job.internal_topics import RunClients
    from connectctl.ops.task_runtime.job.job_file import Job
    from connectctl.ops.task_runtime.job.prepare import PreparedJob
    from connectctl.ops.task_runtime.job.run_request import RunRequest
    from connectctl.ops.task_runtime.job.saved_run import SavedRun
    from connectctl.ops.task_runtime.job.task_count import TooManyTasks


@dataclass(frozen=True)
class RunAccess:
    """The clients of a run, and its job file, which is read when it is first used. With ``waits``
    an unlimited run, or a run with a patience, also retries the first request to a cluster.
    """

    clients: Clients
    request: RunRequest
    waits: bool = True

    def cluster_id(self) -> str:
        """Return the id of the Kafka cluster. The job file is not needed for it."""
        try:
            outage = self.outage
        except BadInput:
            outage = NO_RETRIES
        return outage("reach Kafka", self.clients.kafka.cluster_id)

    @property
    def group_id(self) -> str:
        """The Connect group of the run."""
        return self.clients.group_id

    @cached_property
    def job(self) -> Job:
        """The job file. Raises ``BadInput``."""
        return jobs.read(Path(self.request.job))

    @property
    def patience(self) -> float | None:
        """The patience of the request or the job file, in seconds; None if neither sets it."""
        return self.job.patience if self.request.patience is None else self.request.patience

    @property
    def outage(self) -> RetryPolicy:
        """The policy for requests to Kafka."""
        patience, until = self.patience, self.job.until
        first = self.waits and (patience is not None or not until.ends)
        seconds = default_seconds(until) if patience is None else patience
        return RetryPolicy(seconds, self.clients.note, wait_for_first_contact=first)

    @property
    def master(self) -> str:
        """The Spark master."""
        settings = self.clients.settings
        return self.request.master or self.job.master or str(settings.get("spark.master"))


@dataclass(frozen=True, kw_only=True)
class PlannedRun(Planned):
    """The plan of a run that can begin. ``outage`` retries its requests to Kafka."""

    access: RunAccess
    scene: RunClients
    job: PreparedJob = field(repr=False)
    outage: RetryPolicy

    @property
    def refusal(self) -> TooManyTasks | None:
        """The error if none of its tasks may run (KIP-1004); None if they may."""
        return task_count.refusal(self.job.tasks_max)


def plan_run(access: RunAccess, saved: SavedRun | None = None) -> PlannedRun:
    """Return the plan. The job file, the Spark master and the connector are checked before any
    client is opened.

    Raises ``Refused`` if ``saved`` is stale or of another cluster, and the errors of reading and
    preparing the job.
    """
    clients, request, job = access.clients, access.request, access.job
    preconditions.check_master(access.master, clients.timeout)
    importable(job.plugins)
    if job.directory is not None:
        import_from(job.directory)
    named = job.config.get("connector.class")
    path = path_of(named) if named else ""
    modules = [path.partition(":")[0]] if path else []
    files = run_request.files_of(request, job, modules + converter_modules(job.config))
    if saved is not None:
        saved.check(files)
    if named:
        connector_class(path, job.directory)
    outage = access.outage
    outage("reach Kafka", lambda: run_clients.contact_clusters(clients, job))
    scene, ready = outage("read the state of the cluster", lambda: _observe(access, saved))
    if ready.take_over:
        preconditions.check_take_over(scene, ready.name, ready.topics["config"])
    settings = run_request.settings_of(job, ready.config, clients.settings.section("spark.conf"))
    made_from = files | settings
    plan = prepare.plan(
        ready, scene.kafka.cluster_id(), access.master, request.absolute(), made_from
    )
    if saved is not None:
        saved.check(settings)
    return PlannedRun(
        plan,
        notes=ready.notes,
        subjects=(ready.name,),
        access=access,
        scene=scene,
        job=ready,
        outage=outage,
    )


def _observe(access: RunAccess, saved: SavedRun | None) -> tuple[RunClients, PreparedJob]:
    scene = run_clients.run_clients(access.clients, access.job)
    if saved is not None:
        check_where(
            (saved.plan.cluster_id, saved.plan.group_id), (scene.kafka.cluster_id(), scene.group.id)
        )
    return scene, prepare.prepare_job(scene, access.job, take_over=access.request.take_over)
