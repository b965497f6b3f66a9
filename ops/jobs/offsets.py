"""Bulk work on source offsets: the records of large topics that matter for a purpose. It opens no
session and no connection.

Records are sent by thousands, as bytes that only Python reads, and grouped by key: each Spark task
has all records of some keys, holds them in a dictionary, and runs the code that decides in the
local engine.
"""

from __future__ import annotations

import json
import marshal
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cache
from itertools import chain, starmap
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from zlib import crc32

from connectctl.ops.connect.source_keys import connector_of
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.jobs.frames import by_rows
from connectctl.ops.kafka import memory
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.offsets.dump_lines import lines_of
from connectctl.ops.operations.offsets.engine import Purpose, is_decided, relevant
from connectctl.ops.operations.offsets.record_changes import (
    Conflict,
    OffsetChanges,
    RecordChange,
    Where,
    decide,
)
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState, by_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

T = TypeVar("T", bound=tuple[Any, ...])
ROWS = "source string, bucket int, rows binary"
"""A frame of records: where they are from (``source_of``), and as ``marshal`` writes a list of
them.
"""
FOUND = "number int, kind string, subject string, count int, content binary"
"""A frame of the results of tasks: records by source, and decisions by connector; numbered in each
task.
"""
TEXTS = "number int, value string"
"""A frame of lines, thousands in a text."""
KEPT, WRITES, CONFLICTS, REFUSALS, COUNTS = "kept", "writes", "conflicts", "refusals", "counts"
BUCKETS = 4
"""Buckets of keys for each task: as Spark deals them out by hash, a task gets some more of them and
another less.
"""
TOGETHER, THOUSANDS = 16, 2_000
"""Rows of a frame that cross over to Spark at once; and records in each of them."""
PACKED_BYTES = 200
"""Bytes that a record of what tasks found takes in addition when it is gone through."""
MOST = 200_000
"""Records that a task holds before it gives them to their buckets."""


class Source(NamedTuple):
    """A topic by its cluster (None for the workers') and name.

    ``saved_for``: not the topic, but its records in the backup that this connector is restored
    from.
    """

    bootstrap: str | None
    topic: str
    saved_for: str | None = None


@cache
def source_of(text: str) -> Source:
    """Return the source that rows name."""
    return Source(*json.loads(text))


@cache
def named(source: Source) -> str:
    """Return the name of ``source`` in rows."""
    return json.dumps(source)


Records = Iterable[tuple[Source, Sequence[ConsumerRecord]]]


class Packed(Collection[T], Generic[T]):
    """Named tuples of plain values as bytes, thousands together, in a third of the memory. They can
    be iterated again.
    """

    def __init__(self, kind: Callable[..., T]) -> None:
        self._kind, self._packs, self._count = kind, list[bytes](), 0

    def add(self, pack: bytes, count: int) -> None:
        """Add ``count`` tuples that ``marshal`` has written as a list. Raises ``ConnectctlError``
        where memory ends.
        """
        self._packs.append(pack)
        self._count += count
        memory.check(self._count, "what Spark's tasks found", PACKED_BYTES)

    def __iter__(self) -> Iterator[T]:
        return starmap(self._kind, chain.from_iterable(map(marshal.loads, self._packs)))

    def __len__(self) -> int:
        return self._count

    def __contains__(self, value: object) -> bool:
        return any(each == value for each in self)


def _packs(some: Collection[tuple[Any, ...]]) -> Iterator[tuple[bytes, int]]:
    """Yield ``some`` tuples by thousands as ``marshal`` writes them, with how many they are."""
    every = list(map(tuple, some))
    for n in range(0, len(every), THOUSANDS):
        pack = every[n : n + THOUSANDS]
        yield marshal.dumps(pack, 2), len(pack)


