"""``connectctl transactions``: see transactions, find those that hang, end them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from connectctl.cli import apply, complete, render, transactionview
from connectctl.cli.apply import DryRunOption, OutputOption, YesOption
from connectctl.cli.render import Output
from connectctl.cli.sources import directory_of, group_of, roles_of, sources_of
from connectctl.ops.errors import BadInput

if TYPE_CHECKING:
    from connectctl.cli.context import Session
    from connectctl.ops.plan import Plan
    from connectctl.ops.transactions.hanging import Hanging, Search

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="See transactions, and end them.")

TopicsOption = Annotated[list[str] | None, typer.Option("--topic", metavar="TOPIC", help="A topic; may be repeated.")]


@app.command("list")
def list_(
    ctx: typer.Context,
    connectors: Annotated[
        list[str] | None, typer.Argument(metavar="[CONNECTOR]...", autocompletion=complete.connectors)
    ] = None,
    states: Annotated[
        list[str] | None, typer.Option("--state", metavar="STATE", help="Only this state; may be repeated.")
    ] = None,
    longer_than: Annotated[
        float | None, typer.Option("--longer-than", metavar="SECONDS", min=0, help="Only what is open for longer.")
    ] = None,
    prefixes: Annotated[
        list[str] | None, typer.Option("--prefix", metavar="P", help="Only ids that begin with P; may be repeated.")
    ] = None,
    open_only: Annotated[bool, typer.Option("--open", help="Only open transactions.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List transactional ids with their transactions.

    \b
    Examples:
      connectctl transactions list --open
      connectctl transactions list --longer-than 60         open for more than a minute
      connectctl transactions list orders -o wide           of a connector, with partitions
      connectctl transactions list --state PrepareCommit -o json

    States: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, PrepareEpochFence.
    """
    from connectctl.ops.transactions.listing import Filter, find

    session: Session = ctx.obj
    wish = Filter(_known_states(states), longer_than, tuple(prefixes or ()), tuple(connectors or ()), open_only)
    if wish.connectors:
        _ = session.group_id
    directory = directory_of(session)
    now = time.time()
    found = find(session.transactions, directory, wish, group_of(session), now)
    data = {
        "clusterId": session.transactions.cluster_id(),
        "transactions": [each.as_json(now) for each in found.found],
        "findings": [finding.as_json() for finding in found.findings],
    }
    render.emit("TransactionList", data, output, lambda wide: transactionview.print_list(found.found, now, wide))
    _findings(found.findings, output)


@app.command()
def show(
    ctx: typer.Context,
    id: Annotated[str, typer.Argument(metavar="TRANSACTIONAL-ID")],
    output: OutputOption = Output.TABLE,
) -> None:
    """Show one transactional id: its state, epoch and time-out, since when it is open and where, and whose it is.

    \b
    Examples:
      connectctl transactions show connect-prod-orders-0
      connectctl transactions show connect-prod-orders-0 -o json | jq .transaction.state
    """
    from connectctl.ops.model.ownership import ambiguities
    from connectctl.ops.transactions import listing

    session: Session = ctx.obj
    directory = directory_of(session)
    found = listing.show(session.transactions, directory, id)
    now = time.time()
    doubts = ambiguities(directory, [id])
    data = {
        "clusterId": session.transactions.cluster_id(),
        "transaction": found.as_json(now),
        "findings": [finding.as_json() for finding in doubts],
    }
    render.emit("Transaction", data, output, lambda wide: transactionview.print_one(found, now))
    _findings(doubts, output)


@app.command()
def hanging(ctx: typer.Context, topics: TopicsOption = None, output: OutputOption = Output.TABLE) -> None:
    """Find open transactions on partitions that their coordinator no longer knows, on all topics, internal ones too.

    \b
    Examples:
      connectctl transactions hanging
      connectctl transactions hanging --topic connect-offsets -o json

    Nobody will end such a transaction, and read_committed readers never get beyond it. Every partition is looked at
    twice, with the coordinators in between, so that what is listed hangs for certain. Exit code 1: something hangs, or
    something could not be looked at.
    """
    session: Session = ctx.obj
    found = _search(session, topics)
    now = time.time()
    data = {
        "clusterId": session.transactions.cluster_id(),
        "partitionsSearched": found.partitions,
        "hanging": [each.as_json(now) for each in found.found],
        "findings": [finding.as_json() for finding in found.findings],
    }
    render.emit("HangingTransactions", data, output, lambda wide: transactionview.print_hanging(found, now))
    _findings(found.findings, output)
    if found.found or found.findings:
        raise typer.Exit(1)


