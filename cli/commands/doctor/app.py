"""``connectctl doctor``: what is wrong with a cluster now, since when, why, and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from connectctl.cli import html_file
from connectctl.cli.commands.doctor import modes
from connectctl.cli.options import (
    ConnectorsArgument,
    DryRunOption,
    ExplainOption,
    HtmlOption,
    ListFindingsOption,
    ReportOptions,
    YesOption,
    with_options,
)
from connectctl.cli.output import findings
from connectctl.cli.output.prometheus import MetricsFile
from connectctl.cli.views import checks
from connectctl.cli.views import doctor as view

if TYPE_CHECKING:
    from connectctl.ops.checks.runner import CheckRun
    from connectctl.ops.clients.protocols import Clients

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
@with_options
def doctor(
    ctx: typer.Context,
    connectors: ConnectorsArgument = None,
    explain: ExplainOption = None,
    list_: ListFindingsOption = False,
    prometheus: Annotated[
        Path | None,
        typer.Option(
            "--prometheus",
            metavar="FILE",
            help="Write the findings as metrics for the textfile collector of Prometheus' node "
            "exporter.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", metavar="BUNDLE", help="Read a bundle instead of a cluster."),
    ] = None,
    html: HtmlOption = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until ^C.")] = False,
    interval: Annotated[
        float, typer.Option(metavar="SECONDS", help="Refresh interval of --watch, at least 0.5.")
    ] = 10.0,
    heal: Annotated[
        bool,
        typer.Option(
            "--heal", help="Cure what is transient: restart it, or end a transaction as decided."
        ),
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
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
      connectctl doctor --html doctor.html  a page with the states of each connector over time
      connectctl doctor --watch             refreshed in place: what comes and what goes
      connectctl doctor --heal --dry-run    which cures are due, and what is left alone
      connectctl doctor -f bundle.zip       the verdict of a bundle, as of its time

    Reads the group, the workers' topics and the coordinators, and asks every worker; it works from
    Kafka alone where no worker answers, and changes nothing. What could not be read is a finding of
    its own. With --heal it changes what it says: it restarts what failed of a cause that passes,
    makes blocked fencing quick, and ends transactions that hang as their coordinator decided; at
    most 3 cures of a connector in an hour, never one again that did not help, never a stop. Exit
    code 0: no finding of the severity of --fail-on or above; 1: at least one.
    """
    if explain is not None:
        checks.explain_finding(explain)
        return
    if list_:
        checks.list_findings()
        return
    modes.check(
        {"--watch": watch, "--heal": heal, "-f": file, "--html": html, "--prometheus": prometheus},
        {"--dry-run": dry_run, "--yes": yes},
        connectors,
    )
    if heal:
        modes.heal(ctx.obj, connectors or [], options, dry_run=dry_run, yes=yes)
        return
    if watch:
        modes.watch(ctx.obj, connectors or [], options, interval)
        return
    html_file.check(html)
    metrics = None if prometheus is None else MetricsFile(prometheus, "--prometheus")
    clients, run = modes.check_run(ctx.obj, connectors or [], file)
    _report(run, options, metrics, html, clients)


def _report(
    run: CheckRun,
    options: ReportOptions,
    file: MetricsFile | None,
    html: Path | None,
    clients: Clients,
) -> None:
    found = findings.kept(run.findings(), options.ignore)
    if file is not None:
        file.replace("".join(view.metrics(run, found)))
    if html is not None:
        from connectctl.cli.views import doctor_html, html_origin

        origin = html_origin.origin(clients, run.now, run.context.view.cluster_id)
        html_file.write(html, doctor_html.page(run, found, origin))
    findings.emit_report(
        "Doctor", view.data(run, found), found, options, lambda wide: view.show(run, found, wide)
    )
    raise typer.Exit(findings.exit_code(found, options.fail_on))
