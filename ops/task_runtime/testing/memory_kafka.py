"""As much of Kafka as a task needs, in memory: transactions, source offsets, and a consumer group's offsets.

A contract test holds the producer to ``TaskProducer``, and the consumer to ``GroupConsumer``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord, TransactionBatch
from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome
from connectctl.ops.task_runtime.testing.faults import Crash, Fault, Faults

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets
    from connectctl.ops.task_runtime.spi.transaction_batch import Offsets


@dataclass
class MemoryKafka:
    """What is committed. ``transactions`` has records and offsets of each commit, source offsets by raw key."""

    faults: Faults
    source_offsets: dict[bytes, bytes | None] = field(default_factory=dict)
    group: dict[TopicPartition, GroupOffset] = field(default_factory=dict)
    transactions: list[tuple[tuple[ProducerRecord, ...], Mapping[Any, Any]]] = field(default_factory=list)
    in_doubt: bool = False
    """Whether nobody has found out yet what became of the last commit."""
    seconds: float = 0.0
    """A clock, which only polls without a record move."""

    def commit(self, records: Sequence[ProducerRecord], offsets: Offsets, group: GroupOffsets) -> None:
        """A transaction, or what a fault makes of it. Raises ``UnknownOutcome`` and ``Crash``."""
        fault = self.faults.next("commit")
        if fault is Fault.CRASH_BEFORE_COMMIT:
            raise Crash(fault)
        if fault is not Fault.COMMIT_LOST:
            self.source_offsets |= offsets
            self.group |= group
            self.transactions.append((tuple(records), group or offsets))
        if fault is Fault.CRASH_AFTER_COMMIT:
            raise Crash(fault)
        if fault is not None:
            self.in_doubt = True
            raise UnknownOutcome(f"connectctl.testing: {fault}")

    def now(self) -> float:
        return self.seconds


class MemoryOffsets:
    """The committed source offsets, as they were when they were last read."""

    def __init__(self, kafka: MemoryKafka):
        self._kafka = kafka
        self._read: dict[bytes, bytes | None] = {}
        self._transactions = 0

    def refresh(self, patience: float) -> None:
        self._read, self._transactions = dict(self._kafka.source_offsets), len(self._kafka.transactions)

    def value(self, key: bytes) -> bytes | None:
        return self._read.get(key)

    def known(self) -> frozenset[bytes]:
        return frozenset(key for key, value in self._read.items() if value is not None)

    def position(self, key: bytes) -> tuple[int, int] | None:
        """Where the newest record of ``key`` is: behind all that was committed when it was read."""
        return (0, self._transactions) if key in self._read else None


class MemoryProducer:
    """A ``TaskProducer``: what it sends is there for others once it is committed."""

    overdue = False
    bumps_epoch = False
    existing_topic: str | None = None

    def __init__(self, kafka: MemoryKafka, id_: str):
        self._kafka = kafka
        self.id = id_
        self.timeout_ms = 60_000
        self.begin()

    def initialise(self, patience: float) -> None:
        """No older producer is alive. What is committed can be read from now on."""
        self._kafka.in_doubt = False

    def open_older_transaction(self, topics: Sequence[str]) -> str | None:
        """None is open: what was not committed is forgotten."""
        return None

    def begin(self) -> None:
        self._records: list[ProducerRecord] = []
        self._offsets: Offsets = {}
        self._group: GroupOffsets = {}

    def send(self, batch: TransactionBatch) -> None:
        self._records += records_of(batch)

    def send_offsets(self, topic: str, offsets: Offsets) -> None:
        self._offsets = {**self._offsets, **offsets}

    def send_group_offsets(self, offsets: GroupOffsets, consumer: GroupConsumer, patience: float) -> None:
        self._group = {**self._group, **offsets}

    def commit(self, patience: float) -> None:
        """Commit it. Raises ``UnknownOutcome`` where a fault says so."""
        self._kafka.commit(self._records, self._offsets, self._group)

    def abort(self, patience: float) -> None:
        self.begin()

    def expired(self) -> bool | None:
        """Transactions take no time here."""
        return False

    def unusable_because(self) -> str | None:
        """Nothing: there is no network."""
        return None

    def discard(self) -> None:
        self.begin()


def records_of(batch: TransactionBatch) -> Iterator[ProducerRecord]:
    """Each record of ``batch`` by itself, in the order in which it is sent."""
    yield from batch.records
    for bulk in batch.record_batches:
        for message in bulk.messages:
            yield ProducerRecord(bulk.topic, message.get("key"), message["value"], message.get("partition"))