@app.command()
def abort(
    ctx: typer.Context,
    id: Annotated[str | None, typer.Argument(metavar="[TRANSACTIONAL-ID]")] = None,
    topic: Annotated[str | None, typer.Option(metavar="TOPIC", help="Where a transaction hangs.")] = None,
    partition: Annotated[int | None, typer.Option(metavar="N", min=0, help="The partition of it.")] = None,
    start_offset: Annotated[int | None, typer.Option(metavar="N", min=0, help="Where it begins.")] = None,
    producer_id: Annotated[int | None, typer.Option(metavar="N", min=0, help="Whose it is.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Even where a running task fails by it.")] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """End one transaction: an open one by its id, a hanging one by its partition.

    \b
    Examples:
      connectctl transactions abort connect-prod-orders-0
      connectctl transactions abort --topic connect-offsets --partition 7 --start-offset 4711 --yes

    An open transaction is aborted by its coordinator, which fences the producer. A hanging one has no coordinator, and
    gets an abort marker in its partition, for which the brokers want the right ClusterAction; what does not hang is
    refused (exit code 4). Its records are gone for readers then, also where the coordinator had decided to commit them and
    the broker lost the marker, as 4.3.1 may when it restarts (KAFKA-20734): look at its other partitions first.
    """
    session: Session = ctx.obj
    if (id is None) == (topic is None) or (topic is None) != (partition is None):
        hint = "Give a transactional id, or --topic and --partition of a hanging transaction."
        raise BadInput("One transaction must be named", next_step=hint, code="usage")
    if id is not None:
        plan = _plan_open(session, id, force)
    else:
        plan = _plan_hanging(session, str(topic), int(partition or 0), start_offset, producer_id)
    from connectctl.ops.transactions.abort import AbortHands

    hands = AbortHands(session.transactions, session.timeout)
    apply.apply(session, plan, hands, dry_run=dry_run, yes=yes, output=output)


@app.command()
def lag(ctx: typer.Context, topics: TopicsOption = None, output: OutputOption = Output.TABLE) -> None:
    """Compare last stable offset and high watermark on the internal topics, and name what holds readers back.

    \b
    Examples:
      connectctl transactions lag
      connectctl transactions lag --topic orders            another topic instead
      connectctl transactions lag -o json | jq '.partitions[] | select(.lag > 0)'

    Workers and tasks read config and offsets topics to their end before they start; an open transaction there makes them
    wait, a hanging one forever. Exit code 1: a transaction hangs, is open for more than a minute, or a partition could
    not be looked at.
    """
    from connectctl.ops.transactions.lag import measure

    session: Session = ctx.obj
    roles = dict.fromkeys(topics, "data") if topics else roles_of(session)
    if topics and group_of(session):
        known = roles_of(session)
        roles = {topic: known.get(topic, "data") for topic in topics}
    now = time.time()
    found = measure(session.transactions, directory_of(session), roles, now)
    missing = sorted(set(roles) - {each.place.topic for each in found.partitions} - {f.subject for f in found.findings})
    if missing:
        raise BadInput(f"There is no topic {', '.join(missing)}", code="unknown-topic")
    data = {
        "clusterId": session.transactions.cluster_id(),
        "partitions": [each.as_json(now) for each in found.partitions],
        "findings": [finding.as_json() for finding in found.findings],
    }
    render.emit("TransactionLag", data, output, lambda wide: transactionview.print_lag(found.partitions, now, wide))
    _findings(found.findings, output)
    if found.findings:
        raise typer.Exit(1)


def _known_states(given: list[str] | None) -> tuple[str, ...]:
    """The states as Kafka writes them. Raises ``BadInput`` for what is none."""
    from connectctl.ops.model.transactions import STATES

    by_name = {state.lower(): state for state in STATES}
    unknown = [state for state in given or () if state.lower().replace("-", "") not in by_name]
    if unknown:
        raise BadInput(f"There is no state {unknown[0]}", next_step=f"Known states: {', '.join(STATES)}.")
    return tuple(by_name[state.lower().replace("-", "")] for state in given or ())


def _search(session: Session, topics: list[str] | None) -> Search:
    from connectctl.ops.transactions.hanging import search

    calls = session.transactions
    if topics:
        missing = sorted(set(topics) - {place.topic for place in calls.places(topics)})
        if missing:
            raise BadInput(f"There is no topic {', '.join(missing)}", code="unknown-topic")
    roles: dict[str, str] = {}
    if group_of(session):
        try:
            roles = roles_of(session)
        except BadInput as e:
            render.note(f"warning: which topics are the workers' is not known: {e}")
    return search(calls, topics, roles)


def _plan_open(session: Session, id: str, force: bool) -> Plan:
    from connectctl.ops.fence.observe import observe
    from connectctl.ops.fence.planning import plan_fence
    from connectctl.ops.fence.snapshot import Wish
    from connectctl.ops.model.ownership import LEADER
    from connectctl.ops.transactions.abort import plan_abort_open

    # A leader's transaction is asked for by its whole id, which is as plain as --leader; with --leader alone the plan
    # would have the group's own leader in it, too.
    wish = Wish(ids=(id,), leader=id.startswith(LEADER))
    sources = sources_of(session, wish)
    snapshot = observe(replace(sources, group_id=None) if id.startswith(LEADER) else sources, wish)
    plan = plan_fence(snapshot, wish)
    render.findings(plan.findings)
    return plan_abort_open(plan, force=force)


def _plan_hanging(session: Session, topic: str, partition: int, start: int | None, producer_id: int | None) -> Plan:
    from connectctl.ops.errors import Refused
    from connectctl.ops.model.transactions import Place
    from connectctl.ops.transactions.abort import plan_abort_hanging
    from connectctl.ops.transactions.hanging import pick

    place = Place(topic, partition)
    found = pick(_search(session, [topic]).found, place, start, producer_id)
    if not found:
        raise Refused(
            f"No such transaction hangs on {place}; nothing was done",
            why="what is open there is known to its coordinator, or nothing is open",
            next_step="See connectctl transactions lag; an open transaction is aborted by its id.",
            code="not-hanging",
        )
    if len(found) > 1:
        starts = ", ".join(_named(each) for each in found)
        raise BadInput(f"Several transactions hang on {place}: {starts}", next_step="Give --producer-id.")
    render.note(
        "warning: The abort takes its records from readers. A broker that restarted may have lost the marker of a commit "
        "(KAFKA-20734): see with connectctl audit --headers-only whether its other partitions have one."
    )
    return plan_abort_hanging(session.transactions.cluster_id(), found[0])


def _named(found: Hanging) -> str:
    return f"producer {found.producer.producer_id} from offset {found.producer.start_offset}"


def _findings(findings: object, output: Output) -> None:
    if output in (Output.TABLE, Output.WIDE):
        render.findings(findings)  # type: ignore[arg-type]
