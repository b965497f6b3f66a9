"""A task without exactly-once: what a worker does whose ``exactly.once.source.support`` is not enabled.

The kernel is the same, with a producer that has no transactional id and boundaries that are flushes of offsets. Records are
acknowledged before the offsets behind them are written, so that none is lost; after a failure some come again, and nobody
is fenced. Source: ``WorkerSourceTask``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.task_runtime.spi.boundaries import Boundaries, End, Segment
from connectctl.ops.task_runtime.task.transactional_producer import DEFAULTS, TaskProducer, UnknownOutcome

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.group.consumer import GroupConsumer, GroupOffsets
    from connectctl.ops.task_runtime.spi.connector import Batch
    from connectctl.ops.task_runtime.spi.delivery_settings import DeliverySettings
    from connectctl.ops.task_runtime.spi.transaction_batch import Offsets, TransactionBatch

PATIENCE = 30.0
"""Seconds for what was sent to be acknowledged; then a new producer sends it again."""


class FlushBoundaries(Boundaries):
    """Cuts off a flush of offsets behind a batch, every ``interval`` seconds; tasks have no transactions to end.

    The flush is a segment of its own, without records: KIP-910's ``update_offsets`` is asked in the moment before it, when
    everything that the last poll gave is acknowledged, or it gave nothing.
    """

    def __init__(self, interval: float, now: Callable[[], float] = time.monotonic):
        super().__init__(Boundary.INTERVAL, interval, now)

    def cut(self, batch: Batch, polled: float | None = None) -> list[Segment]:
        """The batch, and the flush behind it when it is due."""
        flush = [Segment((), End.COMMIT)] if self._due(self._now()) else []
        return [Segment(batch, None), *flush] if batch else flush


class IdempotentProducer(TaskProducer):
    """A producer without a transactional id, for the kernel to work with. A commit is that everything has arrived."""

    overdue = False

    def __init__(self, kafka: Kafka, id_: str, *, timeout_ms: int, properties: Mapping[str, Any] | None = None):
        from confluent_kafka import Producer

        self._kafka = kafka
        self._begun = 0.0
        self._failed: list[Any] = []
        self.id = id_
        self.timeout_ms = timeout_ms
        ours = {"enable.idempotence": True, "partitioner": "murmur2_random", "on_delivery": self._delivered}
        whole = kafka.properties() | DEFAULTS | dict(properties or {}) | ours
        self._producer: Any = kafka.ask("open a producer", lambda: Producer(whole))

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed.append(error)

    def initialise(self, patience: float) -> None:
        """Nobody is fenced."""

    def open_older_transaction(self, topics: Sequence[str]) -> str | None:
        """Nothing: no transaction was ever open."""
        return None

    def begin(self) -> None:
        """There is no transaction."""
        self._begun = time.monotonic()

    def send(self, batch: TransactionBatch) -> None:
        """Write the records of ``batch``, and wait until they are there."""
        super().send(batch)
        self.flush("write its records")

    def send_offsets(self, topic: str, offsets: Offsets) -> None:
        """Write source offsets, and wait until they are there."""
        super().send_offsets(topic, offsets)
        self.flush("write its offsets")

    def _rejection(self) -> None:
        """Each rejected record is reported by itself."""
        self._producer.poll(0)

    def flush(self, doing: str) -> None:
        """Wait until all that was sent is there. Raises ``UnknownOutcome``, and what the first error of a record is."""
        from confluent_kafka import KafkaException

        left = self._producer.flush(PATIENCE)
        if self._failed:
            error = self._failed[0]
            self._fail(error, doing, KafkaException(error))
        if left:
            raise UnknownOutcome(f"could not {doing}: {left} not acknowledged within {PATIENCE:g} s")

    def commit(self, patience: float) -> None:
        """Everything has arrived."""

    def abort(self, patience: float) -> None:
        """What was written stays."""

    def unusable_because(self) -> str | None:
        """What was acknowledged is certain."""
        return None


class GroupIdempotentProducer(IdempotentProducer):
    """The same for offsets of a consumer group: records are waited for before a commit, and not at each poll."""

    def send(self, batch: TransactionBatch) -> None:
        TaskProducer.send(self, batch)

    def send_group_offsets(self, offsets: GroupOffsets, consumer: GroupConsumer, patience: float) -> None:
        """Commit them by the consumer once all records have arrived."""
        self.flush("write its records")
        consumer.commit(offsets)


def boundaries_of(delivery: DeliverySettings) -> Boundaries:
    if delivery.exactly_once:
        return Boundaries(
            delivery.boundary, delivery.interval, flush_interval=delivery.flush_interval, latency=delivery.latency
        )
    return FlushBoundaries(delivery.interval)
