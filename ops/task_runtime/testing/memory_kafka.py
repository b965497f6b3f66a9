"""The part of Kafka that a task needs, in memory: transactions, source offsets, and a consumer
group's offsets.

The producer is that of a real task, which encodes and partitions; a contract test compares the
consumer with ``GroupConsumer``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from connectctl.ops.clients.kafka_protocol.refusals import Named, Refusal
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.batch_headers import HEADER
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.fetched_batches import BatchAt
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.record_batch_decoder import PADDING, body_of, columns
from connectctl.ops.kafka.record_batch_encoder import ProducerState
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.spi.transaction_batch import (
    Offsets,
    ProducerRecord,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer, UnknownOutcome
from connectctl.ops.task_runtime.testing.faults import Crash, Fault, Faults
from connectctl.ops.task_runtime.testing.prepare import OFFSETS_TOPIC

if TYPE_CHECKING:
    from connectctl.ops.clients.kafka_protocol.batch_producer import BatchProducer
    from connectctl.ops.clients.kafka_protocol.batch_sender import Parts
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets

MAX_MESSAGE_BYTES = 1_048_588
"""The default of a topic's ``max.message.bytes``."""
TIMEOUT_MS = 900_000


@dataclass
class MemoryKafka:
    """The committed records and offsets. ``transactions`` has those of each commit, source offsets
    by raw key; ``partitions`` are the numbers of partitions of topics, by default 1.
    """

    faults: Faults
    partitions: Mapping[str, int] = field(default_factory=dict)
    source_offsets: dict[bytes, bytes | None] = field(default_factory=dict)
    group: dict[TopicPartition, GroupOffset] = field(default_factory=dict)
    transactions: list[tuple[tuple[ProducerRecord, ...], Mapping[Any, Any]]] = field(
        default_factory=list
    )
    in_doubt: bool = False
    """Whether the outcome of the last commit has not been read yet."""
    seconds: float = 0.0
    """A clock, which only polls without a record move."""

    def commit(
        self, records: Sequence[ProducerRecord], offsets: Offsets, group: GroupOffsets
    ) -> None:
        """Commit a transaction, or perform a fault. Raises ``UnknownOutcome`` and ``Crash``."""
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

    @property
    def client(self) -> dict[str, Any]:
        """Return the properties of a context: none."""
        return {}

    def failure(self, error: Any, doing: str) -> ConnectctlError:
        """Return the error as ``Kafka.failure`` does."""
        return ConnectctlError(f"Could not {doing}", why=error.str(), code=error.name())


class MemoryOffsets:
    """The committed source offsets, as they were when they were last read."""

    def __init__(self, kafka: MemoryKafka):
        self._kafka = kafka
        self._read: dict[bytes, bytes | None] = {}
        self._transactions = 0

    def refresh(self, patience: float) -> None:
        self._read, self._transactions = (
            dict(self._kafka.source_offsets),
            len(self._kafka.transactions),
        )

    def value(self, key: bytes) -> bytes | None:
        return self._read.get(key)

    def known(self) -> frozenset[bytes]:
        return frozenset(key for key, value in self._read.items() if value is not None)

    def position(self, key: bytes) -> tuple[int, int] | None:
        """Return the position of the newest record of ``key``: after everything that was committed
        when it was read.
        """
        return (0, self._transactions) if key in self._read else None


class MemoryBatches:
    """As ``BatchProducer``, for one task: the records of its encoded batches are there for others
    once it is committed.
    """

    bumps_epoch = False

    def __init__(self, kafka: MemoryKafka):
        self._kafka = kafka
        self._records: list[ProducerRecord] = []
        self._group: GroupOffsets = {}

    def initialise(self, patience: float) -> None:
        """No older producer is alive. What is committed can be read from now on."""
        self._kafka.in_doubt = False
        self._clear()

    def _clear(self) -> None:
        self._records, self._group = [], {}

    def partitions(self, topic: str, patience: float) -> int:
        return self._kafka.partitions.get(topic, 1)

    def led(self, topic: str) -> range:
        return range(self.partitions(topic, 0))

    def add(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Do nothing: no coordinator takes part."""

    def send(
        self,
        topic_partition: TopicPartition,
        records: int,
        made: Callable[[ProducerState], Parts],
        named: Named | None = None,
    ) -> None:
        """Take a batch. Raises ``Refusal`` for one that is larger than brokers take by default."""
        batch = b"".join(made(ProducerState(0, 0, 0)))
        if len(batch) > MAX_MESSAGE_BYTES:
            alone = topic_partition.topic if records == 1 else None
            raise Refusal(
                Code.MESSAGE_TOO_LARGE,
                named,
                0,
                f"a record batch of {len(batch)} bytes",
                alone,
                topic_partition.topic,
            )
        self._records += decoded(topic_partition, batch)

    def acknowledge(self) -> None:
        """Make what was sent readable: there is no transaction."""
        if self._records:
            self._kafka.transactions.append((tuple(self._records), {}))
            self._records = []

    def send_group_offsets(self, offsets: GroupOffsets) -> None:
        self._group = {**self._group, **offsets}

    def flush(self) -> None:
        """All is acknowledged."""

    settle = flush

    def end(self, *, commit: bool, patience: float) -> None:
        """Commit or abort. Raises ``UnknownOutcome`` and ``Crash`` for such faults."""
        records, group = self._records, self._group
        self._clear()
        if commit:
            offsets = {r.key or b"": r.value for r in records if r.topic == OFFSETS_TOPIC}
            self._kafka.commit([r for r in records if r.topic != OFFSETS_TOPIC], offsets, group)


class MemoryProducer(TaskProducer):
    """A ``TaskProducer`` that encodes and partitions its records as the real one, and has them in
    ``kafka``.
    """

    def __init__(self, kafka: MemoryKafka, id_: str, properties: Mapping[str, Any] | None = None):
        self._batches = MemoryBatches(kafka)
        super().__init__(cast("Kafka", kafka), id_, timeout_ms=TIMEOUT_MS, properties=properties)

    def _open(self, *_: object) -> BatchProducer:
        return cast("BatchProducer", self._batches)

    def open_older_transaction(self, topics: Sequence[str]) -> str | None:
        """None is open: what was not committed is forgotten."""
        return None

    def send_group_offsets(
        self, offsets: GroupOffsets, consumer: GroupConsumer, patience: float
    ) -> None:
        self._batches.send_group_offsets(offsets)

    def expired(self) -> bool | None:
        """Transactions take no time here."""
        return False

    def discard(self) -> None:
        self.begin()


class MemoryPlainProducer(MemoryProducer):
    """A producer without transactions: records exist when they are sent, and a commit writes
    offsets only.
    """

    def send(self, batch: TransactionBatch) -> None:
        super().send(batch)
        self._call("write its records", lambda: self._send(everything=True))
        self._batches.acknowledge()

    def abort(self, patience: float) -> None:
        """Do nothing: written records remain."""


def decoded(topic_partition: TopicPartition, batch: bytes) -> Iterator[ProducerRecord]:
    """Yield the records of an encoded batch, as a consumer gets them."""
    import numpy as np

    data = np.frombuffer(batch + bytes(PADDING), np.uint8)
    for record in columns(
        data, [body_of(BatchAt(0, len(batch), HEADER.unpack_from(batch)))]
    ).records():
        _, timestamp = record.timestamp()
        yield ProducerRecord(
            topic_partition.topic,
            record.key(),
            record.value(),
            topic_partition.partition,
            tuple(record.headers()),
            timestamp,
        )
