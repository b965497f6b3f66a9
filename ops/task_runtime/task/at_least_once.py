"""A task without exactly-once, as on a worker without ``exactly.once.source.support=enabled``.

The task loop is the same, with a producer without transactional id and with flushes of offsets as
boundaries. Records are acknowledged before their offsets are written, so that none is lost; after a
failure some are delivered again, and no producer is fenced. Source: ``WorkerSourceTask``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.task_runtime.spi.boundaries import Boundaries, End, Segment
from connectctl.ops.task_runtime.task.transactional_producer import (
    DEFAULTS,
    TaskProducer,
    UnknownOutcome,
)

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets
    from connectctl.ops.task_runtime.spi.connector import Batch
    from connectctl.ops.task_runtime.spi.delivery_settings import DeliverySettings
    from connectctl.ops.task_runtime.spi.transaction_batch import Offsets, TransactionBatch

PATIENCE = 30.0
"""Seconds to wait for acknowledgements; then a new producer sends the records again."""


class FlushBoundaries(Boundaries):
    """Adds a flush of offsets after a batch, every ``interval`` seconds; tasks have no transactions
    to end.

    The flush is a separate segment without records: KIP-910's ``update_offsets`` is called
    immediately before it, when all records of the last poll are acknowledged.
    """

    def __init__(self, interval: float, now: Callable[[], float] = time.monotonic):
        super().__init__(Boundary.INTERVAL, interval, now)

    def cut(self, batch: Batch, polled: float | None = None) -> list[Segment]:
        """Return the batch, and a flush after it if due."""
        flush = [Segment((), End.COMMIT)] if self._due(self._now()) else []
        return [Segment(batch, None), *flush] if batch else flush


class IdempotentProducer(TaskProducer):
    """A producer without a transactional id for the task loop. A commit waits until everything is
    acknowledged.
    """

    overdue = False

    def __init__(
        self,
        kafka: Kafka,
        id_: str,
        *,
        timeout_ms: int,
        properties: Mapping[str, Any] | None = None,
    ):
        from confluent_kafka import Producer

        self._kafka = kafka
        self._begun = 0.0
        self._failed: list[Any] = []
        self.id = id_
        self.timeout_ms = timeout_ms
        ours = {
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "on_delivery": self._delivered,
        }
        whole = kafka.properties() | DEFAULTS | dict(properties or {}) | ours
        self._producer: Any = kafka.ask("open a producer", lambda: Producer(whole))

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed.append(error)

    def initialise(self, patience: float) -> None:
        """Nothing: no producer is fenced."""

    def open_older_transaction(self, topics: Sequence[str]) -> str | None:
        """None: there are no transactions."""
        return None

    def begin(self) -> None:
        """Note the time; there is no transaction."""
        self._begun = time.monotonic()

    def send(self, batch: TransactionBatch) -> None:
        """Write the records of ``batch``, and wait for acknowledgement."""
        super().send(batch)
        self.flush("write its records")

    def send_offsets(self, topic: str, offsets: Offsets) -> None:
        """Write source offsets, and wait for acknowledgement."""
        super().send_offsets(topic, offsets)
        self.flush("write its offsets")

    def _rejection(self) -> None:
        """None: each rejected record has its own error."""
        self._producer.poll(0)

    def flush(self, doing: str) -> None:
        """Wait for all acknowledgements. Raises ``UnknownOutcome``, or the first error of a
        record.
        """
        from confluent_kafka import KafkaException

        left = self._producer.flush(PATIENCE)
        if self._failed:
            error = self._failed[0]
            self._fail(error, doing, KafkaException(error))
        if left:
            raise UnknownOutcome(
                f"could not {doing}: {left} not acknowledged within {PATIENCE:g} s"
            )

    def commit(self, patience: float) -> None:
        """Nothing: everything is acknowledged."""

    def abort(self, patience: float) -> None:
        """Nothing: written records remain."""

    def unusable_because(self) -> str | None:
        """None: acknowledged records are durable."""
        return None


class GroupIdempotentProducer(IdempotentProducer):
    """The same for offsets of a consumer group: it waits for records before a commit, not at each
    poll.
    """

    def send(self, batch: TransactionBatch) -> None:
        TaskProducer.send(self, batch)

    def send_group_offsets(
        self, offsets: GroupOffsets, consumer: GroupConsumer, patience: float
    ) -> None:
        """Commit through the consumer after all records are acknowledged."""
        self.flush("write its records")
        consumer.commit(offsets)


class GroupCommits(GroupIdempotentProducer):
    """Offsets of a consumer group alone, of a sink that writes no records: without a producer."""

    def __init__(
        self,
        kafka: Kafka,
        id_: str,
        *,
        timeout_ms: int,
        properties: Mapping[str, Any] | None = None,
    ):
        self._begun = 0.0
        self._producer = None
        self.id, self.timeout_ms = id_, timeout_ms

    def send_group_offsets(
        self, offsets: GroupOffsets, consumer: GroupConsumer, patience: float
    ) -> None:
        """Commit through the consumer."""
        consumer.commit(offsets)


def boundaries_of(delivery: DeliverySettings) -> Boundaries:
    if delivery.exactly_once:
        return Boundaries(
            delivery.boundary,
            delivery.interval,
            flush_interval=delivery.flush_interval,
            latency=delivery.latency,
        )
    return FlushBoundaries(delivery.interval)
