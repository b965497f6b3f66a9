"""A consumer's messages as a sink's records."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.spi.connector import RetriableError
from connectctl.ops.task_runtime.spi.reading_converters import ReadingConverters
from connectctl.ops.task_runtime.spi.sink import SinkRecord
from connectctl.ops.task_runtime.task.error_originals import TIMESTAMP_TYPES, ConsumedRecord
from connectctl.ops.task_runtime.task.record_errors import (
    RecordErrors,
    RecordFailure,
    Stage,
)
from connectctl.ops.task_runtime.transforms.chain import TransformationChain


class RecordReader:
    """Converts messages, and applies the transformations of ``chain``. Those that fail are left out
    if ``errors`` allows it.
    """

    def __init__(
        self,
        converters: ReadingConverters,
        errors: RecordErrors,
        chain: TransformationChain | None = None,
    ):
        self._converters, self._errors, self._chain = converters, errors, chain
        self._stage, self._transformation = Stage.KEY_CONVERTER, ""

    def records(self, messages: Sequence[Any]) -> list[SinkRecord]:
        """Return the records of ``messages``, in their order. Raises ``ConnectctlError`` if one
        cannot be converted or transformed and ``errors.tolerance`` is none.
        """
        found: list[SinkRecord] = []
        for message in messages:  # this loop is a sink's speed
            try:
                record = self._record(message)
            except RetriableError:
                record = self._again(message)
            except Exception as e:  # noqa: BLE001  # as in Connect: whatever a converter raises
                self._failed(message, e)
                continue
            if record is not None:
                found.append(record)
        return found

    def _again(self, message: Any) -> SinkRecord | None:
        """Return the record after retries; None if it is left out."""
        try:
            return self._errors.retried(lambda: self._record(message))
        except Exception as e:  # noqa: BLE001  # as above
            self._failed(message, e)
            return None

    def _failed(self, message: Any, error: Exception) -> None:
        original, executing = ConsumedRecord.of(message), self._executing(self._stage)
        self._errors.failed(RecordFailure(self._stage, executing, original, error))

    def _record(self, message: Any) -> SinkRecord | None:
        topic, converters = message.topic(), self._converters
        self._stage = Stage.KEY_CONVERTER
        key_schema, key = converters.key.read(topic, message.key())
        self._stage = Stage.VALUE_CONVERTER
        value_schema, value = converters.value.read(topic, message.value())
        self._stage = Stage.HEADER_CONVERTER
        headers = message.headers()
        kind, timestamp = message.timestamp()
        record = SinkRecord(
            topic,
            message.partition(),
            message.offset(),
            key,
            value,
            timestamp if kind else None,
            TIMESTAMP_TYPES[kind],
            self._headers(topic, headers) if headers else (),
            key_schema,
            value_schema,
            message,
        )
        return record if self._chain is None else self._transformed(record, self._chain)

    def _transformed(self, record: SinkRecord, chain: TransformationChain) -> SinkRecord | None:
        self._stage = Stage.TRANSFORMATION
        changed: SinkRecord | None = chain.apply(record, self._transforming)
        self._errors.meter.filtered += changed is None
        return changed

    def _transforming(self, name: str) -> None:
        self._transformation = name

    def _headers(
        self, topic: str, headers: Sequence[tuple[str, bytes | None]]
    ) -> list[tuple[str, Any]]:
        read = self._converters.header.read
        return [(name, read(topic, value)[1]) for name, value in headers]

    def _executing(self, stage: Stage) -> str:
        if stage is Stage.TRANSFORMATION:
            return self._transformation
        converters = self._converters
        by_stage = {Stage.KEY_CONVERTER: converters.key, Stage.VALUE_CONVERTER: converters.value}
        return by_stage.get(stage, converters.header).name


def consumed_partition(record: SinkRecord) -> TopicPartition:
    """Return the partition that ``record`` was read from: transformations may rename its topic."""
    return TopicPartition(record.original.topic(), record.original.partition())


def first_offsets(messages: Sequence[Any]) -> dict[TopicPartition, int]:
    """The offset of the first message of each partition."""
    found: dict[TopicPartition, int] = {}
    for message in reversed(messages):
        found[TopicPartition(message.topic(), message.partition())] = message.offset()
    return found


def without(messages: Sequence[Any], partitions: Collection[TopicPartition]) -> Sequence[Any]:
    return (
        [each for each in messages if (each.topic(), each.partition()) not in partitions]
        if partitions
        else messages
    )
