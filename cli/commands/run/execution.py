"""Execute a job file (``connectctl run``), or a plan that its dry run printed
(``connectctl runs apply``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from connectctl.cli import apply
from connectctl.cli.output import terminal
from connectctl.cli.output.prometheus import MetricsFile
from connectctl.cli.output.terminal import Output
from connectctl.cli.plan_file import check_fresh
from connectctl.cli.views import run as run_view
from connectctl.cli.views.run_status import show_statuses
from connectctl.ops.clients.first_contact import first_contact
from connectctl.ops.core.journal import RunState
from connectctl.ops.task_runtime.attempt.control_channel import HEARTBEAT
from connectctl.ops.task_runtime.job import status_report
from connectctl.ops.task_runtime.job.planned_run import PlannedRun, RunAccess, Watch, plan_run
from connectctl.ops.task_runtime.job.run_clients import run_clients, target_of
from connectctl.ops.task_runtime.job.steps import recorded

if TYPE_CHECKING:
    from connectctl.cli.options import ApplyOptions
    from connectctl.cli.session import Session
    from connectctl.ops.core.plan import Plan
    from connectctl.ops.task_runtime.attempt.control_channel import DriverChannel
    from connectctl.ops.task_runtime.job.job_file import Job
    from connectctl.ops.task_runtime.job.run_request import RunRequest
    from connectctl.ops.task_runtime.job.saved_run import SavedRun
    from connectctl.ops.task_runtime.job.scheduler import JobRun


def run_job(
    session: Session, request: RunRequest, options: ApplyOptions, saved: SavedRun | None = None
) -> None:
    """Plan the run of ``request`` and execute it. With ``saved``, execute the saved plan if it
    equals the new one.

    Raises ``Refused`` for a saved plan that is stale or of another cluster, and what planning
    raises.
    """
    run = plan_run(_access(session), request, saved, waits=not options.dry_run)
    if saved is not None:
        check_fresh(saved.plan, run.plan, "connectctl run JOB --dry-run -o json")
        run = replace(run, plan=saved.plan)
    if run.refusal is not None and (options.dry_run or not options.yes):
        raise run.refusal  # no confirmation and no journal entry for a run that is refused
    for note in run.job.notes:
        terminal.note(f"warning: {note}")
    if options.dry_run:
        terminal.emit(
            "Plan", run.plan.as_json(), options.output, lambda wide: _print_plan(run.plan)
        )
        return
    apply.confirm(session, run.plan, options.output.for_people, yes=options.yes)
    _execute(session, run, options.output)


def _access(session: Session) -> RunAccess:
    conf = session.settings.section("spark.conf")
    master = str(session.settings.get("spark.master"))
    opened = (partial(contact_clusters, session), lambda job: run_clients(session, job))
    return RunAccess(*opened, session.timeout, master, conf, session.spark_log, terminal.note)


def _execute(session: Session, run: PlannedRun, output: Output) -> None:
    """Execute the plan as a run of the journal, and print its result. Exits with the code of the
    result.
    """
    ready, metrics = run.job, run.request.metrics
    metrics_file = MetricsFile(Path(metrics), ready.name, ready.group) if metrics else None
    lock = session.cluster_lock if ready.take_over else None
    with recorded(session.journal(), run.plan, ready.name, lock, run.outage) as parts:
        if refused := run.refusal:
            run.store_refusal(refused, parts)
        try:
            result = run.perform(parts, lambda: _watching(run, metrics_file))
            if metrics_file is not None:
                metrics_file.follow(result.run)
        finally:
            if parts.hand_back_left:
                terminal.note(
                    f"{ready.name} was not resumed on its workers. If nothing else runs it: "
                    f"connectctl runs resume {parts.run.id}"
                )
        if run_view.exit_code(result):
            parts.journal.end(parts.run.id, RunState.FAILED)

    terminal.emit(
        "TaskRun",
        run_view.as_json(ready, result),
        output,
        lambda wide: run_view.show(ready, result, wide),
    )
    for line in run_view.warnings(ready, result):
        terminal.note(line)
    for line in run_view.failures(ready, result):
        terminal.note(line, style="red")
    if code := run_view.exit_code(result):
        raise typer.Exit(code)


@contextmanager
def _watching(planned: PlannedRun, metrics_file: MetricsFile | None) -> Iterator[Watch]:
    """Yield the callback of a run: it shows the progress and writes the metrics file."""
    written = 0.0
    with run_view.progress(planned.job) as report:

        def watch(run: JobRun, board: DriverChannel) -> None:
            nonlocal written
            report(run, board)
            if metrics_file is not None and time.monotonic() - written >= HEARTBEAT:
                metrics_file.follow(run)
                written = time.monotonic()

        yield watch


def show_status(session: Session, names: Sequence[str], output: Output) -> None:
    """Print the statuses of ``names`` in the status topics; of all connectors if none is given."""
    found = status_report.statuses(run_clients(session), session.group_id, tuple(names))
    terminal.emit("RunStatus", found, output, lambda wide: show_statuses(found, wide))


def contact_clusters(session: Session, job: Job) -> None:
    """Send the first request to each cluster. Raises ``NeverAnswered`` and ``UnknownHost``, unlike
    later requests.
    """
    with first_contact(str(session.settings.get("bootstrap_servers"))):
        session.kafka.cluster_id()
    if other := target_of(session, job):
        with first_contact(other[0]):
            session.other_kafka(*other).cluster_id()


def _print_plan(plan: Plan) -> None:
    for line in apply.summary(plan):
        terminal.say(line)
