"""The records of coordinators in ``__transaction_state``, and the log of partitions before an open
transaction.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.headers import Headers
from connectctl.ops.clients.kafka_protocol.leaders import EARLIEST, Leaders
from connectctl.ops.clients.protocols import PrecedingLog
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.kafka.batch_headers import Batch, Marker
from connectctl.ops.kafka.error_handling import PRODUCERS, Code, verdict
from connectctl.ops.kafka.partitioner import coordinator_partition
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.sentinels import Offset
from connectctl.ops.kafka.transaction_log import TOPIC
from connectctl.ops.kafka.visibility import describe_configs, whole

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.kafka.acls import Right
    from connectctl.ops.kafka.topic_partition import TopicPartition
    from connectctl.ops.kafka.transactions import PartitionProducer

REACH = 5_000_000
"""The maximum number of offsets that are read: some minutes on a slow network."""


class TransactionLog:
    """The transaction log of one Kafka cluster. ``properties`` are librdkafka's; ``timeout`` in
    seconds, for each request.

    Connections are opened for each question and closed again: it is asked seldom, and brokers may
    have come and gone.
    """

    def __init__(self, properties: Mapping[str, Any], *, timeout: float) -> None:
        self._properties, self._timeout = properties, timeout

    def entries(
        self, ids: Sequence[str] | None, wanted: Callable[[bytes | None, bytes | None], bool]
    ) -> list[ConsumerRecord]:
        from connectctl.ops.clients.librdkafka.read import read_wanted

        kafka = self._kafka()
        if not whole(kafka.existing([TOPIC]), TOPIC):
            return []  # the first transaction creates it
        count = len(kafka.partitions(TOPIC))
        numbers = (
            range(count)
            if ids is None
            else sorted({coordinator_partition(id, count) for id in ids})
        )
        return read_wanted(kafka, TOPIC, numbers, wanted)

    def _kafka(self) -> Kafka:
        from connectctl.ops.clients.librdkafka.client import Kafka

        return Kafka(self._properties, timeout=self._timeout)

    def preceding(
        self, topic_partition: TopicPartition, producer: PartitionProducer, since_ms: int | None
    ) -> PrecedingLog:
        start = producer.start_offset or 0
        begin, reached = (
            (start, math.inf) if since_ms is None else self._begin(topic_partition, since_ms, start)
        )
        right: Right | None = None
        if since_ms is not None and reached != math.inf:
            compacted = self._compacted(topic_partition, since_ms)
            right = describe_configs(topic_partition.topic) if compacted is None else None
            reached = reached if compacted is False else math.inf
        with closing(Headers(self._properties, timeout=self._timeout)) as headers:
            return replace(
                preceding_log(headers.read(topic_partition, begin, start + 1), producer, reached),
                right=right,
            )

    def _begin(
        self, topic_partition: TopicPartition, since_ms: int, start: int
    ) -> tuple[int, float]:
        """Return the offset at which to begin, and the time from which on all markers are after it.

        A marker has the broker's time, and every record with this time or a later one is after the
        first such record, whatever the times of producers.
        """
        first, since = self._offsets(topic_partition, EARLIEST, since_ms)
        begin = start if since is None else min(since, start)
        is_complete = first is not None and (begin > first or first == 0) and start - begin <= REACH
        return max(begin, start - REACH), since_ms if is_complete else math.inf

    def _offsets(self, topic_partition: TopicPartition, *timestamps: int) -> list[Offset | None]:
        with closing(KafkaProtocolClient(self._properties, timeout=self._timeout)) as wire:
            leaders = Leaders(wire)
            answers = [
                leaders.offsets([topic_partition], timestamp)[topic_partition]
                for timestamp in timestamps
            ]
        found: list[Offset | None] = []
        for answer in answers:
            if isinstance(answer, Code):
                raise Unreachable(
                    f"No offsets available for {topic_partition}",
                    why=verdict(PRODUCERS, answer).meaning,
                )
            found.append(answer)
        return found

    def _compacted(self, topic_partition: TopicPartition, since_ms: int) -> bool | None:
        """Return whether compaction may have removed a marker that is not older than this time.

        None where this principal may not see the topic's configuration.
        """
        config = self._kafka().topics([topic_partition.topic])[topic_partition.topic].config
        if not config:
            return None
        kept = int(config.get("delete.retention.ms", 0))
        return (
            config.get("cleanup.policy") not in ("delete", "")
            and since_ms < time.time() * 1000 - kept
        )


def preceding_log(
    found: Iterable[Batch | Marker], producer: PartitionProducer, since_ms: float
) -> PrecedingLog:
    """Return the part of ``found``, the log up to the transaction's first batch, that belongs to
    its producer.
    """
    marker: Marker | None = None
    epoch: int | None = None
    for each in found:
        if each.producer_id != producer.producer_id:
            continue
        if isinstance(each, Marker):
            marker = each
        elif each.next_offset > (producer.start_offset or 0):
            epoch = each.epoch
    return PrecedingLog(epoch, marker, since_ms)
