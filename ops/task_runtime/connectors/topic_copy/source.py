"""A task's partitions of the source topics, as a supply of the kernel: large batches, passed on as
librdkafka gave them.

A batch becomes a step at once, so that the producer sends while the next one is read; a transaction
is many of them. What is in hand is never kept: where a transaction is in doubt, the committed
offsets say where reading begins again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar

from connectctl.ops.clients.kafka_protocol.client_properties import arguments
from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.topic_copy.mirror_offsets import (
    next_offset,
    wrap_offset,
    wrap_partition,
)
from connectctl.ops.task_runtime.connectors.topic_copy.source_reader import (
    MOST,
    WAIT,
    TopicBatch,
    TopicReader,
)
from connectctl.ops.task_runtime.connectors.topic_copy.source_starts import LOST_RECORDS, LostRange
from connectctl.ops.task_runtime.spi.latency_pace import LatencyPace
from connectctl.ops.task_runtime.spi.transaction_batch import (
    IDLE,
    CopiedBatches,
    CopiedMessages,
    Event,
    StoredOffsets,
    TaskStats,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.task_offsets import TaskOffsets
from connectctl.ops.task_runtime.task.transaction_size import TransactionSize

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.connectors.topic_copy.batch_reader import (
        BatchReader,
        RecordsOfTopic,
    )
    from connectctl.ops.task_runtime.connectors.topic_copy.replication_policy import (
        ReplicationPolicy,
    )
    from connectctl.ops.task_runtime.spi.delivery_settings import DeliverySettings

WAY, AUTO, UNOPENED, OPENED = "copy.batches", "auto", "unopened", "opened"
WAYS = (AUTO, UNOPENED, OPENED)
PRODUCER = {"queue.buffering.max.kbytes": "65536", "message.max.bytes": "50000000"}
"""librdkafka's limits for a copy: 64 MB of records that wait. How large one may be is for the
target's brokers to say.
"""


@dataclass(frozen=True)
class TransactionLimits:
    """The size of a transaction whose boundary is a poll: ``records``, or what is read in
    ``seconds``.
    """

    records: int
    seconds: float


@dataclass(eq=False)
class CopiedTopics:
    """The copy of ``topic_partitions`` of the source, each a source partition of ``connector``, to
    the topics that ``policy`` names. Raises ``ConnectctlError`` if one of these is the offsets
    topic.
    """

    reader: TopicReader | BatchReader
    connector: str
    topic_partitions: list[TopicPartition]
    policy: ReplicationPolicy
    delivery: DeliverySettings
    pace: TransactionLimits
    offsets_topic: str
    stats: TaskStats = field(default_factory=TaskStats)
    copies_batches: ClassVar[bool] = False

    def __post_init__(self) -> None:
        delivery = self.delivery
        if delivery.exactly_once and self.offsets_topic in {
            self.policy.remote(topic) for topic, _ in self.topic_partitions
        }:
            raise ConnectctlError(
                "Source tasks may not produce to their own offsets topics when exactly-once "
                "support is enabled",
                next_step="Exclude the topic (topics.exclude), or give the connector another "
                "offsets.storage.topic.",
            )
        self._size = TransactionSize(self.pace.records, delivery.timeout_ms / 1000)
        self._meter, self._reported = self.stats.meter, set[LostRange]()
        self._meter.partitions = len(self.topic_partitions)
        self._keys: dict[TopicPartition, bytes] = {}
        self._latency = None if delivery.latency is None else LatencyPace(delivery.latency)
        self._flushed = time.monotonic()
        self._go_on({})

    def _go_on(self, reached: Mapping[TopicPartition, int | None]) -> None:
        """Drop uncommitted records; each partition resumes at ``reached``."""
        self._reached, self._count = dict(reached), 0
        self._taken: dict[TopicPartition, int] = {}

    def _ahead(self) -> dict[TopicPartition, int | None]:
        """Return the position of each partition after the records that are not committed yet."""
        return self._reached | {partition: last + 1 for partition, last in self._taken.items()}

    def resume(self, stored: StoredOffsets) -> None:
        """Read on where all that was given is committed; else begin at what is."""
        offsets = TaskOffsets(self.connector, stored)
        partitions = {
            topic_partition: wrap_partition(self.policy.source, topic_partition)
            for topic_partition in self.topic_partitions
        }
        self._keys = {
            topic_partition: offsets.key(partition)
            for topic_partition, partition in partitions.items()
        }
        begin = {
            topic_partition: next_offset(offsets.offset(partition))
            for topic_partition, partition in partitions.items()
        }
        if self.reader.opened and begin == self._ahead():
            self._go_on(begin)
            return
        if self._count:
            self._size.failed(self._count)
        latest = self.reader.begin(begin)
        self._go_on(begin)
        for lost in self.reader.lost:
            self._report_lost(lost)
        # That a partition without an offset begins at its end is committed at once: the next lease
        # would begin later.
        self._taken = {topic_partition: start - 1 for topic_partition, start in latest.items()}

    def _report_lost(self, lost: LostRange) -> None:
        """Count the records that the source has lost, once: the transaction that settles it may
        fail.
        """
        if lost not in self._reported:
            self._reported.add(lost)
            self._meter.lost += lost.count
            self.stats.lines.append(f"{LOST_RECORDS.id} {lost.left_out}")

    def next(self) -> Event:
        """Return the next batch, and the end of the transaction where that has come; a topic has no
        end.
        """
        if self._latency is not None:
            self._latency.ready(time.monotonic())
        if self._taken and not self._count:
            return TransactionBatch(offsets=self._offsets())
        batches = self.reader.read(MOST if self._timed else self._size.rows - self._count)
        now = time.monotonic()
        if batches and not self._count:
            self._size.begin()
        if batches and self._latency is not None:
            self._latency.polled(now)
        for each in batches:
            self._count += len(each)
            self._taken |= {
                TopicPartition(each.topic, partition): last for partition, last in each.last.items()
            }
        if self._due(busy=bool(batches)) and self._taken:
            if self._latency is not None:
                self._latency.decided(now)
            return self._transaction(batches, offsets=self._offsets())
        return self._transaction(batches, more=True) if batches else IDLE

    def _transaction(self, batches: Sequence[Any], **more: Any) -> TransactionBatch:
        copies = [CopiedMessages(self.policy.remote(each.topic), each.messages) for each in batches]
        return TransactionBatch(
            copies=copies, describe_record=partial(_named, self.policy.source, batches), **more
        )

    def _due(self, *, busy: bool) -> bool:
        """Return whether the transaction ends here. One whose boundary is a poll also ends with the
        source, because no more records may follow.
        """
        now = time.monotonic()
        if self._timed:
            due = now - self._flushed >= self.delivery.interval
            self._flushed = now if due else self._flushed
            return due or self._is_late(now)
        full = self._count >= self._size.rows or self._size.is_late
        if self._latency is not None:
            return full or self._is_late(now)
        return full or self._size.took >= self.pace.seconds or not busy or not self.reader.has_more

    def _is_late(self, now: float) -> bool:
        """Return whether the end cannot wait for another batch, which may take as long as a read
        waits.
        """
        return self._latency is not None and self._latency.is_due(now + WAIT)

    @property
    def _timed(self) -> bool:
        """Return whether transactions, or flushes of offsets, depend on time alone."""
        return self.delivery.boundary is Boundary.INTERVAL or not self.delivery.exactly_once

    def _offsets(self) -> dict[bytes, bytes | None]:
        return {
            self._keys[partition]: connect_json(wrap_offset(last)).encode()
            for partition, last in self._taken.items()
        }

    def final_batch(self) -> TransactionBatch | None:
        """Return the end of what is open: it may end anywhere."""
        return TransactionBatch(offsets=self._offsets()) if self._taken else None

    def committed(self, batch: TransactionBatch) -> None:
        """Resume after the batch."""
        if self._count:
            self._size.committed(self._count)
        if self._latency is not None:
            self._latency.ended(time.monotonic())
        self._go_on(self._ahead())

    @property
    def lag(self) -> int | None:
        return self.reader.lag

    @property
    def has_more(self) -> bool:
        return self.reader.has_more

    @property
    def producer_properties(self) -> Mapping[str, str]:
        return PRODUCER

    def close(self) -> None:
        self.reader.close()


class UnopenedTopics(CopiedTopics):
    """See ``CopiedTopics``. ``count`` hears of each batch that is sent, whether it is
    ``unopened``.
    """

    copies_batches = True

    def _transaction(self, batches: Sequence[RecordsOfTopic], **more: Any) -> TransactionBatch:
        copied = [
            CopiedBatches(
                self.policy.remote(each.topic),
                each.records,
                partial(record_name, self.policy.source, each.topic),
                self._meter.batch,
            )
            for each in batches
        ]
        return TransactionBatch(copied_batches=copied, **more)


def _named(source: str, batches: Sequence[TopicBatch], number: int) -> str:
    """Which record of the source cluster the one with this number is."""
    message = next(islice(chain.from_iterable(each.messages for each in batches), number, None))
    return record_name(source, message.topic(), message.partition(), message.offset())


def record_name(source: str, topic: str, partition: int, offset: int) -> str:
    """Which record of the source cluster lies there."""
    wrapped = connect_json(wrap_partition(source, TopicPartition(topic, partition)))
    return f"The record of {wrapped} at {connect_json(wrap_offset(offset))}"


def puts_together(configs: Mapping[str, str]) -> bool:
    """Return whether consecutive small batches become one: with the default of ``copy.batches``."""
    return configs.get(WAY, AUTO).strip().lower() == AUTO


def stays_unopened(
    configs: Mapping[str, str], consumer: Mapping[str, Any], *, exactly_once: bool
) -> bool:
    """Return whether batches are copied unopened: with the default of ``copy.batches``, if the
    clients' configuration allows it.

    ``consumer`` are librdkafka's properties for the source. Only a transactional producer writes
    whole batches.
    """
    way = configs.get(WAY, AUTO).strip().lower()
    if way != AUTO or not exactly_once:
        return way == UNOPENED
    try:
        configured = arguments(consumer)
    except BadInput:
        return False
    # Kerberos needs a library that is not everywhere where librdkafka's is.
    return configured.get("sasl_mechanism") != "GSSAPI"
