"""Bulk work on source offsets: which records of big topics matter to a purpose. No session and no network in here.

The rows of a frame are records of any age, of any connector, in any order, from any number of topics and from a backup. All
rows of a key meet in one Spark task, where the functions that decide for the local engine look at that key alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from connectctl.ops.connect.source_keys import parse_key
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.offsets.backup_file import backup_lines
from connectctl.ops.operations.offsets.changes import Side
from connectctl.ops.operations.offsets.key_filter import Purpose, is_relevant
from connectctl.ops.operations.offsets.record_changes import OffsetsTopicState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA = "source string, key binary, value binary, partition int, offset long, timestamp long"
BATCH = 10_000


class Row(NamedTuple):
    """A record, and which topic or which part of a backup it is from (``source_of``)."""

    source: str
    key: bytes | None
    value: bytes | None
    partition: int
    offset: int
    timestamp: int | None

    @property
    def record(self) -> ConsumerRecord:
        """The record alone."""
        return ConsumerRecord(*self[1:])


class Source(NamedTuple):
    """A topic by its cluster (None for the workers' own) and name.

    ``saved_for``: not the topic, but what the backup that this connector is restored from has of it.
    """

    bootstrap: str | None
    topic: str
    saved_for: str | None = None


@cache
def source_of(text: str) -> Source:
    """The source that a row names."""
    return Source(*json.loads(text))


@cache
def named(source: Source) -> str:
    """How rows name ``source``."""
    return json.dumps(source)


@dataclass(frozen=True)
class Looked:
    """What one connector is looked at for, and how its topics are laid out; records in ``places`` are ignored."""

    purpose: Purpose
    places: Sequence[OffsetsTopicState]


def sift(rows: DataFrame, looked: Sequence[Looked], parts: int) -> DataFrame:
    """The newest record of every key that matters to what is looked for, in as many partitions as ``parts`` says.

    Of every source a few keys more are kept in each part: one of each connector that is looked at, one of another's and
    one of nobody's, so that it is known what there is.
    """
    by_name = {
        one.purpose.connector: replace(one, places=[replace(at, records={}) for at in one.places]) for one in looked
    }

    def kept(batches: Iterator[Any]) -> Iterator[Any]:
        return to_arrow(filter_records(from_arrow(batches), by_name))

    return _by_key(rows, parts).mapInArrow(kept, SCHEMA)


def backup(rows: DataFrame, owners: Mapping[Source, frozenset[str] | None], parts: int) -> DataFrame:
    """The lines of a backup of each topic's ``owners``, None for every connector that has offsets there."""

    def spelled(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for some in _batches(_lines(from_arrow(batches), owners)):
            yield pa.RecordBatch.from_arrays([pa.array(some, pa.string())], ["value"])

    return _by_key(rows, parts).mapInArrow(spelled, "value string")


def _by_key(rows: DataFrame, parts: int) -> DataFrame:
    return rows.repartition(parts, "key").sortWithinPartitions("key")


def _lines(rows: Iterable[Row], owners: Mapping[Source, frozenset[str] | None]) -> Iterator[str]:
    for raw, group in groupby(rows, key=attrgetter("key")):
        key = parse_key(raw)
        if isinstance(key, str):
            continue
        for row in newest(group):
            source = source_of(row.source)
            owned = owners.get(source, frozenset())
            if owned is None or key.connector in owned:
                at = OffsetsTopicState(source.topic, Side.GLOBAL, 1, {raw: (row.record,)}, source.bootstrap)
                yield from backup_lines([at])


def filter_records(rows: Iterable[Row], looked: Mapping[str, Looked]) -> Iterator[Row]:
    """What ``sift`` keeps of rows in the order of their keys: the part of one task."""
    shown: set[tuple[str, str | None]] = set()
    for raw, group in groupby(rows, key=attrgetter("key")):
        found = newest(group)
        key = parse_key(raw)
        whose = None if isinstance(key, str) else key.connector if key.connector in looked else ""
        fresh = {(row.source, whose) for row in found} - shown
        if fresh or (whose and is_relevant(looked[whose].purpose, raw, *apart(found, looked[whose].places, whose))):
            shown |= fresh
            yield from found


def newest(rows: Iterable[Row]) -> list[Row]:
    """Of each key the newest record on each partition of each topic; a backup's rows are all kept."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        topic_state = (row.source, row.key, row.partition, row.offset if source_of(row.source).saved_for else None)
        if topic_state not in found or found[topic_state].offset <= row.offset:
            found[topic_state] = row
    return list(found.values())


def apart(
    rows: Iterable[Row], places: Sequence[OffsetsTopicState], connector: str
) -> tuple[list[OffsetsTopicState], dict[tuple[str | None, str], list[ConsumerRecord]]]:
    """``places`` with the records among ``rows`` that lie there, and those of the connector's backup by topic."""
    there: dict[Source, dict[bytes, list[ConsumerRecord]]] = {}
    saved: dict[tuple[str | None, str], list[ConsumerRecord]] = {}
    for row in rows:
        source, record = source_of(row.source), row.record
        if source.saved_for is None:
            there.setdefault(source, {}).setdefault(record.key or b"", []).append(record)
        elif source.saved_for == connector:
            saved.setdefault((source.bootstrap, source.topic), []).append(record)
    return [_filled(at, there.get(Source(at.bootstrap, at.topic), {})) for at in places], saved


def _filled(at: OffsetsTopicState, records: dict[bytes, list[ConsumerRecord]]) -> OffsetsTopicState:
    return replace(at, records={key: tuple(found) for key, found in records.items()})


def collected(rows: DataFrame) -> Iterator[Row]:
    """The rows of a frame, a part of them at a time in this process."""
    for source, key, value, *topic_state in rows.toLocalIterator(prefetchPartitions=True):
        yield Row(source, None if key is None else bytes(key), None if value is None else bytes(value), *topic_state)


def from_arrow(batches: Iterator[Any]) -> Iterator[Row]:
    """The rows in Arrow's batches."""
    for batch in batches:
        yield from map(Row._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def to_arrow(rows: Iterable[Row]) -> Iterator[Any]:
    """Arrow's batches of ``rows``."""
    import pyarrow as pa

    types = [pa.string(), pa.binary(), pa.binary(), pa.int32(), pa.int64(), pa.int64()]
    for some in _batches(rows):
        columns = [pa.array(column, type_) for column, type_ in zip(zip(*some, strict=True), types, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, list(Row._fields))


def _batches(values: Iterable[Any]) -> Iterator[list[Any]]:
    some: list[Any] = []
    for value in values:
        some.append(value)
        if len(some) == BATCH:
            yield some
            some = []
    if some:
        yield some
