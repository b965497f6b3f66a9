"""``connectctl run``: a connector's tasks on Spark, exactly once, from a job file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from connectctl.cli import apply
from connectctl.cli.options import DryRunOption, OutputOption, YesOption
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.ops.core.errors import BadInput, ConnectctlError
from typer.core import TyperGroup

if TYPE_CHECKING:
    from connectctl.cli.output.prometheus import MetricsFile
    from connectctl.cli.session import Session
    from connectctl.ops.core.plan import Plan
    from connectctl.ops.task_runtime.attempt.control_channel import DriverChannel
    from connectctl.ops.task_runtime.job.internal_topics import RunClients
    from connectctl.ops.task_runtime.job.job_file import Job
    from connectctl.ops.task_runtime.job.prepare import PreparedJob
    from connectctl.ops.task_runtime.job.runner import Result
    from connectctl.ops.task_runtime.job.scheduler import JobRun
    from connectctl.ops.task_runtime.job.steps import RecordedParts
    from connectctl.ops.task_runtime.task.retries import RetryPolicy


class JobOrCommand(TyperGroup):
    """``run FILE`` is ``run job FILE``: an argument that is not a command is a job file or an option of it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["job", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=JobOrCommand, rich_markup_mode=None, add_completion=False, no_args_is_help=True)


@app.callback()
def run() -> None:
    """Run a connector's tasks on Spark with Connect's own ids, offsets and guarantees.

    \b
    Examples:
      connectctl run numbers.yaml --group-id spark-jobs   a job file; no worker is needed
      connectctl run numbers.yaml --take-over             a connector of the workers, stopped there meanwhile
      connectctl run status                               state of connectors and tasks

    \b
    A job file:
      name: numbers
      config: {connector.class: FileStreamSource, file: /in.txt, topic: numbers}
      spark: {master: "local[2]"}
      until: {idle: 5s}        # or records: N, duration: 60s, forever: true
      patience: 5m             # how long to retry when Kafka does not respond

    connector.class is a known name, or MODULE:CLASS: the module is in the directory of the job file, is installed, or is in
    a wheel or zip under plugins.

    With records: N it ends at the first report that reaches N; commits of a task that was killed before it reported are not
    counted. idle ends at the end of the source even if tasks were killed.
    """


