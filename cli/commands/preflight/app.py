"""``connectctl preflight``: checks a cluster before a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer
from connectctl.cli.options import (
    ConnectorsArgument,
    ExplainOption,
    ForVersionOption,
    ListFindingsOption,
    ReportOptions,
    with_options,
)
from connectctl.cli.output import findings, terminal
from connectctl.cli.views.checks import checked, explain_finding, list_findings
from connectctl.ops.connect.goal import Goal
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.core.finding import Finding, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from connectctl.ops.checks.acls.principals import Principals
    from connectctl.ops.checks.context import CheckContext
    from connectctl.ops.checks.runner import CheckRun

app = typer.Typer(rich_markup_mode=None, add_completion=False)


Emit = Literal["kafka-acls", "yaml"]


@app.command()
@with_options
def preflight(
    ctx: typer.Context,
    connectors: ConnectorsArgument = None,
    for_: Annotated[
        Goal, typer.Option("--for", help="Target exactly.once.source.support of the workers.")
    ] = Goal.NOW,
    principal: Annotated[
        list[str] | None,
        typer.Option(
            "--principal",
            metavar="[[CONNECTOR:]ROLE=]User:NAME",
            help="Check its ACLs. ROLE is worker, producer, consumer, admin or super. Repeatable.",
        ),
    ] = None,
    emit: Annotated[
        Emit | None,
        typer.Option("--emit", help="Print the ACLs that are missing, and nothing else."),
    ] = None,
    prefixed: Annotated[
        bool,
        typer.Option(
            "--prefixed", help="With --emit: one prefixed pattern for all tasks of a connector."
        ),
    ] = False,
    explain: ExplainOption = None,
    self_: Annotated[
        bool,
        typer.Option(
            "--self", help="Check what connectctl itself may do here, with the principal in use."
        ),
    ] = False,
    command: Annotated[
        list[str] | None,
        typer.Option(
            "--command", metavar="COMMAND", help="With --self: this command only. Repeatable."
        ),
    ] = None,
    list_: ListFindingsOption = False,
    for_version: ForVersionOption = None,
    options: ReportOptions = ReportOptions(),
) -> None:
    """Check a cluster and its connectors before a change.

    \b
    Examples:
      connectctl preflight                              the cluster in its present state
      connectctl preflight --for enabled                may exactly-once support be rolled out?
      connectctl preflight orders --for downgrade       may it be rolled back, for the connector orders?
      connectctl preflight --for enabled --principal User:connect
      connectctl preflight --for enabled --principal User:connect --emit kafka-acls > missing.sh
      connectctl preflight --for-version 5.0            what will workers of that release refuse?
      connectctl preflight --explain STORE001           what the finding means, and what to do
      connectctl preflight --for enabled -o sarif > preflight.sarif
      connectctl preflight --self                       which commands do this client's rights allow?
      connectctl preflight --self --command "offsets set" --emit kafka-acls

    Checks brokers, workers, internal topics, every source connector, and the consumers of the
    topics that they write; changes nothing. A check that could not be made is a finding of its own.
    ACLs are checked if a principal is given, or is in a connector's configuration. Exit code 0: no
    finding of the severity of --fail-on or above; 1: at least one.
    """
    if explain is not None:
        explain_finding(explain)
        return
    if list_:
        list_findings()
        return
    if command and not self_:
        raise BadInput("--command requires --self")
    if self_:
        from connectctl.cli.commands.preflight import own_rights

        if emit == "yaml":
            raise BadInput(
                "--self cannot be combined with --emit yaml", next_step="Give --emit kafka-acls."
            )
        if emit is not None:
            own_rights.emit(ctx.obj, connectors or [], command or [], principal or [])
            return
        own_rights.check_self(ctx.obj, connectors or [], command or [], options)
    release = findings.release(for_version)
    given = principals_in(principal or [])
    from connectctl.ops.checks.runner import check_run

    run = checked(
        ctx.obj,
        lambda: check_run(
            ctx.obj, connectors or [], for_, given, acls=emit is not None, release=release
        ),
    )
    if emit is not None:
        _emit(run, emit, prefixed=prefixed)
    else:
        _report(run, options)


def _report(run: CheckRun, options: ReportOptions) -> None:
    found = findings.kept(run.findings(), options.ignore)
    data = {
        "clusterId": run.context.view.cluster_id,
        "groupId": run.context.group.id,
        "for": run.goal.value,
        "connectors": list(run.context.names),
    }
    findings.emit_report(
        "Preflight", data, found, options, lambda wide: _print(run.context, found, wide)
    )
    raise typer.Exit(findings.exit_code(found, options.fail_on))


def principals_in(given: Sequence[str]) -> Principals | None:
    """Return the principals of ``--principal``, or None. Raises ``BadInput`` before anything
    is asked of a cluster.
    """
    from connectctl.ops.checks.acls.principals import parse_principals

    return parse_principals(given) if given else None


def _print(scene: CheckContext, found: tuple[Finding, ...], wide: bool) -> None:
    findings.table_of(found, wide=wide)
    if not found:
        what = (
            f"{counted(len(scene.view.workers), 'worker')}, "
            f"{counted(len(scene.names), 'connector')}"
        )
        terminal.note(f"Checked: {what}, their topics and brokers.", style="dim")


def _emit(run: CheckRun, form: Emit, *, prefixed: bool) -> None:
    from connectctl.ops.checks.acls import emit as acls_emit

    facts, unseen = run.acl_facts()
    if facts is None:
        whys = "; ".join(f"{each.what}: {each.why}" for each in unseen)
        raise ConnectctlError(
            "Could not read the ACLs", why=whys, next_step=unseen[0].next_step if unseen else None
        )
    for each in unseen:
        terminal.note(f"warning: could not check {each.what}: {each.why}", style="yellow")
    terminal.print_line(
        acls_emit.emit(facts, run.goal, form, prefixed=prefixed, unseen=unseen).rstrip("\n")
    )
