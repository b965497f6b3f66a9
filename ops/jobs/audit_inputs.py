"""The job of an audit that compares a transform's output with its inputs: the same functions on
Spark and in this process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectctl.ops.audit import field_extractor
from connectctl.ops.audit.field_extractor import Spec
from connectctl.ops.audit.occurrences import (
    KEYED,
    Matching,
    MatchTotals,
    Occurrence,
    of_range,
    order,
)
from connectctl.ops.audit.scan import PartitionRange
from connectctl.ops.audit.sequences import Read, SequenceRange, SourceTotals
from connectctl.ops.audit.violations import Violation
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.librdkafka.consume import read_ranges
from connectctl.ops.jobs.audit import RESULT, Cluster, columns, pieces, result_of, split
from connectctl.ops.jobs.audit_sequences import Runs, Wanted, source_of
from connectctl.ops.jobs.frames import by_rows, of_shares
from connectctl.ops.jobs.sequence_extraction import Extraction
from connectctl.ops.kafka.record_batch_decoder import Columns
from connectctl.ops.kafka.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HELD = 100_000
"""Keys that are counted for each stretch of a partition before they are handed on."""
OCCURRENCES = (
    "source string, first long, side int, topic string, partition int, first_offset long, last "
    "long, last_offset long, times long, timestamp long"
)


@dataclass(frozen=True)
class Comparison:
    """The ranges of the output and of the inputs to compare, each with its side, by the part of a
    record that ``wanted`` names; without a sequence its key, or another identity. The other fields
    are those of ``Matching``.
    """

    ranges: tuple[PartitionRange, ...]
    wanted: Wanted
    subset: bool = False
    inputs_whole: bool = True
    output_whole: bool = True

    @property
    def size(self) -> int:
        return sum(each.size for each in self.ranges)

    def matched(
        self, rows: Iterable[Occurrence]
    ) -> Iterator[Violation | SourceTotals | Read | MatchTotals]:
        """Return the violations and totals of rows in ``occurrences.order``."""
        matching = Matching(
            subset=self.subset, inputs_whole=self.inputs_whole, output_whole=self.output_whole
        )
        return matching.sweep(rows)


class Keys:
    """Counts the occurrences of each key in messages that were read on ``side``; ``by`` is the part
    of a record to count.
    """

    def __init__(self, by: Spec, side: int, converters: Mapping[str, str] | None = None) -> None:
        self._by, self._side, self._extract = by, side, Extraction(converters)
        self._found: dict[TopicPartition, dict[Any, list[int]]] = {}
        self._counts: dict[TopicPartition, list[int]] = {}

    def take(
        self, topic_partition: TopicPartition, some: Sequence[Any] | Columns
    ) -> Iterator[Occurrence]:
        """Yield the rows of keys that are not held any longer, because too many are; see
        ``Runs.take``.
        """
        messages: Sequence[Any] = some.records() if isinstance(some, Columns) else some
        found = self._found.setdefault(topic_partition, {})
        counts = self._counts.setdefault(topic_partition, [0, 0])
        labels = self._extract.labels(messages, self._by)
        by_partition = self._by.part is field_extractor.RecordPart.PARTITION
        for message, label in zip(messages, labels, strict=True):
            counts[0] += 1
            if label is None and not by_partition:
                counts[1] += 1
            elif (held := found.get(label)) is not None:
                held[0] += 1
                held[2] = message.offset()
            else:
                found[label] = [1, message.offset(), message.offset(), message.timestamp()[1]]
        if len(found) > HELD:
            yield from self._rows(topic_partition)

    def rest(self) -> Iterator[Occurrence]:
        """Yield the rows that are still held, and the counts."""
        for partition in self._found:
            yield from self._rows(partition)
        for partition, (records, without) in self._counts.items():
            yield Occurrence(None, records, self._side, *partition, -1, without, -1, 0, -1)

    def _rows(self, topic_partition: TopicPartition) -> Iterator[Occurrence]:
        found, self._found[topic_partition] = self._found[topic_partition], {}
        for label, (count, first, last, timestamp) in found.items():
            source = source_of(self._by, topic_partition.partition, label)
            yield Occurrence(
                source, KEYED, self._side, *topic_partition, first, KEYED, last, count, timestamp
            )


def occurred(
    cluster: Cluster, ranges: Iterable[PartitionRange], wanted: Wanted, *, by_column: bool = False
) -> Iterator[Occurrence]:
    """Yield the rows of the committed records of the ranges; they are read as in ``audit.ran``."""
    kafka = Kafka(cluster.client, timeout=cluster.timeout)
    for side, group in _rounds(ranges):
        topic_partitions = {
            each.topic_partition: (each.start, min(each.until, each.stable)) for each in group
        }
        keys = None
        if wanted.sequence is None:
            keys = Keys(wanted.by, side, wanted.converters)
        runs = Runs(wanted)
        for partition, messages in (
            columns(cluster, topic_partitions)
            if by_column
            else read_ranges(kafka, topic_partitions)
        ):
            if keys is not None:
                yield from keys.take(partition, messages)
            else:
                yield from _on(runs.take(partition, messages), side)
        yield from keys.rest() if keys is not None else _on(runs.rest(), side)


def _rounds(ranges: Iterable[PartitionRange]) -> list[tuple[int, list[PartitionRange]]]:
    """Return the ranges in groups of one side, in which each partition is once: a reader has one
    range of each.
    """
    rounds: list[tuple[int, list[PartitionRange]]] = []
    for each in ranges:
        for side, group in rounds:
            if side == each.side and all(each[:2] != other[:2] for other in group):
                group.append(each)
                break
        else:
            rounds.append((each.side, [each]))
    return rounds


def _on(runs: Iterable[SequenceRange], side: int) -> Iterator[Occurrence]:
    return (of_range(run, side) for run in runs)


def compared(
    cluster: Cluster, comparison: Comparison
) -> Iterator[Violation | SourceTotals | Read | MatchTotals]:
    """Yield the results of the comparison in this process: it has a row for each key of a
    partition, or for each run of numbers.
    """
    rows = sorted(occurred(cluster, comparison.ranges, comparison.wanted), key=order)
    yield from comparison.matched(rows)


def compare_frame(
    spark: SparkSession, cluster: Cluster, comparison: Comparison, tasks: int, shuffled: int
) -> DataFrame:
    """Return the results of ``Comparison.matched`` as rows of ``RESULT``: at most ``tasks`` Spark
    tasks read, and ``shuffled`` others compare by source.
    """
    shares, wanted = split(pieces(comparison.ranges, tasks), tasks), comparison.wanted
    rows = of_shares(
        spark, shares, lambda share: occurred(cluster, share, wanted, by_column=True), OCCURRENCES
    )
    ordered = rows.repartition(shuffled, "source").sortWithinPartitions(*Occurrence._fields[:6])
    return by_rows(
        ordered,
        lambda some: map(result_of, comparison.matched(Occurrence(*r) for r in some)),
        RESULT,
    )
