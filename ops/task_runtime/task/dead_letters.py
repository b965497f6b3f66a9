"""The dead letter topic of a sink's task, through a producer of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord, TransactionBatch
from connectctl.ops.task_runtime.task.at_least_once import GroupIdempotentProducer
from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka

TIMEOUT_MS = 60_000
"""The time for which the queue of dead letters may stay full."""


class DeadLetterProducer:
    """The ``DeadLetters`` of ``record_errors``. Its producer is opened with the first record, which
    most tasks never have.
    """

    def __init__(self, kafka: Kafka, id_: str):
        self._kafka, self._id = kafka, id_
        self._producer: GroupIdempotentProducer | None = None

    def send(self, record: ProducerRecord) -> None:
        if self._producer is None:
            self._producer = GroupIdempotentProducer(self._kafka, self._id, timeout_ms=TIMEOUT_MS)
        self._producer.begin()
        self._producer.send(TransactionBatch([record]))

    def flush(self) -> None:
        if self._producer is None:
            return
        try:
            self._producer.flush("write dead letters")
        except UnknownOutcome as e:
            raise ConnectctlError(
                "A dead letter was not written", why=str(e), code="dead-letter"
            ) from e

    def discard(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.discard()
