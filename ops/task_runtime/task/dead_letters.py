"""The dead letter topic of a sink's task, through a producer of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord, TransactionBatch
from connectctl.ops.task_runtime.task.at_least_once import IdempotentProducer
from connectctl.ops.task_runtime.task.transactional_producer import TransactionalProducer, UnknownOutcome

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka


class DeadLetterProducer(IdempotentProducer):
    """Opened with the first record that goes there. As ``DeadLetters`` of ``sink_errors``."""

    def __init__(self, kafka: Kafka, id_: str):
        self._kafka, self.id = kafka, id_
        self._is_open = False

    def send(self, record: ProducerRecord) -> None:  # type: ignore[override]
        """Send ``record``, without waiting for it."""
        if not self._is_open:
            super().__init__(self._kafka, self.id, timeout_ms=60_000)
            self._is_open = True
            self.begin()
        TransactionalProducer.send(self, TransactionBatch([record]))

    def flush(self) -> None:
        """Return when all that was sent is written. Raises ``ConnectctlError`` where a record was not."""
        if not self._is_open:
            return
        try:
            self._flush("write dead letters")
        except UnknownOutcome as e:
            raise ConnectctlError("A dead letter was not written", why=str(e), code="dead-letter") from e

    def discard(self) -> None:
        """Let go of it."""
        if self._is_open:
            super().discard()
