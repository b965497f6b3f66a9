"""``connectctl doctor``: what is wrong with a cluster now, since when, why, and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from connectctl.cli import completed_names
from connectctl.cli.options import ConnectorsArgument, ReportOptions, with_options
from connectctl.cli.output import findings
from connectctl.cli.output.prometheus import MetricsFile
from connectctl.cli.views import checks
from connectctl.cli.views import doctor as view

if TYPE_CHECKING:
    from connectctl.ops.checks.runner import CheckRun

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
@with_options
def doctor(
    ctx: typer.Context,
    connectors: ConnectorsArgument = None,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="ID",
            help="Explain a finding in full.",
            autocompletion=completed_names.findings,
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List all findings.")] = False,
    prometheus: Annotated[
        Path | None,
        typer.Option(
            "--prometheus",
            metavar="FILE",
            help="Write the findings as metrics for the textfile collector of Prometheus' node "
            "exporter.",
        ),
    ] = None,
    options: ReportOptions = ReportOptions(),
) -> None:
    """Find what is wrong with a cluster now: since when, why, and the command to type.

    \b
    Examples:
      connectctl doctor                     the cluster, its workers, connectors and tasks
      connectctl doctor orders              the cluster, and the connector orders
      connectctl doctor --explain FAIL001   what the finding means, and what to do
      connectctl doctor -o json             for scripts, with a timeline of what has changed
      connectctl doctor --prometheus doctor.prom

    Reads the group, the workers' topics and the coordinators, and asks every worker; it works from
    Kafka alone where no worker answers, and changes nothing. What could not be read is a finding of
    its own. Exit code 0: no finding of the severity of --fail-on or above; 1: at least one.
    """
    if explain is not None:
        checks.explain_finding(explain)
        return
    if list_:
        checks.list_findings()
        return
    from connectctl.ops.checks.runner import doctor_run

    file = None if prometheus is None else MetricsFile(prometheus, "--prometheus")
    run = checks.checked(ctx.obj, lambda: doctor_run(ctx.obj, connectors or []))
    _report(run, options, file)


def _report(run: CheckRun, options: ReportOptions, file: MetricsFile | None) -> None:
    found = findings.kept(run.findings(), options.ignore)
    if file is not None:
        file.replace("".join(view.metrics(run, found)))
    findings.emit_report(
        "Doctor", view.data(run, found), found, options, lambda wide: view.show(run, found, wide)
    )
    raise typer.Exit(findings.exit_code(found, options.fail_on))
