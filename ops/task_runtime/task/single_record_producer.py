"""A task's producer that sends records one at a time, so that one that is refused can be named.

It is slow, and only used behind a refusal: the task begins again at what is committed, and meets
the record once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.task import rejected_records
from connectctl.ops.task_runtime.task.columnar_producer import ColumnarProducer

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.spi.transaction_batch import Offsets, TransactionBatch
    from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer

    _Producer = TaskProducer
else:
    _Producer = object

ALONE = {"batch.num.messages": "1"}


class ProducerFactory:
    """Opens a task's producers with ``opened``: of ``kind``, or of one that names what is
    refused.
    """

    def __init__(
        self, kind: type[TaskProducer], opened: Callable[[type[TaskProducer]], TaskProducer]
    ):
        self._kind, self._opened = kind, opened
        # One of columns names it by itself.
        self._names = issubclass(kind, ColumnarProducer)

    def __call__(self) -> TaskProducer:
        return self._opened(self._kind)

    def send_one_by_one(self) -> bool:
        """From now on the slow one, which meets the record again; whether it was not that
        before.
        """
        if self._names:
            return False
        self._kind, self._names = one_at_a_time(self._kind), True
        return True


def one_at_a_time(kind: type[TaskProducer]) -> type[TaskProducer]:
    """``kind``, which raises a ``ConnectctlError`` with its name for a record that Kafka does not
    take.
    """
    return type("OneAtATime", (_OneAtATime, kind), {})


class _OneAtATime(_Producer):
    """Goes before a kind of producer: sends its records one at a time, and names the one that is
    refused.
    """

    def __init__(
        self,
        kafka: Kafka,
        id_: str,
        *,
        timeout_ms: int,
        properties: Mapping[str, Any] | None = None,
    ):
        self._step: TransactionBatch | None = None
        self._number = 0
        self._found: ConnectctlError | None = None
        super().__init__(
            kafka, id_, timeout_ms=timeout_ms, properties={**(properties or {}), **ALONE}
        )

    def send(self, batch: TransactionBatch) -> None:
        self._step, self._number = batch, 0
        super().send(batch)

    def send_offsets(self, topic: str, offsets: Offsets) -> None:
        self._step = None
        super().send_offsets(topic, offsets)

    def _send_record(
        self,
        topic: str,
        key: Any,
        value: Any,
        partition: Any,
        headers: Any,
        timestamp: Any,
        **more: Any,
    ) -> None:
        from confluent_kafka import KafkaException

        size = len(key or b"") + len(value or b"")
        report = partial(self._on_delivery, self._step, self._number, topic, size)
        self._number += 1
        try:
            super()._send_record(
                topic, key, value, partition, headers, timestamp, on_delivery=report
            )
        except KafkaException as e:
            report(e.args[0], None)
            raise

    def _send_dicts(self, topic: str, messages: list[dict[str, Any]]) -> None:
        for m in messages:
            self._send_record(
                topic, m.get("key"), m["value"], m.get("partition"), [], m.get("timestamp") or None
            )

    def _send_copies(self, topic: str, messages: Sequence[Any]) -> None:
        for m in messages:
            when = max(m.timestamp()[1], 0) or None
            self._send_record(topic, m.key(), m.value(), m.partition(), m.headers(), when)

    def _on_delivery(
        self,
        step: TransactionBatch | None,
        number: int,
        topic: str,
        size: int,
        error: Any,
        message: Any,
    ) -> None:
        """What became of a record. One that is there for its neighbour's sake has an error of its
        own.
        """
        self._delivered(error, message)
        if (
            error is None
            or error.name() not in rejected_records.OF_A_RECORD
            or self._found is not None
        ):
            return
        record = step.record_name(number) if step is not None else None
        if record is None:
            return
        if error.name() == rejected_records.TOO_LARGE:
            self._found = rejected_records.too_large(
                record, topic, f"{size} bytes of key and value: {error.str()}"
            )
        else:
            self._found = rejected_records.refused(record, error.name(), error.str())

    def _fail(self, error: Any, doing: str, cause: Exception) -> None:
        self._rejection()
        if self._found is not None:
            raise self._found from cause
        super()._fail(error, doing, cause)
