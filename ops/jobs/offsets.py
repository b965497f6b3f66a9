"""Bulk work on source offsets: which records of big topics matter to a purpose. No session and no network in here.

Rows travel by thousands, as bytes that only Python reads, and meet by key: in each Spark task the code that decides for the
local engine looks at all that there is of some keys. What does not fit into memory is sorted on disk, there and here.
"""

from __future__ import annotations

import json
import marshal
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from connectctl.ops.connect.source_keys import owners_of
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.jobs.frames import by_rows
from connectctl.ops.kafka.records import KEY, ConsumerRecord, Row, record_in
from connectctl.ops.kafka.spill import MOST, Gathered, Spooled, blocks_in_order
from connectctl.ops.operations.offsets.backup_file import lines_of
from connectctl.ops.operations.offsets.key_filter import AllKeys, Purpose, Sorted, is_decided
from connectctl.ops.operations.offsets.plain_records import KeyOwners
from connectctl.ops.operations.offsets.record_changes import Conflict, OffsetChanges, RecordChange

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.record_changes import Where
    from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState
    from pyspark.sql import DataFrame

ROWS = "source string, bucket int, rows binary"
"""A frame of rows: where they are from (``source_of``), and as ``marshal`` writes a list of them."""
FOUND = "number int, kind string, subject string, count int, content binary"
"""A frame of what tasks found: rows by their source, and by connector what is decided; numbered in each task."""
TEXTS = "number int, value string"
"""A frame of lines, thousands in a text."""
KEPT, WRITES, CONFLICTS, REFUSALS, MOVED = "kept", "writes", "conflicts", "refusals", "moved"
BUCKETS = 4
"""Buckets of keys for each task: as Spark deals them out by hash, a task gets some more of them and another less."""
TOGETHER, THOUSANDS = 16, 2_000
"""Rows of a frame that cross over to Spark at once; and records in each of them."""


class Source(NamedTuple):
    """A topic by its cluster (None for the workers' own) and name.

    ``saved_for``: not the topic, but what the backup that this connector is restored from has of it. ``strangers``: of the
    topic a key that is not Connect's, to show that there is one.
    """

    bootstrap: str | None
    topic: str
    saved_for: str | None = None
    strangers: bool = False


@cache
def source_of(text: str) -> Source:
    """The source that rows name."""
    return Source(*json.loads(text))


@cache
def named(source: Source) -> str:
    """How rows name ``source``."""
    return json.dumps(source)


Blocks = Iterable[tuple[Source, list[Row]]]


def thousands(rows: list[Row]) -> Iterator[list[Row]]:
    """The rows in lists that are small enough for a row of a frame, whatever their values are."""
    return (rows[n : n + THOUSANDS] for n in range(0, len(rows), THOUSANDS))


def in_buckets(blocks: Blocks, parts: int) -> Iterator[tuple[str, int, bytes]]:
    """Rows of a frame (``ROWS``) with ``blocks``, for as many tasks as ``parts`` says: a key's rows go to one bucket."""
    held: dict[Source, list[list[Row]]] = {}
    count, buckets = 0, parts * BUCKETS

    def given() -> Iterator[tuple[str, int, bytes]]:
        for source, its in held.items():
            yield from (
                (named(source), n, marshal.dumps(some, 2)) for n, rows in enumerate(its) for some in thousands(rows)
            )

    for source, rows in blocks:
        its = held.setdefault(source, [[] for _ in range(buckets)])
        for row, number in zip(rows, map(crc32, map(itemgetter(KEY), rows)), strict=True):
            its[number % buckets].append(row)
        count += len(rows)
        if count >= MOST:
            yield from given()
            held, count = {}, 0
    yield from given()


@dataclass(frozen=True)
class Looked:
    """What one connector is looked at for, how its topics are laid out, and of which topics its backup has something.

    Records in ``places`` are ignored.
    """

    purpose: Purpose
    places: Sequence[OffsetsTopicState]
    backup: Sequence[Where] = ()


