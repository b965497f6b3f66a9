"""A transaction log that is a list, in Kafka's own bytes, and partitions of which is known what
they have behind.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from connectctl.ops.clients.protocols import PrecedingLog
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transaction_log import STATES, LogEntry
from connectctl.ops.kafka.transactions import PartitionProducer


@dataclass
class FakeTransactionLog:
    """Keeps ``TransactionLogReads``. ``forbidden`` is what reading the log raises, ``unseen`` what
    a partition raises.
    """

    written: list[tuple[bytes | None, bytes | None]] = field(default_factory=list)
    partitions: dict[TopicPartition, PrecedingLog] = field(default_factory=dict)
    forbidden: ConnectctlError | None = None
    unseen: ConnectctlError | None = None
    asked: list[tuple[str, ...] | None] = field(default_factory=list)

    def entries(
        self, ids: Sequence[str] | None, wanted: Callable[[bytes | None, bytes | None], bool]
    ) -> list[ConsumerRecord]:
        self.asked.append(None if ids is None else tuple(ids))
        if self.forbidden:
            raise self.forbidden
        return [
            ConsumerRecord(key, value, 0, at)
            for at, (key, value) in enumerate(self.written)
            if wanted(key, value)
        ]

    def preceding(
        self, place: TopicPartition, producer: PartitionProducer, since_ms: int | None
    ) -> PrecedingLog:
        if self.unseen:
            raise self.unseen
        since = math.inf if since_ms is None else since_ms
        return self.partitions.get(place, PrecedingLog(producer.epoch, None, since))


def log_of(*entries: LogEntry, version: int = 1) -> FakeTransactionLog:
    """A log with these entries."""
    return FakeTransactionLog([(key_of(each.id), value_of(each, version)) for each in entries])


def key_of(id: str, version: int = 0) -> bytes:
    """The key of an id as Kafka writes it."""
    return struct.pack(">hh", version, len(id.encode())) + id.encode()


def value_of(entry: LogEntry, version: int, more: Iterable[tuple[int, bytes]] = ()) -> bytes:
    """A value as Kafka writes it; ``more`` are further tagged fields."""
    state = STATES.index(entry.state)
    head = struct.pack(">hqhib", version, entry.producer_id, entry.epoch, entry.timeout_ms, state)
    times = struct.pack(">qq", entry.updated_ms, entry.started_ms)
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(entry.topic_partitions):
        by_topic.setdefault(topic, []).append(number)
    if version == 0:
        topics = b"".join(
            struct.pack(">h", len(t.encode()))
            + t.encode()
            + struct.pack(f">i{len(n)}i", len(n), *n)
            for t, n in by_topic.items()
        )
        return head + struct.pack(">i", len(by_topic) or -1) + topics + times
    topics = b"".join(
        varint(len(t.encode()) + 1)
        + t.encode()
        + varint(len(n) + 1)
        + struct.pack(f">{len(n)}i", *n)
        + varint(0)
        for t, n in by_topic.items()
    )
    tagged = [(0, entry.previous_producer_id, -1, ">q"), (1, entry.next_producer_id, -1, ">q")]
    tagged += [(2, entry.client_version, 0, ">h")]
    fields = [
        (number, struct.pack(how, value))
        for number, value, default, how in tagged
        if value != default
    ]
    fields += more
    tail = b"".join(varint(number) + varint(len(data)) + data for number, data in fields)
    return (
        head
        + varint(len(by_topic) + 1 if by_topic else 0)
        + topics
        + times
        + varint(len(fields))
        + tail
    )


def varint(value: int) -> bytes:
    """An unsigned number of variable length."""
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])