def in_buckets(records: Records, parts: int) -> Iterator[tuple[str, int, bytes]]:
    """Yield rows of a frame (``ROWS``) with ``records`` for ``parts`` tasks. All records of a key
    go to one bucket.
    """
    held: dict[Source, list[list[ConsumerRecord]]] = {}
    count, buckets = 0, parts * BUCKETS

    def given() -> Iterator[tuple[str, int, bytes]]:
        for source, buckets_of_source in held.items():
            yield from (
                (named(source), n, pack)
                for n, bucket in enumerate(buckets_of_source)
                for pack, _ in _packs(bucket)
            )

    for source, found in records:
        its = held.setdefault(source, [[] for _ in range(buckets)])
        for record in found:
            its[crc32(record[0] or b"") % buckets].append(record)
        count += len(found)
        if count >= MOST:
            yield from given()
            held, count = {}, 0
    yield from given()


@dataclass(frozen=True)
class DecisionInput:
    """A connector with the purpose for which it is read, the layout of its topics, and the topics
    in its backup.

    Records in ``topic_states`` are ignored.
    """

    purpose: Purpose
    topic_states: Sequence[OffsetsTopicState]
    backup: Sequence[Where] = ()


def decisions_of(
    rows: DataFrame, inputs: Sequence[DecisionInput], parts: int, results: int
) -> DataFrame:
    """Return the decisions of ``parts`` tasks and the records that later checks need (``FOUND``),
    in ``results`` partitions.

    Each task keeps one key of each topic in addition, so that a topic without keys is an empty one.
    """
    empty = [
        replace(one, topic_states=[replace(at, records={}) for at in one.topic_states])
        for one in inputs
    ]

    def found(part: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        return ((n, *one) for n, one in enumerate(decisions_of_part(part, empty)))

    # After the second shuffle a part is small, and all tasks have ended before the first part is
    # collected.
    return by_rows(rows.repartition(parts, "bucket"), found, FOUND, TOGETHER).repartition(
        results, "number"
    )


def decisions_of_part(
    rows: Iterable[tuple[Any, ...]], inputs: Sequence[DecisionInput]
) -> Iterator[tuple[Any, ...]]:
    """Yield what ``decisions_of`` finds in some buckets, without numbers: the part of one task."""
    kept: dict[Source, Newest] = {}
    for source, _, content in rows:
        add_newest(kept.setdefault(source_of(source), {}), marshal.loads(content))
    records = {
        source: list(starmap(ConsumerRecord, newest.values())) for source, newest in kept.items()
    }
    for one in inputs:
        name = one.purpose.connector
        saved = [each for each in records if each.saved_for == name]
        if any((each.bootstrap, each.topic) not in one.backup for each in saved):
            raise ConnectctlError(
                f"The backup of {name} changed while it was read", next_step="Try again."
            )
        yield from _found(records, one)
    for source, records_of_source in records.items():
        if source.saved_for is None:
            stranger = next(
                (record for record in records_of_source if connector_of(record.key) is None), None
            )
            yield from _kept(source, [stranger] if stranger else [])


Newest = dict[tuple[int, bytes | None], Sequence[Any]]
"""The newest record of each key in each partition."""


def add_newest(newest: Newest, records: Iterable[Sequence[Any]]) -> None:
    """Add ``records`` to ``newest``, but for those that are older."""
    for record in records:
        location = record[2], record[0]
        known = newest.get(location)
        if known is None or known[3] <= record[3]:
            newest[location] = record


def _found(
    records: Mapping[Source, Sequence[ConsumerRecord]], one: DecisionInput
) -> Iterator[tuple[Any, ...]]:
    name, purpose = one.purpose.connector, one.purpose

    def its(source: Source) -> dict[bytes, tuple[ConsumerRecord, ...]]:
        return {key: tuple(kept) for key, kept in by_key(records.get(source, ()), name).items()}

    topic_states = [
        replace(at, records=its(Source(at.bootstrap, at.topic))) for at in one.topic_states
    ]
    saved = {where: list(chain(*its(Source(*where, name)).values())) for where in one.backup}
    if is_decided(purpose, topic_states):
        changes = decide(purpose, topic_states, saved)
        yield from ((WRITES, name, count, pack) for pack, count in _packs(changes.writes))
        yield CONFLICTS, name, 0, marshal.dumps(list(map(astuple, changes.conflicts)), 2)
        yield REFUSALS, name, 0, marshal.dumps(list(changes.refusals), 2)
        yield COUNTS, name, 0, marshal.dumps((changes.moved, changes.merged), 2)
    keys = relevant(purpose, topic_states, saved) | {
        next(iter(at.records)) for at in topic_states if at.records
    }
    for at in topic_states:
        records_of = (at.records[key] for key in sorted(keys.intersection(at.records)))
        yield from _kept(Source(at.bootstrap, at.topic), list(chain.from_iterable(records_of)))
    for where, kept in saved.items():
        yield from _kept(
            Source(*where, name), kept if not is_decided(purpose, topic_states) else kept[:1]
        )


def _kept(source: Source, records: Collection[ConsumerRecord]) -> Iterator[tuple[Any, ...]]:
    return ((KEPT, named(source), count, pack) for pack, count in _packs(records))


@dataclass
class Found:
    """The results of all tasks: records by source, and decisions by connector."""

    records: dict[Source, Packed[ConsumerRecord]] = field(default_factory=dict)
    decided: dict[str, OffsetChanges] = field(default_factory=dict)


def collected(found: DataFrame) -> Found:
    """Return the results in a frame (``FOUND``). One part at a time is in this process."""
    return gather(row[1:] for row in found.toLocalIterator(prefetchPartitions=True))


def gather(found: Iterable[tuple[Any, ...]]) -> Found:
    """Return the results in the rows of ``decisions_of``, without their numbers."""
    kept, writes = dict[Source, Packed[ConsumerRecord]](), dict[str, Packed[RecordChange]]()
    conflicts, refusals, counts = (
        dict[str, list[Conflict]](),
        dict[str, list[str]](),
        Counter[tuple[str, int]](),
    )
    for kind, subject, count, content in found:
        if kind == KEPT:
            kept.setdefault(source_of(subject), Packed(ConsumerRecord)).add(bytes(content), count)
        elif kind == WRITES:
            writes.setdefault(subject, Packed(RecordChange)).add(bytes(content), count)
        elif kind == CONFLICTS:
            conflicts.setdefault(subject, []).extend(
                Conflict(*each) for each in marshal.loads(content)
            )
        elif kind == REFUSALS:
            refusals.setdefault(subject, []).extend(marshal.loads(content))
        else:
            counts.update({(subject, n): number for n, number in enumerate(marshal.loads(content))})
    decided = {
        name: OffsetChanges(
            writes.get(name, ()),
            tuple(sorted(conflicts[name], key=lambda each: each.key)),
            tuple(sorted(refusals[name])),
            counts[name, 0],
            counts[name, 1],
        )
        for name in conflicts
    }
    return Found(kept, decided)


def texts(
    records: Records, owners: Mapping[Source, frozenset[str] | None]
) -> Iterator[tuple[int, str]]:
    """Return the rows of a frame (``TEXTS``) with the lines of a backup of each topic's ``owners``;
    None stands for all.
    """
    parts = (
        (source, records_of_source[n : n + THOUSANDS])
        for source, records_of_source in records
        for n in range(0, len(records_of_source), THOUSANDS)
    )
    found = (
        "\n".join(
            lines_of(
                _owned(records_of_source, owners.get(source, frozenset())), *reversed(source[:2])
            )
        )
        for source, records_of_source in parts
    )
    return enumerate(filter(None, found))


def _owned(
    records: Sequence[ConsumerRecord], owners: frozenset[str] | None
) -> Iterator[ConsumerRecord]:
    for record in records:
        connector = connector_of(record.key)
        if connector is not None and (owners is None or connector in owners):
            yield record
