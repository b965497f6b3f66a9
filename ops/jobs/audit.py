"""The jobs of an audit: from spans of partitions to rows of transactions and runs, from those to
violations. They open no session.

Every function that does the work takes and returns plain rows; the same functions run in this
process for topics that are small.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.audit.duplicate_ranges import Reader
from connectctl.ops.audit.occurrences import MatchTotals
from connectctl.ops.audit.scan import PartitionRange, PartTotals, Scan, TransactionPart
from connectctl.ops.audit.sequences import (
    Committed,
    Read,
    SequenceCheck,
    SequenceRange,
    SourceTotals,
)
from connectctl.ops.audit.summary import Summary
from connectctl.ops.audit.transactions import TransactionJoin, TransactionTotals
from connectctl.ops.audit.violations import Violation
from connectctl.ops.clients.kafka_protocol.column_reader import ColumnReader, OldFormat
from connectctl.ops.clients.kafka_protocol.headers import Headers
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.librdkafka.consume import read_ranges
from connectctl.ops.jobs.audit_sequences import Runs, Wanted, source_of
from connectctl.ops.jobs.frames import by_rows, in_shares, of_shares
from connectctl.ops.jobs.sequence_extraction import Extraction
from connectctl.ops.kafka.record_batch_decoder import Columns
from connectctl.ops.kafka.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEGMENTS = (
    "producer_id long, epoch int, marker_ts long, topic string, partition int, outcome int, "
    "marker_epoch int, first long, last long, marker long, records long, readable long, first_ts "
    "long, last_ts long, append_time boolean"
)
RUNS = (
    "stream string, source string, first long, topic string, partition int, first_offset long, "
    "last long, last_offset long, timestamp long"
)
OFFENDERS = (
    "kind string, source string, topic string, partition int, offset long, other long, first "
    "long, last long, records long, timestamp long, producer_id long, epoch int, detail string, "
    "until long, other_topic string, other_partition int, other_until long"
)
RESULT = f"what string, weight long, reported string, {OFFENDERS}"
"""What a task reports of a part, a transaction total, a source partition (``reported``, as JSON),
or a violation in columns.
"""
_BLANK = tuple(Violation(""))
_TOTALS = {
    TransactionTotals: "transactions",
    MatchTotals: "matched",
    PartTotals: "part",
    Read: "read",
}


@dataclass(frozen=True)
class Cluster:
    """The connection of tasks to the brokers. ``client`` are librdkafka's properties."""

    client: Mapping[str, Any] = field(repr=False)
    timeout: float


# ----------------------------------------------------------------------------------------- the work


def scanned(
    cluster: Cluster, spans: Sequence[PartitionRange]
) -> Iterator[TransactionPart | Violation | PartTotals]:
    """Yield the transactions in the partitions, the violations of their sequences, and after each
    partition its totals.
    """
    with closing(Headers(cluster.client, timeout=cluster.timeout)) as headers:
        for span in spans:
            scan = Scan(span)
            yield from scan.walk(headers.read(span.topic_partition, span.start, span.horizon))
            yield scan.totals


def ran(
    cluster: Cluster, spans: Sequence[PartitionRange], wanted: Wanted, *, by_column: bool = False
) -> Iterator[SequenceRange]:
    """Yield the runs of sequence numbers in the committed records of the partitions, each below its
    last stable offset.

    Read by librdkafka, or ``by_column``, which is quicker.
    """
    ranges = {s.topic_partition: (s.start, min(s.until, s.stable)) for s in spans}
    runs = Runs(wanted)
    kafka = Kafka(cluster.client, timeout=cluster.timeout)
    for partition, records in columns(cluster, ranges) if by_column else read_ranges(kafka, ranges):
        yield from runs.take(partition, records)
    yield from runs.rest()


def columns(
    cluster: Cluster, ranges: Mapping[TopicPartition, tuple[int, int]]
) -> Iterator[tuple[TopicPartition, Sequence[Any] | Columns]]:
    """Yield the committed records of each partition from the first offset of its range to before
    the second, in runs of one partition; librdkafka's messages for formats before Kafka 0.11.
    """
    with closing(ColumnReader(cluster.client, timeout=cluster.timeout)) as reader:
        for partition, (start, end) in ranges.items():
            at = start
            try:
                for chunk in reader.read(partition, start, end):
                    at = chunk.next_offset
                    if len(records := chunk.columns.between(start, end)):
                        yield partition, records
            except OldFormat:
                kafka = Kafka(cluster.client, timeout=cluster.timeout)
                yield from read_ranges(kafka, {partition: (max(start, at), end)})


def reader(cluster: Cluster, wanted: Wanted) -> Reader:
    """Return a function that yields committed records with their source partition and number, to
    look up a few.
    """
    kafka, extract, sequence = (
        Kafka(cluster.client, timeout=cluster.timeout),
        Extraction(wanted.converters),
        wanted.sequence,
    )
    assert sequence is not None

    def read(topic: str, partition: int, first: int, end: int) -> Iterator[tuple[str, int, int]]:
        for _, messages in read_ranges(kafka, {TopicPartition(topic, partition): (first, end)}):
            numbers, labels = extract(messages, sequence, wanted.by)
            for message, number, label in zip(messages, numbers, labels, strict=True):
                if number is not None:
                    yield source_of(wanted.by, partition, label), number, message.offset()

    return read


def joined(parts: Iterable[TransactionPart]) -> Iterator[Violation | TransactionTotals]:
    """Yield the violations and the totals of transactions whose parts are in
    ``transactions.order``.
    """
    joining = TransactionJoin()
    yield from joining.join(parts)
    yield joining.totals


