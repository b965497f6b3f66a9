"""The transactions that hold pending offsets of a consumer group (KIP-447).

Offsets that a transaction adds to a group are pending until it ends. The group's coordinator
reports the partitions, and not the transaction: it is one that has the group's partition of
``__consumer_offsets``.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import UTC, datetime

from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.clients.librdkafka.connection import Connection
from connectctl.ops.clients.protocols import TransactionCalls
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.offset_commits import TOPIC
from connectctl.ops.kafka.partitioner import coordinator_partition
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import ENDING, Transaction

MOST_NAMED = 3


def transactions_holding(
    calls: TransactionCalls, group: str, candidates: Iterable[str] = ()
) -> list[Transaction]:
    """Return the open transactions that may hold offsets of ``group``, the oldest first; none if no
    coordinator reports any.

    Of the transactional ids ``candidates`` every open one counts: this principal may be allowed to
    see them alone, and not ``__consumer_offsets``.
    """
    producers, where = frozenset(candidates), None
    with suppress(ConnectctlError):
        if topic_partitions := calls.topic_partitions([TOPIC]):
            where = TopicPartition(TOPIC, coordinator_partition(group, len(topic_partitions)))
    try:
        listed = calls.listed(states=("Ongoing", *sorted(ENDING))).seen
        found = calls.describe(sorted({*producers, *(each.id for each in listed)})).values()
    except ConnectctlError:
        return []
    still_open = [each for each in found if isinstance(each, Transaction) and each.is_open]
    holding = [each for each in still_open if where in each.partitions or each.id in producers]
    return sorted(holding, key=lambda each: (each.started_ms or 0, each.id))


def in_words(transactions: list[Transaction]) -> str:
    """Return the transactions for users, each with the time since when it is open; without any, the
    text for another producer's.
    """
    if not transactions:
        return "the transaction of another producer"
    return " or ".join(map(_in_words, transactions[:MOST_NAMED]))


def _in_words(transaction: Transaction) -> str:
    if transaction.started_ms is None:
        return f"the transaction of {transaction.id}"
    began = datetime.fromtimestamp(transaction.started_ms / 1000, UTC)
    return f"the transaction of {transaction.id} (open since {began:%Y-%m-%dT%H:%M:%SZ})"


def holder_of(kafka: Connection, group: str) -> str:
    """Return ``in_words`` the transactions that hold offsets of ``group``, asked on a connection of
    its own.
    """
    with closing(TransactionClient(kafka.client, timeout=kafka.timeout)) as calls:
        return in_words(transactions_holding(calls, group))
