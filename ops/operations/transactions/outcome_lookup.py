"""Looks up the decisions on hanging transactions: once in the transaction log for all, then in the
partition of each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from connectctl.ops.clients.protocols import TransactionLogReads
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized
from connectctl.ops.kafka.acls import Right
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transaction_log import TOPIC, LogEntry, Unreadable, parse, producer_of
from connectctl.ops.kafka.transactions import OPEN, PartitionProducer
from connectctl.ops.operations.transactions.outcome import (
    DecidedOutcome,
    Event,
    decide,
    decided_with,
    history,
    unknown,
    unread,
)

SLACK_MS = 60_000
"""The margin before the beginning of a transaction in the search of its partition, for different
clocks.
"""
OpenProducer = tuple["TopicPartition", "PartitionProducer", str | None]
"""The partition of a hanging transaction, its producer, and its transactional id, if known."""


def decisions(
    log: TransactionLogReads, open_producers: Sequence[OpenProducer]
) -> list[DecidedOutcome]:
    """Return the decision on each transaction; unknown if the log or the partition cannot be
    read.
    """
    ids = {id for _, _, id in open_producers if id is not None}
    complete = all(id is not None for _, _, id in open_producers)
    query = ProducerQuery(frozenset(producer.producer_id for _, producer, _ in open_producers))
    try:
        written = RecordedEnd.of(log.entries(sorted(ids) if complete else None, query))
    except ConnectctlError as e:
        return [unread(f"{TOPIC} cannot be read: {e.why or e.what}", _right(e))] * len(
            open_producers
        )
    return [_decision(log, written, *open_producer) for open_producer in open_producers]


def _decision(
    log: TransactionLogReads,
    written: RecordedEnd,
    partition: TopicPartition,
    producer: PartitionProducer,
    id: str | None,
) -> DecidedOutcome:
    number = producer.producer_id
    for bad in written.unreadable:
        if id is None or bad.id in (None, id):
            return unread(f"{TOPIC} cannot be read: {bad.why}")
    if id is None and (pending := _pending(written.by_producer[number], partition)):
        return pending
    past = history(written.by_producer[number], number)
    if not past:
        return unknown("the transaction log has nothing of its producer id")
    try:
        return decide(
            past,
            partition,
            producer,
            log.preceding(partition, producer, since(past, partition, producer)),
        )
    except ConnectctlError as e:
        return unknown(f"{partition} cannot be read: {e.why or e.what}", _right(e))


def _right(error: ConnectctlError) -> Right | None:
    """Return the right whose absence is the error, if that is known."""
    return error.right if isinstance(error, NotAuthorized) else None


def _pending(entries: Sequence[LogEntry], partition: TopicPartition) -> DecidedOutcome | None:
    """Return the outcome if a coordinator still has a transaction of the producer on ``partition``,
    under an id that was not described.

    The coordinator will end it, independently of the preceding records.
    """
    last = entries[-1] if entries else None
    if last is None or last.state not in OPEN or partition not in last.topic_partitions:
        return None
    if last.next_producer_id >= 0:
        return unread(
            "its end is recorded with another producer id, whose transactional id is unknown"
        )
    return DecidedOutcome(None, "its coordinator has not ended it yet", running=True)


def since(
    past: Sequence[Event], partition: TopicPartition, producer: PartitionProducer
) -> int | None:
    """Return the time, in milliseconds since the epoch, from which the partition is searched; None
    for no search.

    The search includes the last transaction with the partition, and the one before, whose marker
    distinguishes them.
    """
    last = decided_with(past, partition, producer.epoch)[-2:]
    return min(transaction.started_ms for transaction in last) - SLACK_MS if last else None


@dataclass(frozen=True)
class ProducerQuery:
    """A filter for the records of some producer ids, and for one unreadable record of each
    transactional id.
    """

    producer_ids: frozenset[int]
    _unreadable_keys: set[bytes | None] = field(default_factory=set)

    def __call__(self, key: bytes | None, value: bytes | None) -> bool:
        if value is None:
            return False  # The id has expired, and never gets the producer id again.
        number = producer_of(value)
        if number is not None:
            return number in self.producer_ids
        new = key not in self._unreadable_keys
        self._unreadable_keys.add(key)
        return new


@dataclass(frozen=True)
class RecordedEnd:
    """The records of coordinators by producer id, in the order of the log, and the unreadable
    ones.
    """

    by_producer: defaultdict[int, list[LogEntry]]
    unreadable: tuple[Unreadable, ...]

    @classmethod
    def of(cls, records: Iterable[ConsumerRecord]) -> RecordedEnd:
        found: defaultdict[int, list[LogEntry]] = defaultdict(list)
        unreadable = []
        for record in records:
            entry = parse(record.key, record.value)
            if isinstance(entry, LogEntry):
                found[entry.producer_id].append(entry)
            elif entry is not None:
                unreadable.append(entry)
        return cls(found, tuple(unreadable))
