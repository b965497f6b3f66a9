"""A consumer's messages as a sink's records."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.spi.reading_converters import ReadingConverters
from connectctl.ops.task_runtime.spi.sink import SinkRecord
from connectctl.ops.task_runtime.task.sink_errors import (
    TIMESTAMP_TYPES,
    RecordErrors,
    RecordFailure,
    Stage,
)


class RecordReader:
    """Converts messages. Those that cannot be converted are left out if ``errors`` allows it."""

    def __init__(self, converters: ReadingConverters, errors: RecordErrors):
        self._converters, self._errors = converters, errors

    def records(self, messages: Sequence[Any]) -> list[SinkRecord]:
        """Return the records of ``messages``, in their order. Raises ``ConnectctlError`` if one
        cannot be converted and ``errors.tolerance`` is none.
        """
        read_key, read_value = self._converters.key.read, self._converters.value.read
        found: list[SinkRecord] = []
        for message in messages:  # this loop is a sink's speed
            stage = Stage.KEY_CONVERTER
            try:
                topic = message.topic()
                key_schema, key = read_key(topic, message.key())
                stage = Stage.VALUE_CONVERTER
                value_schema, value = read_value(topic, message.value())
                stage = Stage.HEADER_CONVERTER
                headers = message.headers()
                converted = self._headers(topic, headers) if headers else ()
            except Exception as e:  # noqa: BLE001  # as in Connect: whatever a converter raises
                self._errors.failed(RecordFailure(stage, self._executing(stage), message, e))
                continue
            kind, timestamp = message.timestamp()
            found.append(
                SinkRecord(
                    topic,
                    message.partition(),
                    message.offset(),
                    key,
                    value,
                    timestamp if kind else None,
                    TIMESTAMP_TYPES[kind],
                    converted,
                    key_schema,
                    value_schema,
                    message,
                )
            )
        return found

    def _headers(
        self, topic: str, headers: Sequence[tuple[str, bytes | None]]
    ) -> list[tuple[str, Any]]:
        read = self._converters.header.read
        return [(name, read(topic, value)[1]) for name, value in headers]

    def _executing(self, stage: Stage) -> str:
        converters = self._converters
        by_stage = {Stage.KEY_CONVERTER: converters.key, Stage.VALUE_CONVERTER: converters.value}
        return by_stage.get(stage, converters.header).name


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
