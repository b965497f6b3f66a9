"""Single records of a transaction until they become batches: what several polls gave for a partition is encoded at once."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from connectctl.ops.kafka.record_columns import Rows
from connectctl.ops.task_runtime.spi.transaction_batch import ColumnBatch

if TYPE_CHECKING:
    from connectctl.ops.clients.kafka_protocol.refusals import Named
    from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord, RecordLists, TransactionBatch

Destination = tuple[str, int | None]
"""A topic, and a partition or None for the one that Java's partitioner gives a key."""


class Buffered(Rows):
    """Records for one place, in the order in which they were given."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0
        self._from: list[int] = []
        self._steps: list[tuple[TransactionBatch, Sequence[int]]] = []

    def extend(
        self,
        step: TransactionBatch,
        numbers: Sequence[int],
        keys: Iterable[bytes | None],
        values: list[bytes | None],
        timestamps: Iterable[int | None] | None = None,
        headers: Iterable[Any] | None = None,
    ) -> None:
        """Records of ``step`` that have these ``numbers`` in it."""
        self._from.append(len(self.values))
        self._steps.append((step, numbers))
        known = list(keys)
        self.keys += known
        self.values += values
        self.timestamps += [None] * len(values) if timestamps is None else timestamps
        self.headers += [None] * len(values) if headers is None else headers
        self.bytes += sum(map(len, filter(None, chain(known, values))))

    def named(self) -> Named | None:
        """Names each by its place in the source, where the steps can."""
        if any(step.record_name(numbers[0]) is None for step, numbers in self._steps):
            return None

        def name(row: int) -> str:
            at = bisect_right(self._from, row) - 1
            step, numbers = self._steps[at]
            return str(step.record_name(numbers[row - self._from[at]]))

        return name


class RecordBuffer:
    """All that waits: about ``most`` bytes of keys and values for a place, and ``altogether`` for all of them."""

    def __init__(self, most: int, altogether: int):
        self._most, self._altogether = most, altogether
        self._places: dict[Destination, Buffered] = defaultdict(Buffered)

    def clear(self) -> None:
        self._places.clear()

    def add(self, step: TransactionBatch) -> None:
        """The records of ``step`` that are not columns."""
        if step.records:
            self._add_records(step)
        number = len(step.records)
        for bulk in step.record_batches:
            if not isinstance(bulk, ColumnBatch):
                self._add_lists(step, number, bulk)
            number += len(bulk)
        for copies in step.copies:
            self._add_copies(step, number, copies.topic, copies.messages)
            number += len(copies.messages)

    def take(self, *, everything: bool = True) -> Iterator[tuple[Destination, Rows, Named | None]]:
        """What waits no longer: ``everything``, also where all is too much, else the places that have enough."""
        everything = everything or sum(each.bytes for each in self._places.values()) >= self._altogether
        for place in list(self._places):
            if everything or self._places[place].bytes >= self._most:
                rows = self._places.pop(place)
                yield place, rows, rows.named()

    def _add_records(self, step: TransactionBatch) -> None:
        found: dict[Destination, tuple[list[int], list[ProducerRecord]]] = defaultdict(lambda: ([], []))
        for number, record in enumerate(step.records):
            numbers, records = found[record.topic, record.partition]
            numbers.append(number)
            records.append(record)
        for place, (numbers, records) in found.items():
            self._places[place].extend(
                step,
                numbers,
                [r.key for r in records],
                [r.value for r in records],
                [r.timestamp for r in records],
                [r.headers for r in records],
            )

    def _add_lists(self, step: TransactionBatch, first: int, lists: RecordLists) -> None:
        keys = lists.keys or [None] * len(lists)
        for partition, numbers in _by_partition(lists.partitions or [None] * len(lists)).items():
            whole = len(numbers) == len(lists)
            self._places[lists.topic, partition].extend(
                step,
                _shifted(numbers, first),
                keys if whole else [keys[n] for n in numbers],
                lists.values if whole else [lists.values[n] for n in numbers],
            )

    def _add_copies(self, step: TransactionBatch, first: int, topic: str, messages: Sequence[Any]) -> None:
        for partition, numbers in _by_partition([m.partition() for m in messages]).items():
            some = [messages[n] for n in numbers]
            self._places[topic, partition].extend(
                step,
                _shifted(numbers, first),
                [m.key() for m in some],
                [m.value() for m in some],
                [when if kind else None for kind, when in (m.timestamp() for m in some)],
                [m.headers() for m in some],
            )


def _by_partition(partitions: list[int | None]) -> dict[int | None, Sequence[int]]:
    """The numbers of those that have each partition, in their order."""
    if len(set(partitions)) == 1:
        return {partitions[0]: range(len(partitions))}
    found: dict[int | None, list[int]] = defaultdict(list)
    for number, partition in enumerate(partitions):
        found[partition].append(number)
    return dict(found)


def _shifted(numbers: Sequence[int], first: int) -> Sequence[int]:
    if isinstance(numbers, range):
        return range(first, first + len(numbers))
    return [first + number for number in numbers]
