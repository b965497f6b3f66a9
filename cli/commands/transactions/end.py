"""``connectctl transactions abort`` and ``commit``: end one transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from connectctl.cli import apply
from connectctl.cli.options import ApplyOptions, with_options
from connectctl.cli.output import terminal
from connectctl.cli.transaction_sources import group_of, sources_of, visible_roles_of
from connectctl.ops.core.errors import BadInput

if TYPE_CHECKING:
    from connectctl.cli.session import Session
    from connectctl.ops.core.plan import Plan
    from connectctl.ops.kafka.visibility import Gap, Observation
    from connectctl.ops.operations.transactions.abort import EndContext
    from connectctl.ops.operations.transactions.hanging import Hanging, Search

TopicOption = Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="Topic of the hanging transaction.")]
PartitionOption = Annotated[
    int | None, typer.Option("--partition", metavar="N", min=0, help="Partition of the transaction.")
]
StartOption = Annotated[
    int | None, typer.Option("--start-offset", metavar="N", min=0, help="First offset of the transaction.")
]
ProducerOption = Annotated[
    int | None, typer.Option("--producer-id", metavar="N", min=0, help="Producer id of the transaction.")
]


@with_options
def abort(
    ctx: typer.Context,
    id: Annotated[str | None, typer.Argument(metavar="[TRANSACTIONAL-ID]")] = None,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    start_offset: StartOption = None,
    producer_id: ProducerOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Even if a task fails, a commit was decided, or it is not proven to hang.")
    ] = False,
    options: ApplyOptions = ApplyOptions(),
) -> None:
    """End one transaction: an open one by its id, a hanging one by its partition.

    \b
    Examples:
      connectctl transactions abort connect-prod-orders-0
      connectctl transactions abort --topic connect-offsets --partition 7 --start-offset 4711 --yes

    An open transaction is aborted by its coordinator, which fences the producer. A hanging one has no coordinator, and
    an abort marker is written to its partition, for which the brokers require the right ClusterAction; a transaction
    that does not hang is refused (exit code 4). Consumers then never read its records. The abort is therefore also
    refused if the transaction log proves that the coordinator had decided to commit and the broker lost the marker, as
    4.3.1 may when it restarts (KAFKA-20734); if the log does not show the outcome, this is a warning. A transaction
    counts as hanging only for a principal that provably sees every transactional id, or has Read on __transaction_state;
    otherwise the abort is refused.
    """
    session: Session = ctx.obj
    if (id is None) == (topic is None) or (topic is None) != (partition is None):
        hint = "Give a transactional id, or --topic and --partition of a hanging transaction."
        raise BadInput("No transaction given, or more than one", next_step=hint, code="usage")
    if id is not None:
        plan = _plan_open(session, id, force)
    else:
        found, gaps = _hanging(session, topic, partition, start_offset, producer_id)
        plan = _plan_abort_hanging(session, found, gaps, force)
    apply.apply(session, plan, context_of(session), options)


@with_options
def commit(
    ctx: typer.Context,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    start_offset: StartOption = None,
    producer_id: ProducerOption = None,
    options: ApplyOptions = ApplyOptions(),
) -> None:
    """Commit a hanging transaction that its coordinator had decided to commit, if a broker lost the marker.

    \b
    Examples:
      connectctl transactions commit --topic orders --partition 7
      connectctl transactions commit --topic orders --partition 7 --start-offset 4711 --yes

    The commit marker that the broker lost (KAFKA-20734) is written, for which the brokers require the right
    ClusterAction. The decided outcome is read from __transaction_state, which requires Read on it; if it and the markers
    in the partition do not prove a commit, the command is refused (exit code 4).
    """
    session: Session = ctx.obj
    if topic is None or partition is None:
        hint = "Give --topic and --partition: connectctl transactions hanging."
        raise BadInput("No hanging transaction given", next_step=hint, code="usage")
    found, gaps = _hanging(session, topic, partition, start_offset, producer_id)
    apply.apply(session, _plan_commit_hanging(session, found, gaps), context_of(session), options)


def searched(session: Session, topics: list[str] | None) -> Search:
    """Find hanging transactions on ``topics``, or on all. Raises ``BadInput`` for a topic that does not exist."""
    from connectctl.ops.kafka.visibility import Complete, gap_findings
    from connectctl.ops.operations.transactions.hanging import search

    calls = session.transactions
    if topics:
        missing = sorted(set(topics) - {place.topic for place in calls.places(topics)})
        if missing:
            raise BadInput(f"Topic not found: {', '.join(missing)}", code="unknown-topic")
    roles: Observation[dict[str, str]] = Complete({})
    if group_of(session):
        try:
            roles = visible_roles_of(session)
        except BadInput as e:
            terminal.note(f"warning: the internal topics of the workers are unknown: {e}")
    found = search(calls, topics, roles.seen, session.transaction_log)
    # The answer about named topics is complete without the roles of others.
    unknown = () if topics else gap_findings(roles.gaps)
    return replace(found, findings=(*unknown, *found.findings))


def _plan_open(session: Session, id: str, force: bool) -> Plan:
    from connectctl.ops.operations.fencing.snapshot import FenceRequest
    from connectctl.ops.operations.transactions.abort import fence_of, plan_abort_open

    selection = fence_of(sources_of(session, FenceRequest()), id)
    terminal.findings(selection.findings)
    return plan_abort_open(selection, force=force, group_id=group_of(session) or "")


def _hanging(
    session: Session, topic: str | None, partition: int | None, start: int | None, producer_id: int | None
) -> tuple[Hanging, tuple[Gap, ...]]:
    """Return the hanging transaction of the partition, and the gaps, because of which it may still be active.

    Raises ``Refused`` if none hangs, ``BadInput`` if several do.
    """
    from connectctl.ops.kafka.topic_partition import TopicPartition

    seen = searched(session, [str(topic)])
    return seen.only_one(TopicPartition(str(topic), int(partition or 0)), start, producer_id), seen.gaps


def _plan_abort_hanging(session: Session, found: Hanging, gaps: tuple[Gap, ...], force: bool) -> Plan:
    from connectctl.ops.operations.transactions.write_marker import plan_abort_hanging, warnings_of

    plan = plan_abort_hanging(
        session.transactions.cluster_id(), found, force=force, gaps=gaps, group_id=group_of(session) or ""
    )
    for warning in warnings_of(found):
        terminal.note(f"warning: {warning}")
    return plan


def _plan_commit_hanging(session: Session, found: Hanging, gaps: tuple[Gap, ...]) -> Plan:
    from connectctl.ops.operations.transactions.write_marker import plan_commit_hanging

    return plan_commit_hanging(session.transactions.cluster_id(), found, gaps=gaps, group_id=group_of(session) or "")


def plan_again(session: Session, saved: Plan) -> Plan:
    """Plan the request of ``saved`` again. Raises the errors of planning."""
    from connectctl.ops.operations.transactions.abort import AbortOpen
    from connectctl.ops.operations.transactions.write_marker import AbortHanging, MarkHanging

    (step,) = saved.steps
    if isinstance(step, AbortOpen):
        return _plan_open(session, step.subject, step.force)
    assert isinstance(step, MarkHanging)
    place, producer = step.hanging.place, step.hanging.producer
    found, gaps = _hanging(session, place.topic, place.partition, producer.start_offset, producer.producer_id)
    if isinstance(step, AbortHanging):
        return _plan_abort_hanging(session, found, gaps, True)
    return _plan_commit_hanging(session, found, gaps)


def context_of(session: Session) -> EndContext:
    from connectctl.ops.operations.transactions.abort import EndContext

    return EndContext(session.transactions, session.timeout, session.transaction_log)