def look(rows: DataFrame, looked: Sequence[Looked], parts: int, results: int) -> DataFrame:
    """What is decided by ``parts`` tasks, or what matters for it (``FOUND``), in as many partitions as ``results`` says.

    Of each place a key more is kept in each part, so that it is known what there is.
    """
    if all(isinstance(one.purpose, AllKeys) for one in looked):
        kept = ["bucket AS number", f"'{KEPT}' AS kind", "source AS subject", "0 AS count", "rows AS content"]
        return rows.repartition(results, "bucket").selectExpr(*kept)
    empty = [replace(one, places=[replace(at, records={}) for at in one.places]) for one in looked]

    def found(part: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        return ((n, *one) for n, one in enumerate(look_at_part(part, empty)))

    # Behind the second shuffle a part is small, and all tasks have ended before the first of them is collected.
    return by_rows(rows.repartition(parts, "bucket"), found, FOUND, TOGETHER).repartition(results, "number")


def look_at_part(rows: Iterable[tuple[Any, ...]], looked: Sequence[Looked]) -> Iterator[tuple[Any, ...]]:
    """What ``look`` finds in some buckets, without numbers: the part of one task."""
    there = Gathered[str](owners_of)
    for source, _, content in rows:
        if source_of(source).strangers:
            yield KEPT, source, 0, content
        else:
            there.add(source, marshal.loads(content))
    saved = [source for source in map(source_of, there.names()) if source.saved_for is not None]
    for one in looked:
        name = one.purpose.connector
        if any(each.saved_for == name and (each.bootstrap, each.topic) not in one.backup for each in saved):
            raise ConnectctlError(f"The backup of {name} changed while it was read", next_step="Try again.")
        yield from _found(there, one)


def _found(there: Gathered[str], one: Looked) -> Iterator[tuple[Any, ...]]:
    name, purpose = one.purpose.connector, one.purpose
    owner = name.encode(errors="surrogatepass")

    def its(source: Source) -> Iterator[list[Row]]:
        return there.blocks(named(source), owner)

    topics = [Source(at.bootstrap, at.topic) for at in one.places]
    if isinstance(purpose, AllKeys):
        yield from (_kept(source, rows) for source in topics for rows in its(source))
        return
    backup = {where: its(Source(*where, name)) for where in one.backup}
    some = Sorted(purpose, one.places, list(map(its, topics)), backup)
    if is_decided(purpose, one.places):
        places, saved, changes = some.decided(purpose)
        assert isinstance(changes.writes, Spooled)
        for writes in filter(None, changes.writes.chunks()):
            yield WRITES, name, len(writes), marshal.dumps(writes, 2)
        yield CONFLICTS, name, 0, marshal.dumps(list(map(astuple, changes.conflicts)), 2)
        yield REFUSALS, name, 0, marshal.dumps(list(changes.refusals), 2)
        yield MOVED, name, changes.moved, b""
    else:
        places, saved = some.filtered()
    for source, at in zip(topics, places, strict=True):
        yield from _kept_of(source, (record for records in at.records.values() for record in records))
    for where, records in saved.items():
        yield from _kept_of(Source(*where, name), records)


def _kept_of(source: Source, records: Iterable[ConsumerRecord]) -> Iterator[tuple[Any, ...]]:
    return (_kept(source, rows) for rows in blocks_in_order(records, owners_of))


def _kept(source: Source, rows: list[Row]) -> tuple[Any, ...]:
    return KEPT, named(source), 0, marshal.dumps(rows, 2)


@dataclass
class Found:
    """What the tasks found: the records that matter by source, and by connector what is decided."""

    records: dict[Source, Collection[ConsumerRecord]] = field(default_factory=dict)
    decided: dict[str, OffsetChanges] = field(default_factory=dict)


def collected(found: DataFrame) -> Found:
    """What is in a frame (``FOUND``), a part of it at a time in this process, and on disk what is too much for memory."""
    return gather(row[1:] for row in found.toLocalIterator(prefetchPartitions=True))


def gather(found: Iterable[tuple[Any, ...]]) -> Found:
    """The same of its rows, without their numbers."""
    kept, writes = Gathered[Source](owners_of), dict[str, Spooled[RecordChange]]()
    conflicts, refusals, moved = dict[str, list[Conflict]](), dict[str, list[str]](), Counter[str]()
    for kind, subject, count, content in found:
        if kind == MOVED:
            moved[subject] += count
            continue
        if kind == WRITES:
            writes.setdefault(subject, Spooled(RecordChange)).add_written(bytes(content), count)
            continue
        some = marshal.loads(content)
        if kind == KEPT:
            kept.add(source_of(subject)._replace(strangers=False), some)
        elif kind == CONFLICTS:
            conflicts.setdefault(subject, []).extend(Conflict(*each) for each in some)
        else:
            refusals.setdefault(subject, []).extend(some)
    decided = {
        name: OffsetChanges(
            writes.get(name, ()),
            tuple(sorted(conflicts[name], key=lambda each: each.key)),
            tuple(sorted(refusals[name])),
            moved[name],
        )
        for name in conflicts
    }
    return Found(kept.all(), decided)


def texts(blocks: Blocks, owners: Mapping[Source, frozenset[str] | None]) -> Iterator[tuple[int, str]]:
    """Rows of a frame (``TEXTS``) with the lines of a backup of each topic's ``owners``, None for every connector."""
    some = (_text(source, each, owners) for source, rows in blocks for each in thousands(rows))
    return enumerate(filter(None, some))


def _text(source: Source, rows: list[Row], owners: Mapping[Source, frozenset[str] | None]) -> str:
    owned, names = owners.get(source, frozenset()), KeyOwners()
    theirs = ((record, names.of(record.key)) for record in map(record_in, rows))
    wanted = (record for record, name in theirs if name is not None and (owned is None or name in owned))
    return "\n".join(lines_of(wanted, source.topic, source.bootstrap))
