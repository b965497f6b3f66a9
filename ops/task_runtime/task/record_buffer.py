"""A task's records until they are blocks of the writer: converted, in bulk where possible, and
buffered in the order in which the task returned them, so that what several polls gave for a topic
is encoded at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.kafka_protocol.transactional_writer import Block
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.record_columns import Rows
from connectctl.ops.task_runtime.spi.transaction_batch import (
    ColumnBatch,
    ProducerRecord,
    RecordLists,
    TransactionBatch,
)

if TYPE_CHECKING:
    from connectctl.ops.clients.kafka_protocol.refusals import Named
    from connectctl.ops.task_runtime.spi.connector import Batch, SourceRecord, SourceRecords
    from connectctl.ops.task_runtime.spi.converters import Converters


class Buffered(Rows):
    """Records of one topic, in the order in which they were given."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0
        self.kafka_partitions: set[int | None] = set()
        """The partitions that records name, with None if one names none."""
        self._from: list[int] = []
        self._steps: list[tuple[TransactionBatch, Sequence[int]]] = []

    def extend(
        self,
        step: TransactionBatch,
        numbers: Sequence[int],
        keys: Iterable[bytes | None],
        values: list[bytes | None],
        partitions: Sequence[int | None] = (),
        timestamps: Iterable[int | None] | None = None,
        headers: Iterable[Any] | None = None,
    ) -> None:
        """Add records of ``step`` that have these ``numbers`` in it."""
        self._from.append(len(self.values))
        self._steps.append((step, numbers))
        known, none = list(keys), [None] * len(values)
        self.keys += known
        self.values += values
        self.partitions += partitions or none
        self.kafka_partitions.update(partitions or (None,))
        self.timestamps += none if timestamps is None else timestamps
        self.headers += none if headers is None else headers
        self.bytes += sum(map(len, filter(None, chain(known, values))))

    def named(self) -> Named | None:
        """Names each by its position in the source, where the steps can."""
        if any(step.record_name(numbers[0]) is None for step, numbers in self._steps):
            return None

        def name(row: int) -> str:
            at = bisect_right(self._from, row) - 1
            step, numbers = self._steps[at]
            return str(step.record_name(numbers[row - self._from[at]]))

        return name


class RecordBuffer:
    """Records that wait, in their order: about ``most`` bytes of keys and values for each partition
    that those of a topic name, and ``altogether`` for all of them.
    """

    def __init__(self, most: int, altogether: int):
        self._most, self._altogether = most, altogether
        self._topics: dict[str, Buffered] = defaultdict(Buffered)

    def clear(self) -> None:
        self._topics.clear()

    def add(self, step: TransactionBatch) -> list[Block]:
        """Add the records of ``step`` that are not columns. Return its columns, each after what
        waits for their topic.
        """
        blocks: list[Block] = []
        if step.records:
            self._add_records(step)
        number = len(step.records)
        for bulk in step.record_batches:
            if isinstance(bulk, ColumnBatch):
                if bulk.topic in self._topics:
                    blocks.append(self._block(bulk.topic))
                blocks.append(Block(bulk.topic, bulk.columns, bulk.describe_row))
            elif bulk.values:
                keys = bulk.keys or [None] * len(bulk)
                numbers = range(number, number + len(bulk))
                self._topics[bulk.topic].extend(step, numbers, keys, bulk.values, bulk.partitions)
            number += len(bulk)
        for copies in step.copies:
            if copies.messages:
                self._add_copies(step, number, copies.topic, copies.messages)
            number += len(copies.messages)
        return blocks

    def take(self, *, everything: bool = True) -> Iterator[Block]:
        """Remove and return what waits no longer: ``everything``, also where all is too much, else
        topics with enough.
        """
        everything = (
            everything or sum(each.bytes for each in self._topics.values()) >= self._altogether
        )
        for topic in list(self._topics):
            rows = self._topics[topic]
            if everything or rows.bytes >= self._most * len(rows.kafka_partitions):
                yield self._block(topic)

    def _block(self, topic: str) -> Block:
        rows = self._topics.pop(topic)
        return Block(topic, rows, rows.named())

    def _add_records(self, step: TransactionBatch) -> None:
        found: dict[str, list[int]] = defaultdict(list)
        for number, record in enumerate(step.records):
            found[record.topic].append(number)
        for topic, numbers in found.items():
            records = [step.records[number] for number in numbers]
            self._topics[topic].extend(
                step,
                numbers,
                [r.key for r in records],
                [r.value for r in records],
                [r.partition for r in records],
                [r.timestamp for r in records],
                [r.headers for r in records],
            )

    def _add_copies(
        self, step: TransactionBatch, first: int, topic: str, messages: Sequence[Any]
    ) -> None:
        self._topics[topic].extend(
            step,
            range(first, first + len(messages)),
            [m.key() for m in messages],
            [m.value() for m in messages],
            [m.partition() for m in messages],
            [when if kind else None for kind, when in (m.timestamp() for m in messages)],
            [m.headers() for m in messages],
        )


class ForbiddenTopic(ConnectctlError):
    """A record is for the offsets topic of its own task, which fails whatever is tolerated."""


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
        return ([], bulks) if bulks is not None else (list(map(self.one, records)), [])

    def _bulk(self, records: SourceRecords) -> RecordLists:
        self._check(records.topic)
        values = self._converters.values(records.topic, records.value_schema, records.values)
        return RecordLists(records.topic, values)

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
            value(of_value(topic, record.value_schema, record.value))
            key(None if record.key is None else of_key(topic, record.key_schema, record.key))
            partition(record.partition)
        return list(found.values())

    def one(
        self, record: SourceRecord, executing: Callable[[str], None] = lambda part: None
    ) -> ProducerRecord:
        """Return the message for ``record``; ``executing`` is called with header, key or value before
        it is converted.
        """
        self._check(record.topic)
        converted, topic = self._converters, record.topic
        executing("header")
        headers = [
            (name, converted.of_header(topic, None, value)) for name, value in record.headers
        ]
        executing("key")
        key = converted.of_key(topic, record.key_schema, record.key)
        executing("value")
        value = converted.of_value(topic, record.value_schema, record.value)
        return ProducerRecord(topic, key, value, record.partition, headers, record.timestamp)

    def _check(self, topic: str) -> None:
        if topic == self._forbidden:
            raise ForbiddenTopic(
                "Source tasks may not produce to their own offsets topics when exactly-once "
                "support is enabled",
                next_step="Use another topic or another offsets.storage.topic for the connector.",
            )