# ----------------------------------------------------------------------------------------- on Spark


def scan_frame(
    spark: SparkSession, cluster: Cluster, spans: Sequence[PartitionRange], tasks: int
) -> DataFrame:
    """Return ``scanned`` by at most ``tasks`` Spark tasks: transactions in the columns of
    ``SEGMENTS``, the rest as ``RESULT``.

    Both are in one frame, so that the headers are read once.
    """
    shares = split(spans, tasks)

    def rows(share: Sequence[PartitionRange]) -> Iterator[tuple[Any, ...]]:
        for found in scanned(cluster, share):
            if isinstance(found, TransactionPart):
                yield (*result_of(None), *found)
            else:
                yield (*result_of(found), *[None] * len(TransactionPart._fields))

    return of_shares(spark, shares, rows, f"{RESULT}, {_prefixed(SEGMENTS)}")


def join_frame(scanned_: DataFrame, tasks: int) -> DataFrame:
    """Return ``joined`` of the transactions in the frame of ``scan_frame``."""
    columns = [f"s_{name} AS {name}" for name in TransactionPart._fields]
    parts = scanned_.where("s_producer_id IS NOT NULL").selectExpr(*columns)
    end = "CASE WHEN marker_ts < 0 THEN 4611686018427387904 ELSE marker_ts END"
    ordered = (
        parts.repartition(tasks, "producer_id")
        .selectExpr("*", f"{end} AS ended")
        .sortWithinPartitions("producer_id", "epoch", "ended", "topic", "partition")
        .drop("ended")
    )
    return by_rows(
        ordered, lambda rows: map(result_of, joined(TransactionPart(*row) for row in rows)), RESULT
    )


def summary_frame(scanned_: DataFrame) -> DataFrame:
    """Return the rows of ``scan_frame`` other than transactions."""
    return scanned_.where("s_producer_id IS NULL").select(
        "what", "weight", "reported", *Violation._fields
    )


def run_frame(
    spark: SparkSession,
    cluster: Cluster,
    spans: Sequence[PartitionRange],
    wanted: Wanted,
    tasks: int,
) -> DataFrame:
    """Return ``ran`` by at most ``tasks`` Spark tasks; large partitions are split among several."""
    shares = split(pieces(spans, tasks), tasks)
    return of_shares(spark, shares, lambda share: ran(cluster, share, wanted, by_column=True), RUNS)


def sweep_frame(
    runs: DataFrame,
    tasks: int,
    first: int | None = None,
    committed: Mapping[str, Committed] | None = None,
) -> DataFrame:
    """Return the results of ``SequenceCheck``, every source partition in one Spark task."""
    ordered = runs.repartition(tasks, "stream", "source").sortWithinPartitions(
        *SequenceRange._fields[:7]
    )
    known = dict(committed or {})
    return by_rows(
        ordered,
        lambda rows: map(
            result_of, SequenceCheck(first, known).sweep(SequenceRange(*r) for r in rows)
        ),
        RESULT,
    )


def gather_frame(found: DataFrame, shown: int) -> DataFrame:
    """Return a frame with each task's summary of the rows of ``RESULT``, as JSON in one column."""

    def summary(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[str]]:
        merged = Summary(shown)
        for row in rows:
            merged.add(_found_in(row))
        yield (json.dumps(merged.as_row()),)

    return by_rows(found, summary, "reported string")


def split(spans: Sequence[PartitionRange], tasks: int) -> list[list[PartitionRange]]:
    """Return the spans in shares, the largest first, each in the share with the least work that has
    none of its partition.
    """
    return in_shares(
        spans,
        tasks,
        lambda span: span.size,
        lambda span, share: all(s[:2] != span[:2] for s in share),
    )


def pieces(spans: Sequence[PartitionRange], tasks: int) -> list[PartitionRange]:
    """Return the spans, with large partitions split into as many pieces as all tasks need."""
    total = sum(span.size for span in spans)
    target = max(1, total // max(1, tasks))
    found = []
    for span in spans:
        count = min(tasks, max(1, round(span.size / target)))
        cuts = [span.start + span.size * n // count for n in range(count + 1)]
        found += [span._replace(start=a, until=b) for a, b in itertools.pairwise(cuts) if a < b]
    return found


# --------------------------------------------------------------------------------------------- rows


def result_of(found: Any) -> tuple[Any, ...]:
    """Return a result of the work as a row of ``RESULT``."""
    if isinstance(found, Violation):
        return ("violation", found.records, None, *found)
    if found is None:
        return (None, 0, None, *_BLANK)
    if isinstance(found, SourceTotals):
        what = "tracked" if found.tracked else "source"
        return (what, found.offences, json.dumps(asdict(found)), *_BLANK)
    row = asdict(found) if isinstance(found, Read) else found.as_row()
    return (_TOTALS[type(found)], 0, json.dumps(row), *_BLANK)


def _found_in(row: tuple[Any, ...]) -> Any:
    what, _, text, *columns = row
    if what == "violation":
        return Violation(*columns)
    data = json.loads(text)
    if what in ("transactions", "matched"):
        totals = TransactionTotals() if what == "transactions" else MatchTotals()
        totals.merge(data)
        return totals
    kind = {"part": PartTotals, "read": Read}.get(what, SourceTotals)
    return kind(**data)


def _prefixed(schema: str) -> str:
    return ", ".join(f"s_{column.strip()}" for column in schema.split(","))
