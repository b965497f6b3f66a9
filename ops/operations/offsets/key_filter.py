"""Which keys are relevant for a purpose: what an engine may skip in a large topic.

Decisions about source offsets are made key by key (``decide``, ``differences``), so a key about which nothing would be
decided can be left out before the rest is looked at. What is kept is decided again by the very same functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import groupby, islice, repeat
from types import MappingProxyType
from typing import TYPE_CHECKING

from connectctl.ops.connect.source_keys import SourceKey, parse_key
from connectctl.ops.connect.source_offsets import effective, read_offset, worker_reads
from connectctl.ops.kafka.partitioner import partitions_of
from connectctl.ops.operations.offsets.changes import MergeOffsets, RestoreOffsets, Side
from connectctl.ops.operations.offsets.effective_offsets import TOGETHER
from connectctl.ops.operations.offsets.plain_records import Owners, Shapes
from connectctl.ops.operations.offsets.record_changes import OffsetsTopicState, decide, is_of

if TYPE_CHECKING:
    from connectctl.ops.kafka.records import Record
    from connectctl.ops.operations.offsets.record_changes import Saved, Where


@dataclass(frozen=True)
class AllKeys:
    """Every record of a connector: for a backup, and where nothing better is known."""

    connector: str


@dataclass(frozen=True)
class DifferingKeys:
    """The keys of which the global and the dedicated topic say different things."""

    connector: str


@dataclass(frozen=True)
class MisreadKeys:
    """The keys that a worker would start elsewhere than KIP-618 says."""

    connector: str


Purpose = AllKeys | DifferingKeys | MisreadKeys | MergeOffsets | RestoreOffsets


def is_relevant(purpose: Purpose, key: bytes | None, places: Sequence[OffsetsTopicState], saved: Saved) -> bool:
    """Whether anything may be said about ``key``, where ``places`` and ``saved`` hold its records and no others."""
    if key is None or not is_of(key, purpose.connector):
        return False
    if isinstance(purpose, AllKeys) or (isinstance(purpose, MergeOffsets) and len(places) < 2):
        return True
    if isinstance(purpose, MergeOffsets | RestoreOffsets):
        decision = decide(purpose, places, saved)
        return bool(decision.writes or decision.conflicts or decision.refusals)
    sides = {at.side: at for at in places}
    if isinstance(purpose, DifferingKeys):
        return len({at.value(key) for at in sides.values()}) > 1 or len(sides) < 2
    return _lost(key, sides)


def filter_records(
    purpose: Purpose,
    places: Sequence[OffsetsTopicState],
    records: Sequence[Iterable[Record]],
    backup: Mapping[Where, Iterable[Record]] = MappingProxyType({}),
) -> tuple[list[OffsetsTopicState], Saved]:
    """``places`` with what matters of their ``records``, and what matters of the ``backup`` of a restore.

    Both come in the order of the keys. What matters are also the first key of each topic, and of each in the backup.
    """
    wheres: list[Where] = [*((at.bootstrap, at.topic) for at in places), *backup]
    found: list[dict[bytes, tuple[Record, ...]]] = [{} for _ in wheres]
    unseen = set(range(len(wheres)))
    owners, values = Owners(), Shapes()
    streams = [zip(repeat(n), some) for n, some in enumerate((*records, *backup.values()))]
    in_order = merge(*streams, key=lambda row: row[1].key or b"")
    groups = ((key, list(same)) for key, same in groupby(in_order, key=lambda row: row[1].key or b""))

    def same(rows: list[tuple[int, Record]], homes: list[int]) -> bool:
        """Whether nothing is decided: both topics say the same where it should lie, or a topic what its backup says."""
        if len(rows) != 2:
            return False
        (one, left), (other, right) = rows
        if isinstance(purpose, RestoreOffsets):
            pair = one < len(places) <= other and wheres[one] == wheres[other]
            return pair and left.value == right.value and left.partition == right.partition
        if not isinstance(purpose, DifferingKeys | MergeOffsets) or len(places) != 2:
            return False
        alike = left.value is not None and left.value == right.value and values.have(left.value)
        return alike and one != other and [left.partition, right.partition] == homes

    def needed(key: bytes, rows: list[tuple[int, Record]], theirs: list[tuple[Record, ...]]) -> bool:
        if isinstance(purpose, AllKeys):
            return True
        if isinstance(purpose, MergeOffsets) and len(rows) == 1 and places[rows[0][0]].side != purpose.into:
            return True
        only = [replace(at, records={key: its} if its else {}) for at, its in zip(places, theirs, strict=False)]
        saved = {where: its for where, its in zip(backup, theirs[len(places) :], strict=True) if its}
        return is_relevant(purpose, key, only, saved)

    while some := list(islice(groups, TOGETHER)):
        by_place = [partitions_of([key for key, _ in some], at.partitions) for at in places]
        for (key, rows), *homes in zip(some, *by_place, strict=True):
            is_first = bool(unseen) and any(n in unseen for n, _ in rows)
            if owners.of(rows[0][1].key) != purpose.connector or (not is_first and same(rows, homes)):
                continue
            theirs = [tuple(record for n, record in rows if n == at) for at in range(len(wheres))]
            if is_first or needed(key, rows, theirs):
                unseen.difference_update(n for n, _ in rows)
                for kept, its in zip(found, theirs, strict=True):
                    if its:
                        kept[key] = its
    saved = {
        where: [r for its in kept.values() for r in its]
        for where, kept in zip(backup, found[len(places) :], strict=True)
    }
    return [replace(at, records=kept) for at, kept in zip(places, found, strict=False)], saved


def _lost(key: bytes, sides: Mapping[Side, OffsetsTopicState]) -> bool:
    parsed = parse_key(key)
    assert isinstance(parsed, SourceKey)
    records = {side: at.record(key) for side, at in sides.items()}
    theirs, ours = records.get(Side.GLOBAL), records.get(Side.DEDICATED)
    left, right = read_offset(theirs) if theirs else None, read_offset(ours) if ours else None
    return effective(left, right)[0] != worker_reads(parsed, left, right, has_dedicated=Side.DEDICATED in sides)
