"""Turns the records that one reader has of a part of a topic into runs of sequence numbers, on
Spark or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.audit import field_extractor
from connectctl.ops.audit.field_extractor import RecordPart, Spec
from connectctl.ops.audit.sequences import SequenceRange
from connectctl.ops.jobs.sequence_extraction import HELD, Extraction, Numbered
from connectctl.ops.kafka.record_batch_decoder import Columns
from connectctl.ops.kafka.topic_partition import TopicPartition


@dataclass(frozen=True)
class Wanted:
    """The parts of records to read: the sequence (None: records are only counted) and the source
    partition.

    ``together``: a source partition's records are in all topics, and not in each topic separately.
    ``measure``: sum up the characters of the values, as lines of a file. ``converters``: see
    ``Extraction``.
    """

    sequence: Spec | None
    by: Spec = field_extractor.BY_KEY
    together: bool = False
    measure: bool = False
    converters: Mapping[str, str] = field(default_factory=dict, repr=False)


class Runs:
    """Finds the runs in the messages of Kafka partitions, each in the order of its log."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._extract = Extraction(wanted.converters)
        self._open: dict[TopicPartition, dict[Any, list[Any]]] = {}
        self._counts: dict[TopicPartition, list[int]] = {}

    def take(
        self, topic_partition: TopicPartition, some: Sequence[Any] | Columns
    ) -> Iterator[SequenceRange]:
        """Yield the runs that end with these messages of librdkafka's, or columns, all of one topic
        and partition.
        """
        counts = self._counts.setdefault(topic_partition, [0, 0, 0])
        counts[0] += len(some)
        sequence, by = self._wanted.sequence, self._wanted.by
        if isinstance(some, Columns):
            found = (
                None
                if self._wanted.measure or sequence is None
                else self._extract.columns(some, sequence, by)
            )
            if found is not None:
                counts[1] += len(some) - len(found.rows)
                yield from self._stretches(topic_partition, some, found)
                return
            some = some.records() if self._wanted.measure or sequence is not None else ()
        if self._wanted.measure:
            counts[2] += sum(map(_length, (message.value() for message in some)))
        if sequence is not None:
            yield from self._runs(topic_partition, some, counts)

    def rest(self) -> Iterator[SequenceRange]:
        """Yield the runs that are still open, and the counts."""
        for topic_partition, open_ in self._open.items():
            for label, run in open_.items():
                yield self._run(topic_partition, label, run)
        for (topic, partition), (records, unnumbered, characters) in self._counts.items():
            yield SequenceRange("", None, records, topic, partition, -1, unnumbered, characters, -1)

    def _runs(
        self, topic_partition: TopicPartition, some: Sequence[Any], counts: list[int]
    ) -> Iterator[SequenceRange]:
        assert self._wanted.sequence is not None
        numbers, labels = self._extract(some, self._wanted.sequence, self._wanted.by)
        open_ = self._open.setdefault(topic_partition, {})
        if _follow_each_other(numbers, labels):
            # What is in order is the rule, and then nothing but the ends of a batch matters.
            run = open_.get(labels[0])
            if run is not None and run[1] + 1 == numbers[0]:
                run[1], run[3] = numbers[-1], some[-1].offset()
                return
        offsets = [message.offset() for message in some]
        for n, (number, label, offset) in enumerate(zip(numbers, labels, offsets, strict=True)):
            run = open_.get(label)
            if run is not None and run[1] + 1 == number:
                run[1], run[3] = number, offset
            elif number is None:
                counts[1] += 1
            else:
                yield from self._room(topic_partition, label, run)
                open_[label] = [number, number, offset, offset, some[n].timestamp()[1]]

    def _stretches(
        self, topic_partition: TopicPartition, some: Columns, found: Numbered
    ) -> Iterator[SequenceRange]:
        """Yield the runs as ``_runs`` does, for one run of consecutive numbers after the other."""
        open_ = self._open.setdefault(topic_partition, {})
        for label, first, last, begin, end in found.stretches():
            run = open_.get(label)
            offset = int(some.offsets[end])
            if run is not None and run[1] + 1 == first:
                run[1], run[3] = last, offset
            else:
                yield from self._room(topic_partition, label, run)
                open_[label] = [
                    first,
                    last,
                    int(some.offsets[begin]),
                    offset,
                    some.timestamp(begin),
                ]

    def _room(
        self, topic_partition: TopicPartition, label: Any, run: list[Any] | None
    ) -> Iterator[SequenceRange]:
        """Yield ``run``, which is open for ``label``, or the oldest run if too many are open."""
        open_ = self._open[topic_partition]
        if run is not None:
            yield self._run(topic_partition, label, run)
        elif len(open_) >= HELD:
            oldest = next(iter(open_))
            yield self._run(topic_partition, oldest, open_.pop(oldest))

    def _run(self, topic_partition: TopicPartition, label: Any, run: list[Any]) -> SequenceRange:
        topic, partition = topic_partition
        source = source_of(self._wanted.by, partition, label)
        stream = "" if self._wanted.together else topic
        return SequenceRange(
            stream, source, run[0], topic, partition, run[2], run[1], run[3], run[4]
        )


def source_of(by: Spec, partition: int, label: Any) -> str:
    """Return the source partition's name of a record in ``partition`` whose label is ``label``."""
    return (
        str(partition) if by.part is RecordPart.PARTITION else field_extractor.text_of(label) or ""
    )


def _follow_each_other(numbers: Sequence[int | None], labels: Sequence[Any]) -> bool:
    """Return whether they are one run of one source partition."""
    first, last, size = numbers[0], numbers[-1], len(numbers)
    if first is None or last is None or last - first + 1 != size or labels.count(labels[0]) != size:
        return False
    return list(numbers) == list(range(first, last + 1))


def _length(value: bytes | None) -> int:
    """Return the characters of a line with its end, as ``FileStreamSourceTask`` counts them: in
    UTF-16.
    """
    if value is None:
        return 0
    if value[:1] in (b'"', b"{"):
        line = field_extractor.found_in(value, ())
        if isinstance(line, str):
            return len(line.encode("utf-16-le")) // 2 + 1
    return (
        len(value) + 1
        if value.isascii()
        else len(value.decode("utf-8", "replace").encode("utf-16-le")) // 2 + 1
    )
