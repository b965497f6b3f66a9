"""``connectctl validate``: validation of a connector's configuration before it is sent to
workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from connectctl.cli.options import (
    EnvFileOption,
    ForVersionOption,
    RecursiveOption,
    ReportOptions,
    SetOption,
    with_options,
)
from connectctl.cli.output import findings as output_findings
from connectctl.cli.output import terminal
from connectctl.ops.core.errors import BadInput, ConnectctlError, Refused

if TYPE_CHECKING:
    from connectctl.cli.session import Session
    from connectctl.ops.config.connector_file import Given
    from connectctl.ops.connector_config.report import Known, Report
    from connectctl.ops.connector_config.subject import Validation
    from connectctl.ops.core.finding import Finding

NOT_VALIDATED = 5
"""The exit code if no worker has validated a configuration: that of workers that do not respond."""
app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
@with_options
def validate(
    ctx: typer.Context,
    file: Annotated[
        list[Path],
        typer.Option(
            "--file",
            "-f",
            metavar="FILE|DIR",
            help="JSON, YAML or .properties, - for stdin. Repeatable.",
        ),
    ],
    offline: Annotated[
        bool, typer.Option("--offline", help="Do not contact a cluster, even if one is configured.")
    ] = False,
    for_: Annotated[
        Literal["now", "preparing", "enabled"],
        typer.Option("--for", help="Target exactly.once.source.support of the workers."),
    ] = "now",
    for_version: ForVersionOption = None,
    recursive: RecursiveOption = False,
    env_file: EnvFileOption = None,
    assigned: SetOption = None,
    options: ReportOptions = ReportOptions(),
) -> None:
    """Validate a connector configuration: refused, accepted, or accepted and failing later.

    \b
    Examples:
      connectctl validate -f orders.json                       by every worker, and by connectctl's own rules
      connectctl validate -f orders.yaml --for enabled         as if exactly-once were enabled
      connectctl validate -f orders.yaml --for-version 5.0     and what workers of 5.0 will refuse
      connectctl validate -f a.json -f b.properties --offline  without a cluster
      connectctl validate -f connectors/ --recursive --env-file prod.env
      connectctl connectors show orders -o json | connectctl validate -f -
      connectctl validate -f orders.json --fail-on warning -o github

    A file has name and config, as POST /connectors takes them, or the properties alone, or what
    connectors show -o json prints, or Strimzi's manifests; or a list of these. Every worker
    validates it, which changes nothing. Different answers of workers are a finding, and so is a
    worker that does not answer. Messages are those of the worker if it gives any; connectctl's
    rules add what workers accept and what fails later. --env-file and --set replace ${NAME}, never
    ${file:…}. Exit code 0: no finding of the severity of --fail-on or above; 1: at least
    one; 2: a file cannot be read; 5: no worker of the cluster has validated a configuration.
    """
    from connectctl.ops.clients.secrets import reveal
    from connectctl.ops.connect.goal import Goal
    from connectctl.ops.connector_config import report
    from connectctl.ops.operations.connectors.config.reading import read, reading_of

    release = output_findings.release(for_version)
    reading = reading_of(env_file, assigned, terminal.note, recursive=recursive)
    given = read(file, None if offline else reveal, reading)
    known = None if offline else _read_cluster(ctx.obj, given)
    found = report.report(given, Goal(for_), known, release)
    findings = output_findings.kept(found.findings, options.ignore)
    configurations = [dict(report.as_json(each)) for each in found.verdicts]
    data = {"for": for_, "offline": known is None, "configurations": configurations}
    output_findings.emit_report(
        "Validation",
        data,
        findings,
        options,
        lambda wide: _print(found, findings, wide),
        found.file_of,
    )
    code = output_findings.exit_code(findings, options.fail_on)
    raise typer.Exit(NOT_VALIDATED if not code and found.not_validated else code)


def _read_cluster(session: Session, given: Sequence[Given]) -> Known | None:
    """Read the facts of the cluster; None if none is configured. An unreachable cluster is
    reported, not an error.
    """
    from connectctl.ops.connector_config.report import WORKERS, Known
    from connectctl.ops.core.unseen import Unseen

    if not session.settings.get("rest") and not session.settings.get("bootstrap_servers"):
        return None
    try:
        return _known(session, given)
    except (BadInput, Refused):
        raise
    except ConnectctlError as e:
        why = f"{e.what}: {e.why}" if e.why else e.what
        return Known(
            unseen=(Unseen(WORKERS, why.rstrip("."), e.next_step),),
            named_servers=session.settings.named_servers,
        )


def _known(session: Session, given: Sequence[Given]) -> Known:
    from connectctl.ops.operations.connectors.config.cluster_facts import observe_cluster

    brokers = session.settings.get("bootstrap_servers")
    group = session.group() if brokers else None
    kafka = session.kafka if brokers else None
    calls, servers = session.connect_to(group), session.settings.named_servers
    group_id = session.settings.get("group_id")
    return observe_cluster(
        calls, given, kafka, group, session.named_topics, group_id=group_id, named_servers=servers
    )


def _print(found: Report, findings: tuple[Finding, ...], wide: bool) -> None:
    columns = ["FILE", "CONNECTOR", "TYPE", "OUTCOME", *(["CLASS", "WORKERS"] if wide else [])]
    rows = [
        [
            verdict.given.file,
            verdict.given.name or "-",
            verdict.subject.kind or "-",
            verdict.outcome.value,
            *(
                [
                    verdict.given.config.get("connector.class") or "-",
                    _workers(verdict.subject.validations),
                ]
                if wide
                else []
            ),
        ]
        for verdict in found.verdicts
    ]
    terminal.table(columns, rows)
    terminal.print_line("")
    output_findings.table_of(findings, wide=wide)


def _workers(answers: Sequence[Validation]) -> str:
    return (
        ", ".join(f"{each.worker} {each.problem or each.support.value}" for each in answers)
        or "none asked"
    )
