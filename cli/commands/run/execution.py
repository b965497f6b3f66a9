"""What ``connectctl run`` does with a job file, and ``connectctl runs apply`` with a plan that its dry run printed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from connectctl.cli import apply
from connectctl.cli.output import terminal
from connectctl.cli.output.prometheus import MetricsFile
from connectctl.cli.output.terminal import Output
from connectctl.cli.plan_file import check_fresh
from connectctl.cli.views import run as run_view
from connectctl.ops.clients.first_contact import first_contact
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.core.journal import RunState
from connectctl.ops.core.saved_plan import check_where
from connectctl.ops.task_runtime.job import job_file as jobs
from connectctl.ops.task_runtime.job import preconditions, prepare, run_request, task_count
from connectctl.ops.task_runtime.job.internal_topics import RunClients
from connectctl.ops.task_runtime.job.job_file import Until
from connectctl.ops.task_runtime.job.local_plugin import import_from
from connectctl.ops.task_runtime.job.status_topic import RUN_PREFIX
from connectctl.ops.task_runtime.job.steps import CreateInternalTopic, RunTasks, recorded
from connectctl.ops.task_runtime.spi.delivery_settings import target_cluster
from connectctl.ops.task_runtime.spi.plugins import connector_class, importable, path_of
from connectctl.ops.task_runtime.task.retries import RetryPolicy, default_seconds

if TYPE_CHECKING:
    from connectctl.cli.options import ApplyOptions
    from connectctl.cli.session import Session
    from connectctl.ops.core.plan import Plan
    from connectctl.ops.task_runtime.attempt.control_channel import DriverChannel
    from connectctl.ops.task_runtime.job.job_file import Job
    from connectctl.ops.task_runtime.job.prepare import PreparedJob
    from connectctl.ops.task_runtime.job.run_request import RunRequest
    from connectctl.ops.task_runtime.job.runner import JobResult
    from connectctl.ops.task_runtime.job.saved_run import SavedRun
    from connectctl.ops.task_runtime.job.scheduler import JobRun
    from connectctl.ops.task_runtime.job.steps import RecordedParts
    from connectctl.ops.task_runtime.job.task_count import TooManyTasks


def run_job(session: Session, request: RunRequest, options: ApplyOptions, saved: SavedRun | None = None) -> None:
    """Plan the run of ``request``, and carry it out. With ``saved`` it is planned to compare, and the saved plan is done.

    Raises ``Refused`` for a saved plan that is stale or another cluster's, and what planning raises.
    """
    job = jobs.read(Path(request.job))
    where = request.master or job.master or str(session.settings.get("spark.master"))
    preconditions.check_master(where, session.timeout)
    importable(job.plugins)
    if job.directory is not None:
        import_from(job.directory)
    named = job.config.get("connector.class")
    path = path_of(named) if named else ""
    files = run_request.files_of(request, job, path.partition(":")[0])
    if saved is not None:
        saved.check(files)
    if named:
        connector_class(path, job.directory)  # before anything is opened
    asked = [s for s in (request.patience, job.patience) if s is not None]
    unmet = not options.dry_run and (bool(asked) or job.until == Until())
    outage = RetryPolicy([*asked, default_seconds(job.until)][0], terminal.note, wait_for_first_contact=unmet)
    outage("reach Kafka", lambda: meet(session, job))
    scene, ready = outage("read the state of the cluster", lambda: _look(session, job, request, saved))
    settings = run_request.settings_of(job, ready.config, session.settings.section("spark.conf"))
    plan = prepare.plan(ready, scene.kafka.cluster_id(), where, request.absolute(), files | settings)
    if saved is not None:
        saved.check(settings)
        check_fresh(saved.plan, plan)
        plan = saved.plan
    refused = task_count.refusal(ready.tasks_max)
    if refused is not None and (options.dry_run or not options.yes):
        raise refused  # nobody is asked, and nothing is stored, for what would not run
    for note in ready.notes:
        terminal.note(f"warning: {note}")
    if options.dry_run:
        terminal.emit("Plan", plan.as_json(), options.output, lambda wide: _print_plan(plan))
        return
    apply.confirm(session, plan, options.for_people, yes=options.yes)
    _carry_out(session, Prepared(scene, ready, where, request, outage), plan, options.output)


@dataclass(frozen=True)
class Prepared:
    """A run that can begin: ``master`` is the Spark master that it comes to, ``outage`` retries its requests to Kafka."""

    scene: RunClients
    job: PreparedJob
    master: str
    request: RunRequest
    outage: RetryPolicy


def _carry_out(session: Session, run: Prepared, plan: Plan, output: Output) -> None:
    """Do ``plan`` as a run of the journal, and print what came of it. Exits with the code that it amounts to."""
    ready, metrics = run.job, run.request.metrics
    written = MetricsFile(Path(metrics), ready.name, ready.group) if metrics else None
    lock = session.cluster_lock if ready.take_over else None
    with recorded(apply.open_journal(), plan, ready.name, lock, run.outage) as parts:
        if refused := task_count.refusal(ready.tasks_max):
            _refuse(run, refused, parts)
        try:
            result = _perform(session, run, written, parts)
        finally:
            if parts.hand_back_left:
                terminal.note(
                    f"{ready.name} was not resumed on its workers. If nothing else runs it: "
                    f"connectctl runs resume {parts.run.id}"
                )
        if run_view.exit_code(ready, result):
            parts.journal.end(parts.run.id, RunState.FAILED)

    terminal.emit("TaskRun", run_view.as_json(ready, result), output, lambda wide: run_view.show(ready, result, wide))
    for line in run_view.warnings(ready, result):
        terminal.note(line)
    for line in run_view.failures(ready, result):
        terminal.note(line, style="red")
    if code := run_view.exit_code(ready, result):
        raise typer.Exit(code)


def meet(session: Session, job: Job) -> None:
    """The first request to each cluster. Raises ``NeverAnswered`` and ``UnknownHost``, which others are told apart from."""
    with first_contact(str(session.settings.get("bootstrap_servers"))):
        session.kafka.cluster_id()
    if other := _target(session, job):
        with first_contact(other[0]):
            session.other_kafka(*other).cluster_id()


def _look(session: Session, job: Job, request: RunRequest, saved: SavedRun | None) -> tuple[RunClients, PreparedJob]:
    scene = scene_of(session, job)
    if saved is not None:
        check_where((saved.plan.cluster_id, saved.plan.group_id), (scene.kafka.cluster_id(), scene.group.id))
    return scene, prepare.prepare_job(scene, job, take_over=request.take_over)


def _refuse(run: Prepared, refused: TooManyTasks, parts: RecordedParts) -> NoReturn:
    """Store the statuses FAILED of tasks of which none may run. Raises ``refused``, with which their step ends."""
    scene, ready, outage = run.scene, run.job, run.outage
    found, prefix = ready.tasks_max, RUN_PREFIX if ready.take_over else ""
    assert found is not None
    failure = (scene.kafka, ready.topics["status"], ready.name, prefix, found, len(ready.before.tasks))

    def store() -> NoReturn:
        outage("store the statuses", lambda: task_count.store_failure(*failure))
        raise refused

    create = partial(prepare.create_topics, ready, scene, terminal.note)
    parts(CreateInternalTopic, lambda: outage("create topics", create))
    parts(RunTasks, store)
    raise refused


def _print_plan(plan: Plan) -> None:
    for line in apply.summary(plan):
        terminal.say(line)


def _target(session: Session, job: Job | None) -> tuple[str, dict[str, str]] | None:
    kafka: Any = session.kafka
    return target_cluster(job.config if job else {}, str(kafka.bootstrap))


def scene_of(session: Session, job: Job | None = None) -> RunClients:
    """The edges of a run."""
    kafka: Any = session.kafka
    target, calls = kafka, session.transactions
    brokers = [session.brokers]
    if other := _target(session, job):
        target = session.other_kafka(*other)
        calls = session.other_transactions(*other)
        brokers.append(session.other_brokers(*other))
    group = session.group()
    workers = session.connect_to(group) if group.members else None
    return RunClients(kafka, target, calls, tuple(brokers), group, session.named_topics, workers)


def _perform(session: Session, run: Prepared, written: MetricsFile | None, parts: RecordedParts) -> JobResult:
    # A dry run does without all that runs tasks.
    from connectctl.ops.clients.kafka_protocol.run_presence import Presence
    from connectctl.ops.clients.spark.session import close_session, open_session
    from connectctl.ops.task_runtime.job.plugin_distribution import plugin_archives, ship
    from connectctl.ops.task_runtime.job.runner import JobRunner

    scene, ready = run.scene, run.job
    conf: dict[str, Any] = {**session.settings.section("spark.conf"), **ready.job.conf}
    if ready.job.packages:
        conf["spark.jars.packages"] = ",".join(ready.job.packages)
    try:
        spark = open_session(run.master, conf, session.spark_log, terminal.note)
    except ConnectctlError as e:
        if e.code == "no-pyspark":
            raise BadInput("connectctl run needs PySpark, which is not installed", next_step=e.next_step) from e
        raise
    try:
        ship(spark, [*ready.job.plugins, *plugin_archives(ready.job, ready.path)])
        with run_view.progress(ready) as tell:

            def both(run: JobRun, board: DriverChannel) -> None:
                tell(run, board)
                if written is not None:
                    written.follow(run)

            presence = Presence(scene.kafka, ready.group, ready.name, ready.topics["config"])
            launch = JobRunner(
                scene,
                ready,
                spark,
                session.timeout,
                both,
                terminal.note,
                run.request.lease,
                presence=presence,
                outage=run.outage,
                parts=parts,
            )
            result = launch.go()
            if written is not None:
                written.follow(result.run)
            return result
    finally:
        close_session(spark)
