"""Which keys are relevant for a purpose: what an engine may skip in a large topic.

Decisions about source offsets are made key by key (``decide``, ``differences``), so a key about which nothing would be
decided can be left out before the rest is looked at. What is kept is decided again by the very same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from connectctl.ops.connect.last_commit import Side
from connectctl.ops.kafka.aligned_blocks import Blocks, are_many, left_over
from connectctl.ops.kafka.records import ConsumerRecord, Row, record_in
from connectctl.ops.kafka.spill import Spooled
from connectctl.ops.operations.offsets.block_decisions import BlockDecisions
from connectctl.ops.operations.offsets.changes import MergeOffsets, RestoreBackup
from connectctl.ops.operations.offsets.effective_offsets import TOGETHER
from connectctl.ops.operations.offsets.plain_records import KeyOwners
from connectctl.ops.operations.offsets.record_changes import Conflict, OffsetChanges, RecordChange, Saved, Where, decide
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState, is_of


@dataclass(frozen=True)
class AllKeys:
    """Every record of a connector: for a backup, and where nothing better is known."""

    connector: str


@dataclass(frozen=True)
class DifferingKeys:
    """The keys of which the global and the dedicated topic say different things."""

    connector: str


Purpose = AllKeys | DifferingKeys | MergeOffsets | RestoreBackup


def is_relevant(purpose: Purpose, key: bytes | None, places: Sequence[OffsetsTopicState], saved: Saved) -> bool:
    """Whether anything may be said about ``key``, where ``places`` and ``saved`` hold its records and no others."""
    if key is None or not is_of(key, purpose.connector):
        return False
    if isinstance(purpose, AllKeys) or (isinstance(purpose, MergeOffsets) and len(places) < 2):
        return True
    if isinstance(purpose, MergeOffsets | RestoreBackup):
        decision = decide(purpose, places, saved)
        return bool(decision.writes or decision.conflicts or decision.refusals)
    sides = {at.side: at for at in places}
    return len({at.value(key) for at in sides.values()}) > 1 or len(sides) < 2


def is_decided(purpose: Purpose, places: Sequence[OffsetsTopicState]) -> TypeGuard[MergeOffsets | RestoreBackup]:
    """Whether ``Sorted.decided`` decides on what is looked at for ``purpose``."""
    return isinstance(purpose, RestoreBackup) or (isinstance(purpose, MergeOffsets) and len(places) == len(Side))


Kept = list[tuple[bytes, list[tuple["ConsumerRecord", ...]]]]
"""Keys with their records in each place, and then in each part of a backup."""


@dataclass(frozen=True)
class Sorted:
    """What there is in the places of a connector, and in the backup for a restore: ``records`` in the order of the keys.

    They come in blocks; see ``aligned_blocks``.
    """

    purpose: Purpose
    places: Sequence[OffsetsTopicState]
    records: Sequence[Iterable[list[Row]]]
    backup: Mapping[Where, Iterable[list[Row]]] = field(default_factory=dict)

    def filtered(self) -> tuple[list[OffsetsTopicState], Saved]:
        """The places and the backup with what matters of them, and with the first key of each."""
        keys = self._keys(self._is_settled(BlockDecisions(self.places, tuple(self.backup))))
        return self._holding([(key, theirs) for key, theirs, first in keys if first or self._matters(key, theirs)])

    def decided(self, request: MergeOffsets | RestoreBackup) -> tuple[list[OffsetsTopicState], Saved, OffsetChanges]:
        """The changes, on disk; and the places and the backup with what else is asked of them: what is in both topics."""
        decisions = BlockDecisions(self.places, tuple(self.backup))
        is_settled, by_key = self._is_settled(decisions), _ByKey(request, self._holding)
        missing = [n for n, at in enumerate(self.places) if (at.bootstrap, at.topic) not in self.backup]
        kept: Kept = []

        def are_handled(blocks: Blocks) -> bool:
            if is_settled(blocks):
                return True
            writes = decisions.writes(request, blocks) if are_many(blocks) else None
            if writes is not None:
                by_key.decide()  # what comes before them
                by_key.writes.add(writes)
            return writes is not None

        for key, theirs, is_first in self._keys(are_handled):
            by_key.take(key, theirs)
            if is_first or (all(theirs) if isinstance(request, MergeOffsets) else any(theirs[n] for n in missing)):
                kept.append((key, theirs))
        by_key.decide()
        found, saved = self._holding(kept)
        refusals = by_key.refusals
        if isinstance(request, RestoreBackup):  # of the whole backup
            refusals = list(decide(request, found, saved).refusals)
        changes = OffsetChanges(by_key.writes, tuple(by_key.conflicts), tuple(refusals), by_key.moved)
        return found, saved, changes

    def _holding(self, kept: Kept) -> tuple[list[OffsetsTopicState], Saved]:
        by_place = [{key: theirs[n] for key, theirs in kept if theirs[n]} for n in range(len(self.places))]
        places = [replace(at, records=found) for at, found in zip(self.places, by_place, strict=True)]
        parts = enumerate(self.backup, start=len(self.places))
        return places, {where: [r for _, theirs in kept for r in theirs[n]] for n, where in parts}

    def _keys(
        self, are_handled: Callable[[Blocks], bool]
    ) -> Iterator[tuple[bytes, list[tuple[ConsumerRecord, ...]], bool]]:
        """Keys with their records by place, but for those that are handled many at once; and which are the first ones."""
        streams, owners = [*self.records, *self.backup.values()], KeyOwners()
        unseen = set(range(len(streams)))

        def are_seen_and_handled(blocks: Blocks) -> bool:
            return not any(blocks[n] for n in unseen) and are_handled(blocks)

        for blocks in left_over(streams, are_seen_and_handled):
            theirs = [tuple(map(record_in, rows)) for rows in blocks]
            key = next(record.key for records in theirs for record in records)
            if key is None or owners.of(key) != self.purpose.connector:
                continue
            is_first = any(theirs[n] for n in unseen)
            unseen.difference_update(n for n, records in enumerate(theirs) if records)
            yield key, theirs, is_first

    def _matters(self, key: bytes, theirs: list[tuple[ConsumerRecord, ...]]) -> bool:
        if isinstance(self.purpose, AllKeys):
            return True
        found, saved = self._holding([(key, theirs)])
        return is_relevant(self.purpose, key, found, {where: its for where, its in saved.items() if its})

    def _is_settled(self, decisions: BlockDecisions) -> Callable[[Blocks], bool]:
        """Says of blocks whether nothing is decided of any of their keys."""
        if isinstance(self.purpose, RestoreBackup):
            return decisions.are_as_saved
        if isinstance(self.purpose, MergeOffsets):
            return decisions.are_merged
        return decisions.say_the_same if isinstance(self.purpose, DifferingKeys) else lambda blocks: False


@dataclass
class _ByKey:
    """What is decided key by key, of thousands together: what it takes to place the keys is then done once."""

    request: MergeOffsets | RestoreBackup
    holding: Callable[[Kept], tuple[list[OffsetsTopicState], Saved]]
    writes: Spooled[RecordChange] = field(default_factory=lambda: Spooled(RecordChange))
    conflicts: list[Conflict] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    moved: int = 0
    _waiting: Kept = field(default_factory=list)

    def take(self, key: bytes, theirs: list[tuple[ConsumerRecord, ...]]) -> None:
        self._waiting.append((key, theirs))
        if len(self._waiting) >= TOGETHER:
            self.decide()

    def decide(self) -> None:
        if not self._waiting:
            return
        found, saved = self.holding(self._waiting)
        decision = decide(self.request, found, saved)
        self.writes.add(decision.writes)
        self.conflicts += decision.conflicts
        self.refusals += decision.refusals
        self.moved += decision.moved
        self._waiting.clear()
