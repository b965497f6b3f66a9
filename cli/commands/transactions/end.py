"""``connectctl transactions abort`` and ``commit``: end one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from connectctl.cli import completed_names, flow
from connectctl.cli.options import ApplyOptions, with_options
from connectctl.ops.core.errors import BadInput

if TYPE_CHECKING:
    from connectctl.cli.session import Session

TopicOption = Annotated[
    str | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="Topic of the hanging transaction.",
        autocompletion=completed_names.topics,
    ),
]
PartitionOption = Annotated[
    int | None,
    typer.Option("--partition", metavar="N", min=0, help="Partition of the transaction."),
]
StartOption = Annotated[
    int | None,
    typer.Option("--start-offset", metavar="N", min=0, help="First offset of the transaction."),
]
ProducerOption = Annotated[
    int | None,
    typer.Option("--producer-id", metavar="N", min=0, help="Producer id of the transaction."),
]


@with_options
def abort(
    ctx: typer.Context,
    id: Annotated[
        str | None,
        typer.Argument(
            metavar="[TRANSACTIONAL-ID]", autocompletion=completed_names.transactional_ids
        ),
    ] = None,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    start_offset: StartOption = None,
    producer_id: ProducerOption = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Even if a task fails, a commit was decided, or it is not proven to hang.",
        ),
    ] = False,
    options: ApplyOptions = ApplyOptions(),
) -> None:
    """End one transaction: an open one by its id, a hanging one by its partition.

    \b
    Examples:
      connectctl transactions abort connect-prod-orders-0
      connectctl transactions abort --topic connect-offsets --partition 7 --start-offset 4711 --yes

    An open transaction is aborted by its coordinator, which fences the producer. A hanging one has
    no coordinator, and an abort marker is written to its partition, for which the brokers require
    the right ClusterAction; a transaction that does not hang is refused (exit code 4). Consumers
    then never read its records. The abort is therefore also refused if the transaction log proves
    that the coordinator had decided to commit and the broker lost the marker, as 4.3.1 may when it
    restarts (KAFKA-20734); if the log does not show the outcome, this is a warning. A transaction
    counts as hanging only for a principal that provably sees every transactional id, or has Read on
    __transaction_state; otherwise the abort is refused.
    """
    from connectctl.ops.kafka.topic_partition import TopicPartition
    from connectctl.ops.operations.transactions import operations

    session: Session = ctx.obj
    if (id is None) == (topic is None) or (topic is None) != (partition is None):
        hint = "Give a transactional id, or --topic and --partition of a hanging transaction."
        raise BadInput("No transaction given, or more than one", next_step=hint, code="usage")
    request: operations.OpenTransaction | operations.HangingTransaction
    if id is not None:
        request = operations.OpenTransaction(id, force)
    else:
        hanging = TopicPartition(str(topic), int(partition or 0))
        request = operations.HangingTransaction(hanging, start_offset, producer_id, force)
    flow.perform(session, operations.Abort(), request, options)


@with_options
def commit(
    ctx: typer.Context,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    start_offset: StartOption = None,
    producer_id: ProducerOption = None,
    options: ApplyOptions = ApplyOptions(),
) -> None:
    """Commit a hanging transaction that its coordinator had decided to commit, if a broker lost the
    marker.

    \b
    Examples:
      connectctl transactions commit --topic orders --partition 7
      connectctl transactions commit --topic orders --partition 7 --start-offset 4711 --yes

    The commit marker that the broker lost (KAFKA-20734) is written, for which the brokers require
    the right ClusterAction. The decided outcome is read from __transaction_state, which requires
    Read on it; if it and the markers in the partition do not prove a commit, the command is refused
    (exit code 4).
    """
    from connectctl.ops.kafka.topic_partition import TopicPartition
    from connectctl.ops.operations.transactions import operations

    session: Session = ctx.obj
    if topic is None or partition is None:
        hint = "Give --topic and --partition: connectctl transactions hanging."
        raise BadInput("No hanging transaction given", next_step=hint, code="usage")
    request = operations.HangingTransaction(
        TopicPartition(topic, partition), start_offset, producer_id
    )
    flow.perform(session, operations.Commit(), request, options)
