"""``connectctl transactions``: list transactions, find hanging ones, end them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from connectctl.cli import completed_names
from connectctl.cli.commands.transactions import end as transactions_end
from connectctl.cli.options import ConnectorsArgument, ListOption, OutputOption, command_group
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.views import transactions
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.finding import Finding, Severity
from connectctl.ops.operations.transactions.sources import (
    directory_of,
    group_of,
    roles_of,
    visible_roles_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from connectctl.cli.session import Session
    from connectctl.ops.kafka.visibility import Observation

app = command_group("List transactions, and end them.")

TopicsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="A topic; may be repeated.",
        autocompletion=completed_names.topics,
    ),
]


@app.command("list")
def list_(
    ctx: typer.Context,
    connectors: ConnectorsArgument = None,
    states: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help="Only this state; may be repeated."),
    ] = None,
    longer_than: Annotated[
        float | None,
        typer.Option(
            "--longer-than",
            metavar="SECONDS",
            min=0,
            help="Only transactions that are open for longer.",
        ),
    ] = None,
    prefixes: Annotated[
        list[str] | None,
        typer.Option("--prefix", metavar="P", help="Only ids that begin with P; may be repeated."),
    ] = None,
    open_only: Annotated[bool, typer.Option("--open", help="Only open transactions.")] = False,
    output: ListOption = Output.TABLE,
) -> None:
    """List transactional ids with their transactions.

    \b
    Examples:
      connectctl transactions list --open
      connectctl transactions list --longer-than 60         open for more than a minute
      connectctl transactions list orders -o wide           of a connector, with partitions
      connectctl transactions list --state PrepareCommit -o json

    States: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort,
    PrepareEpochFence.
    """
    from connectctl.ops.kafka.visibility import gap_findings
    from connectctl.ops.operations.transactions.listing import (
        Criteria,
        check_connectors,
        find,
        known_states,
        with_pending,
    )

    session: Session = ctx.obj
    criteria = Criteria(
        known_states(states or ()),
        longer_than,
        tuple(prefixes or ()),
        tuple(connectors or ()),
        open_only,
    )
    if criteria.connectors:
        _ = session.group_id
    directory = directory_of(session)
    now = time.time()
    found = find(session.transactions, directory.seen, criteria, group_of(session), now)
    check_connectors(found, directory, criteria, group_of(session))
    found = replace(
        found, found=with_pending(session.transactions, session.group_offsets, found.found)
    )
    # Connectors that are not seen matter where they were asked for, or where a transaction has no
    # known owner.
    matters = bool(criteria.connectors) or not all(each.known for each in found.found)
    findings = (*gap_findings(directory.gaps if matters else ()), *found.findings)
    data = {
        "clusterId": session.transactions.cluster_id(),
        "transactions": [each.as_json(now) for each in found.found],
        "findings": [finding.as_json() for finding in findings],
    }
    terminal.emit(
        "TransactionList",
        data,
        output,
        lambda wide: transactions.print_list(found.found, now, wide),
        findings,
    )


@app.command()
def show(
    ctx: typer.Context,
    id: Annotated[
        str,
        typer.Argument(
            metavar="TRANSACTIONAL-ID", autocompletion=completed_names.transactional_ids
        ),
    ],
    output: OutputOption = Output.TABLE,
) -> None:
    """Show one transactional id: its state, epoch and time-out, since when it is open and where,
    and its owner.

    \b
    Examples:
      connectctl transactions show connect-prod-orders-0
      connectctl transactions show connect-prod-orders-0 -o json | jq .transaction.state
    """
    from connectctl.ops.connect.transactional_ids import ambiguities
    from connectctl.ops.kafka.visibility import gap_findings
    from connectctl.ops.operations.transactions import listing

    session: Session = ctx.obj
    directory = directory_of(session)
    described = listing.describe_one(session.transactions, directory.seen, id)
    (found,) = listing.with_pending(session.transactions, session.group_offsets, [described])
    now = time.time()
    gaps = (*(() if found.known else directory.gaps), *listing.hidden_topics(found.transaction))
    doubts = [*gap_findings(gaps), *ambiguities(directory.seen, [id])]
    data = {
        "clusterId": session.transactions.cluster_id(),
        "transaction": found.as_json(now),
        "findings": [finding.as_json() for finding in doubts],
    }
    terminal.emit(
        "Transaction", data, output, lambda wide: transactions.print_one(found, now), doubts
    )


@app.command()
def hanging(
    ctx: typer.Context, topics: TopicsOption = None, output: OutputOption = Output.TABLE
) -> None:
    """Find open transactions that their coordinator no longer knows, on all topics, internal ones
    included.

    \b
    Examples:
      connectctl transactions hanging
      connectctl transactions hanging --topic connect-offsets -o json

    No coordinator ends such a transaction, and read_committed consumers cannot read past it. Each
    partition is read before and after the coordinators, so every transaction that is listed is
    certain to hang. One that may hang, but whose transactional id this principal may not see, is a
    finding (TXN010), and notProven in JSON. DECIDED is the outcome that the coordinator had decided
    before the marker was lost, if __transaction_state proves it; -o wide says why. Exit code 1: a
    transaction hangs, or something could not be read.
    """
    from connectctl.ops.operations.transactions.operations import searched

    session: Session = ctx.obj
    found, notes = searched(session, topics)
    for note in notes:
        terminal.note(f"warning: {note}")
    now = time.time()
    data = {
        "clusterId": session.transactions.cluster_id(),
        "partitionsSearched": found.partitions,
        "hanging": [each.as_json(now) for each in found.found],
        "notProven": [each.as_json(now) for each in found.unproven],
        "findings": [finding.as_json() for finding in found.findings],
    }
    terminal.emit(
        "HangingTransactions",
        data,
        output,
        lambda wide: transactions.print_hanging(found, now, wide),
        found.findings,
    )
    if found.found or _troubling(found.findings):
        raise typer.Exit(1)


@app.command()
def lag(
    ctx: typer.Context, topics: TopicsOption = None, output: OutputOption = Output.TABLE
) -> None:
    """Compare last stable offset and high watermark on the internal topics, and list what blocks
    consumers.

    \b
    Examples:
      connectctl transactions lag
      connectctl transactions lag --topic orders            another topic instead
      connectctl transactions lag -o json | jq '.partitions[] | select(.lag > 0)'

    Workers and tasks read config and offsets topics to their end before they start; an open
    transaction there makes them wait, a hanging one forever. Exit code 1: a transaction hangs, is
    open for more than a minute, or a partition could not be read.
    """
    from connectctl.ops.kafka.visibility import Complete, gap_findings
    from connectctl.ops.operations.transactions.lag import measure

    session: Session = ctx.obj
    known: Observation[dict[str, str]] = Complete({})
    if group_of(session) or not topics:
        known = visible_roles_of(session) if topics else roles_of(session)
    roles = {topic: known.seen.get(topic, "data") for topic in topics} if topics else known.seen
    now = time.time()
    directory = directory_of(session)
    found = measure(session.transactions, directory.seen, roles, now)
    # Named topics need no roles; and connectors that are not seen matter only where a transaction
    # has no known owner.
    gaps = () if topics else known.gaps
    suspects = [each.suspect for each in found.partitions if each.suspect]
    unowned = any(each.transaction is None or not each.transaction.known for each in suspects)
    findings = (*gap_findings((*gaps, *(directory.gaps if unowned else ()))), *found.findings)
    missing = sorted(
        set(roles)
        - {each.partition.topic for each in found.partitions}
        - {f.subject for f in found.findings}
    )
    if missing:
        raise BadInput(f"Topic not found: {', '.join(missing)}", code="unknown-topic")
    data = {
        "clusterId": session.transactions.cluster_id(),
        "partitions": [each.as_json(now) for each in found.partitions],
        "findings": [finding.as_json() for finding in findings],
    }
    terminal.emit(
        "TransactionLag",
        data,
        output,
        lambda wide: transactions.print_lag(found.partitions, now, wide),
        findings,
    )
    if _troubling(findings):
        raise typer.Exit(1)


for command in (transactions_end.abort, transactions_end.commit):
    app.command()(command)


def _troubling(findings: Iterable[Finding]) -> bool:
    """Whether a finding is a warning or an error."""
    return any(finding.severity is not Severity.INFO for finding in findings)