@app.command()
def job(
    ctx: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="JOB", help="The job file.")],
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Spark master; overrides job file and context.")
    ] = None,
    take_over: Annotated[
        bool,
        typer.Option("--take-over", help="Stop the connector on its live workers, and resume it there afterwards."),
    ] = False,
    lease: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="Duration of a Spark task; it reports at the end.")
    ] = 30.0,
    patience: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="How long to retry when Kafka does not respond; overrides the job file. Default: 300 for a run without an "
            "end, else 120. A run without an end or with --patience also waits for a cluster that has never responded.",
        ),
    ] = None,
    metrics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File for metrics of the tasks in Prometheus format, written after each lease."
        ),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run a job file. SIGTERM and ^C end it after a last commit; a second one ends it immediately.

    It resumes from the source offsets of its connector, whoever wrote them: it can be killed and run again. To change a
    running job, run the changed file: it takes over once its Spark session is ready, and the older run ends. Exit code 0: it
    ended or was stopped. 1: the connector or a task FAILED, or another run or worker has taken over its tasks.
    """
    from connectctl.cli.output.prometheus import MetricsFile
    from connectctl.ops.task_runtime.job import job_file as jobs
    from connectctl.ops.task_runtime.job import prepare
    from connectctl.ops.task_runtime.job.job_file import Until
    from connectctl.ops.task_runtime.job.local_plugin import import_from
    from connectctl.ops.task_runtime.spi.plugins import connector_class, importable, path_of
    from connectctl.ops.task_runtime.task.retries import RetryPolicy, default_seconds

    session: Session = ctx.obj
    job = jobs.read(path)
    where = master or job.master or str(session.settings.get("spark.master"))
    prepare.check_master(where, session.timeout)
    importable(job.plugins)
    if job.directory is not None:
        import_from(job.directory)
    if named := job.config.get("connector.class"):
        connector_class(path_of(named), job.directory)  # before anything is opened
    asked = [s for s in (patience, job.patience) if s is not None]
    unmet = not dry_run and (bool(asked) or job.until == Until())
    outage = RetryPolicy([*asked, default_seconds(job.until)][0], terminal.note, wait_for_first_contact=unmet)
    outage("reach Kafka", lambda: meet(session, job))
    scene, ready = outage("read the state of the cluster", lambda: _look(session, job, take_over))
    # Whoever is asked before anything is changed has agreed to nothing yet.
    _check_task_count(scene, ready, outage, store=yes and not dry_run)
    plan = prepare.plan(ready, scene.kafka.cluster_id(), where)
    for note in ready.notes:
        terminal.note(f"warning: {note}")
    if dry_run:
        terminal.emit("Plan", plan.as_json(), output, lambda wide: _print_plan(plan))
        return
    apply.confirm(session, plan, output in (Output.TABLE, Output.WIDE), yes=yes)
    written = MetricsFile(metrics, ready.name, ready.group) if metrics else None
    from connectctl.cli.views import run as run_view
    from connectctl.ops.core.journal import RunState
    from connectctl.ops.task_runtime.job.steps import recorded

    lock = session.cluster_lock if ready.take_over else None
    with recorded(apply.open_journal(), plan, ready.name, lock, outage) as parts:
        try:
            result = _perform(session, scene, ready, where, lease, written, outage, parts)
        finally:
            if parts.hand_back_left:
                terminal.note(
                    f"{ready.name} was not resumed on its workers. If nothing else runs it: "
                    f"connectctl runs resume {parts.run.id}"
                )
        if run_view.exit_code(result):
            parts.journal.end(parts.run.id, RunState.FAILED)

    terminal.emit("TaskRun", run_view.as_json(ready, result), output, lambda wide: run_view.show(ready, result, wide))
    for line in run_view.warnings(ready, result):
        terminal.note(line)
    for line in run_view.failures(ready, result):
        terminal.note(line, style="red")
    if code := run_view.exit_code(result):
        raise typer.Exit(code)


def meet(session: Session, job: Job) -> None:
    """The first request to each cluster. Raises ``NeverAnswered`` and ``UnknownHost``, which others are told apart from."""
    from connectctl.ops.clients.first_contact import first_contact

    with first_contact(str(session.settings.get("bootstrap_servers"))):
        session.kafka.cluster_id()
    if other := _target(session, job):
        with first_contact(other[0]):
            session.other_kafka(*other).cluster_id()


def _look(session: Session, job: Job, take_over: bool) -> tuple[RunClients, PreparedJob]:
    from connectctl.ops.task_runtime.job import prepare

    scene = scene_of(session, job)
    return scene, prepare.prepare_job(scene, job, take_over=take_over)


def _check_task_count(scene: RunClients, ready: PreparedJob, outage: RetryPolicy, *, store: bool) -> None:
    """Raises ``TooManyTasks`` where none of the tasks may run, and stores the statuses FAILED of it with ``store``."""
    from connectctl.ops.task_runtime.job import prepare, task_count

    refused = task_count.refusal(ready.tasks_max)
    if refused is None:
        return
    if store:
        create = partial(prepare.create_topics, ready, scene, terminal.note)
        outage("store the statuses", lambda: task_count.store_failure(ready, scene, create))
    raise refused


def _print_plan(plan: Plan) -> None:
    for line in apply.summary(plan):
        terminal.say(line)


def _target(session: Session, job: Job | None) -> tuple[str, dict[str, str]] | None:
    from connectctl.ops.task_runtime.spi.delivery_settings import target_cluster

    kafka: Any = session.kafka
    return target_cluster(job.config if job else {}, str(kafka.bootstrap))


def scene_of(session: Session, job: Job | None = None) -> RunClients:
    """The edges of a run."""
    from connectctl.ops.task_runtime.job.internal_topics import RunClients

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


def _perform(
    session: Session,
    scene: RunClients,
    ready: PreparedJob,
    master: str,
    lease: float,
    written: MetricsFile | None,
    outage: RetryPolicy,
    parts: RecordedParts,
) -> Result:
    from connectctl.cli.views import run as run_view
    from connectctl.ops.clients.kafka_protocol.run_presence import Presence
    from connectctl.ops.clients.spark.session import close_session, open_session
    from connectctl.ops.task_runtime.job.plugin_distribution import plugin_archives, ship
    from connectctl.ops.task_runtime.job.runner import JobRunner

    conf: dict[str, Any] = {**session.settings.section("spark.conf"), **ready.job.conf}
    if ready.job.packages:
        conf["spark.jars.packages"] = ",".join(ready.job.packages)
    try:
        spark = open_session(master, conf, session.spark_log, terminal.note)
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
                lease,
                presence=presence,
                outage=outage,
                parts=parts,
            )
            result = launch.go()
            if written is not None:
                written.follow(result.run)
            return result
    finally:
        close_session(spark)


@app.command()
def status(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Connector names (default: all).")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """What the status topic says of connectors and tasks, whoever runs them, and when it was said."""
    from connectctl.cli.commands import run_status

    session: Session = ctx.obj
    found = run_status.statuses(scene_of(session), session.group_id, tuple(names or ()))
    terminal.emit("RunStatus", found, output, lambda wide: run_status.show_statuses(found, wide))
