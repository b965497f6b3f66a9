"""Which keys are relevant for a purpose: what an engine may skip in a large topic.

Decisions about source offsets are made key by key (``decide``, ``differences``), so a key about which nothing would be
decided can be left out before the rest is looked at. What is kept is decided again by the very same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import groupby, islice, repeat
from typing import TYPE_CHECKING

from connectctl.ops.connect.source_keys import SourceKey, parse_key
from connectctl.ops.connect.source_offsets import effective, read_offset, worker_reads
from connectctl.ops.kafka.partitioner import partitions_of
from connectctl.ops.kafka.spill import Spooled
from connectctl.ops.operations.offsets.changes import MergeOffsets, RestoreOffsets, Side
from connectctl.ops.operations.offsets.effective_offsets import TOGETHER
from connectctl.ops.operations.offsets.plain_records import Owners, Shapes
from connectctl.ops.operations.offsets.record_changes import (
    Conflict,
    OffsetChanges,
    OffsetsTopicState,
    RecordChange,
    decide,
    is_of,
)

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


Kept = list[tuple[bytes, list[tuple["Record", ...]]]]
"""Keys with their records in each place, and then in each part of a backup."""


@dataclass(frozen=True)
class Sorted:
    """What there is in the places of a connector, and in the backup for a restore: ``records`` in the order of the keys."""

    purpose: Purpose
    places: Sequence[OffsetsTopicState]
    records: Sequence[Iterable[Record]]
    backup: Mapping[Where, Iterable[Record]] = field(default_factory=dict)

    @property
    def _wheres(self) -> list[Where]:
        return [*((at.bootstrap, at.topic) for at in self.places), *self.backup]

    def filtered(self) -> tuple[list[OffsetsTopicState], Saved]:
        """The places and the backup with what matters of them, and with the first key of each."""
        return self._holding(
            [(key, theirs) for key, theirs, first in self._groups() if first or self._matters(key, theirs)]
        )

    def decided(self, request: MergeOffsets | RestoreOffsets) -> tuple[list[OffsetsTopicState], Saved, OffsetChanges]:
        """The changes, on disk; and the places and the backup with what else is asked of them: what is in both topics."""
        writes, kept = Spooled[RecordChange](), []
        conflicts: list[Conflict] = []
        refusals: list[str] = []
        missing = [n for n, at in enumerate(self.places) if (at.bootstrap, at.topic) not in self.backup]
        groups = self._groups()
        while some := list(islice(groups, TOGETHER)):
            found, saved = self._holding([(key, theirs) for key, theirs, _ in some])
            decision = decide(request, found, saved)
            writes.add(decision.writes)
            conflicts += decision.conflicts
            refusals += decision.refusals
            for key, theirs, is_first in some:
                there = [n for n in missing if theirs[n]]
                if is_first or (all(theirs) if isinstance(request, MergeOffsets) else there):
                    kept.append((key, theirs))
        found, saved = self._holding(kept)
        if isinstance(request, RestoreOffsets):  # of the whole backup
            refusals = list(decide(request, found, saved).refusals)
        return found, saved, OffsetChanges(writes, tuple(conflicts), tuple(refusals))

    def _holding(self, kept: Kept) -> tuple[list[OffsetsTopicState], Saved]:
        by_place = [{key: theirs[n] for key, theirs in kept if theirs[n]} for n in range(len(self.places))]
        places = [replace(at, records=found) for at, found in zip(self.places, by_place, strict=True)]
        parts = enumerate(self.backup, start=len(self.places))
        return places, {where: [r for _, theirs in kept for r in theirs[n]] for n, where in parts}

    def _groups(self) -> Iterator[tuple[bytes, list[tuple[Record, ...]], bool]]:
        """Keys with their records by place, but for those about which nothing is decided; and which are the first ones."""
        purpose, places, count = self.purpose, self.places, len(self._wheres)
        unseen, owners = set(range(count)), Owners()
        same = self._says_the_same()
        streams = [zip(repeat(n), some) for n, some in enumerate((*self.records, *self.backup.values()))]
        in_order = merge(*streams, key=lambda row: row[1].key or b"")
        groups = ((key, list(rows)) for key, rows in groupby(in_order, key=lambda row: row[1].key or b""))
        while some := list(islice(groups, TOGETHER)):
            asked = () if isinstance(purpose, RestoreOffsets) else places
            by_place = [partitions_of([key for key, _ in some], at.partitions) for at in asked]
            for (key, rows), *homes in zip(some, *by_place, strict=True):
                is_first = bool(unseen) and any(n in unseen for n, _ in rows)
                if (not is_first and same(rows, homes)) or owners.of(rows[0][1].key) != purpose.connector:
                    continue
                unseen.difference_update(n for n, _ in rows)
                yield key, [tuple(record for n, record in rows if n == at) for at in range(count)], is_first

    def _matters(self, key: bytes, theirs: list[tuple[Record, ...]]) -> bool:
        if isinstance(self.purpose, AllKeys):
            return True
        found, saved = self._holding([(key, theirs)])
        return is_relevant(self.purpose, key, found, {where: its for where, its in saved.items() if its})

    def _says_the_same(self) -> Callable[[list[tuple[int, Record]], Sequence[int]], bool]:
        """Whether nothing is decided: both topics say the same where it should lie, or a topic what its backup says."""
        purpose, places, wheres, values = self.purpose, self.places, self._wheres, Shapes()

        def same(rows: list[tuple[int, Record]], homes: Sequence[int]) -> bool:
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

        return same


def _lost(key: bytes, sides: Mapping[Side, OffsetsTopicState]) -> bool:
    parsed = parse_key(key)
    assert isinstance(parsed, SourceKey)
    records = {side: at.record(key) for side, at in sides.items()}
    theirs, ours = records.get(Side.GLOBAL), records.get(Side.DEDICATED)
    left, right = read_offset(theirs) if theirs else None, read_offset(ours) if ours else None
    return effective(left, right)[0] != worker_reads(parsed, left, right, has_dedicated=Side.DEDICATED in sides)
