"""Serializes a task's records, in bulk where possible, in the order in which the task returned
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord, RecordLists

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.spi.connector import Batch, SourceRecord, SourceRecords
    from connectctl.ops.task_runtime.spi.converters import Converters


class RecordSerializer:
    """Converts records. Raises ``ConnectctlError`` for one that would go to ``forbidden``, the
    task's own offsets topic.
    """

    def __init__(self, converters: Converters, forbidden: str):
        self._converters, self._forbidden = converters, forbidden

    def of(self, records: Batch) -> tuple[list[ProducerRecord], list[RecordLists]]:
        """Return the messages, all of them in one of the two lists: a send in two parts would lose
        their order.
        """
        if not isinstance(records, Sequence):
            return [], [self._bulk(records)]
        bulks = self._bulks(records)
        return ([], bulks) if bulks is not None else (list(map(self._one, records)), [])

    def _bulk(self, records: SourceRecords) -> RecordLists:
        self._check(records.topic)
        return RecordLists(records.topic, self._converters.values(records.values))

    def _bulks(self, records: Sequence[SourceRecord]) -> list[RecordLists] | None:
        """Return one bulk for each topic; None if a record has a field that bulks lack. This loop
        determines the speed of a polled task.
        """
        of_key, of_value = self._converters.of_key, self._converters.of_value
        found: dict[str, RecordLists] = {}
        topic: str | None = None
        value = key = partition = list[Any]().append
        for record in records:
            if record.headers or record.timestamp is not None:
                return None
            if record.topic is not topic:
                topic = record.topic
                self._check(topic)
                lists = found.setdefault(topic, RecordLists(topic, []))
                value, key, partition = (
                    lists.values.append,
                    lists.keys.append,
                    lists.partitions.append,
                )
            value(of_value(record.value))
            key(None if record.key is None else of_key(record.key))
            partition(record.partition)
        return list(found.values())

    def _one(self, record: SourceRecord) -> ProducerRecord:
        self._check(record.topic)
        converted = self._converters
        return ProducerRecord(
            record.topic,
            converted.of_key(record.key),
            converted.of_value(record.value),
            record.partition,
            [(name, converted.of_header(value)) for name, value in record.headers],
            record.timestamp,
        )

    def _check(self, topic: str) -> None:
        if topic == self._forbidden:
            raise ConnectctlError(
                "Source tasks may not produce to their own offsets topics when exactly-once "
                "support is enabled",
                next_step="Use another topic or another offsets.storage.topic for the connector.",
            )
