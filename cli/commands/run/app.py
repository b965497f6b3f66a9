"""``connectctl run``: a connector's tasks on Spark, exactly once, from a job file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from connectctl.cli import completed_names, flow
from connectctl.cli.options import ApplyOptions, DryRunOption, ListOption, YesOption, with_options
from connectctl.cli.output.terminal import Output
from connectctl.ops.core.errors import BadInput
from typer.core import TyperGroup

if TYPE_CHECKING:
    pass


class JobOrCommand(TyperGroup):
    """``run FILE`` is ``run job FILE``: an argument that is not a command is a job file or an
    option of it.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["job", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=JobOrCommand, rich_markup_mode=None, add_completion=False, no_args_is_help=True
)


@app.callback()
def run() -> None:
    """Run a connector's tasks on Spark with Connect's own ids, offsets and guarantees.

    \b
    Examples:
      connectctl run numbers.yaml --group-id spark-jobs   a job file; no worker is needed
      connectctl run numbers.yaml --take-over             a connector of the workers; it is stopped there
      connectctl run archive.yaml --sweep                 remove files that no task of a ParquetArchive has committed
      connectctl run status                               state of connectors and tasks

    \b
    A job file:
      name: numbers
      config: {connector.class: FileStreamSource, file: /in.txt, topic: numbers}
      spark: {master: "local[2]"}
      until: {idle: 5s}        # or records: N, duration: 60s, forever: true
      patience: 5m             # how long to retry when Kafka does not respond

    connector.class is a known name, or MODULE:CLASS: the module is in the directory of the job
    file, is installed, or is in a wheel or zip under plugins.

    With records: N it ends at the first report that reaches N; commits of a task that was killed
    before it reported are not counted. idle ends at the end of the source even if tasks were
    killed.
    """


@app.command()
@with_options
def job(
    ctx: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="JOB", help="The job file.")],
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Spark master; overrides job file and context."),
    ] = None,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="Stop the connector on its live workers, and resume it there afterwards.",
        ),
    ] = False,
    lease: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=1,
            help="How long a Spark task lasts at most; all are then started anew.",
        ),
    ] = 3600.0,
    patience: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="How long to retry when Kafka does not respond; overrides the job file. Default: "
            "300 for a run without an end, else 120. A run without an end or with --patience "
            "also waits for a cluster that has never responded.",
        ),
    ] = None,
    metrics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for metrics of the tasks in Prometheus format, written every second.",
        ),
    ] = None,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep",
            help="Run nothing: remove files of a ParquetArchive that its manifest does not name.",
        ),
    ] = False,
    init: Annotated[
        bool,
        typer.Option(
            "--init",
            help="Run nothing: write a new source connector JOB.py, test_JOB.py and JOB.yaml.",
        ),
    ] = False,
    options: ApplyOptions = ApplyOptions(),
) -> None:
    """Run a job file. SIGTERM and ^C end it after a last commit; a second one ends it immediately.

    It resumes from the source offsets of its connector, whoever wrote them: it can be killed and
    run again. To change a running job, run the changed file: it takes over once its Spark session
    is ready, and the older run ends. --sweep is refused while a run or a member of the group may
    still commit files.

    Exit code 0: it ended or was stopped. 1: the connector or a task FAILED, another run or worker
    has taken over its tasks.
    """
    if init:
        from connectctl.cli.commands.run.init import write_skeleton

        others = {
            "--master": master,
            "--take-over": take_over,
            "--metrics": metrics,
            "--sweep": sweep,
        }
        write_skeleton(path, others, dry_run=options.dry_run, output=options.output)
        return
    if sweep:
        from connectctl.cli.commands.run.sweep import sweep_job

        given = {
            "--master": master,
            "--take-over": take_over,
            "--patience": patience,
            "--metrics": metrics,
        }
        sweep_job(ctx.obj, path, given, options)
        return
    from connectctl.ops.task_runtime.job.run_operation import RunJob
    from connectctl.ops.task_runtime.job.run_request import RunRequest

    request = RunRequest(
        str(path), master, take_over, lease, patience, str(metrics) if metrics else None
    )
    flow.perform(ctx.obj, RunJob(), request, options)


@app.command()
def status(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Connector names (default: all).",
            autocompletion=completed_names.connectors,
        ),
    ] = None,
    remove: Annotated[
        bool,
        typer.Option(
            "--remove-members",
            help="Remove the static members that a killed run left in its consumer group.",
        ),
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: ListOption = Output.TABLE,
) -> None:
    """Show the states of connectors and tasks in the status topic, from workers and runs, with
    their time.

    \b
    Examples:
      connectctl run status
      connectctl run status orders --remove-members   also remove the group members that a killed run left

    --remove-members is refused while a run of the connector is alive, or if that is unknown.
    """
    from connectctl.cli.output import terminal
    from connectctl.cli.views.run_status import show_statuses
    from connectctl.ops.task_runtime.job import status_report
    from connectctl.ops.task_runtime.job.members_operation import RemoveLeftMembers
    from connectctl.ops.task_runtime.job.run_clients import run_clients

    if remove:
        flow.perform(
            ctx.obj, RemoveLeftMembers(), tuple(names or ()), ApplyOptions(dry_run, yes, output)
        )
        return
    if dry_run or yes:
        option = "--dry-run" if dry_run else "--yes"
        raise BadInput(
            f"{option} has no effect without --remove-members", next_step=f"Leave out {option}."
        )
    session = ctx.obj
    found = status_report.statuses(run_clients(session), session.group_id, tuple(names or ()))
    terminal.emit("RunStatus", found, output, lambda wide: show_statuses(found, wide))
