"""What is decided of thousands of keys at once: where a block says nothing new, and where all of it has to be written.

Decisions about source offsets are made key by key, in ``record_changes``. Here are the two cases that big topics mostly
consist of; of every other block nothing is said, and its keys are decided one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from connectctl.ops.connect.last_commit import Side
from connectctl.ops.kafka.aligned_blocks import Blocks, are_single, column, have_same
from connectctl.ops.kafka.partitioner import partitions_of
from connectctl.ops.kafka.records import KEY, NO_KEY, PARTITION, VALUE, Row
from connectctl.ops.operations.offsets.changes import MergeOffsets, RestoreBackup
from connectctl.ops.operations.offsets.plain_records import KeyOwners, Shapes
from connectctl.ops.operations.offsets.record_changes import ByPartition, RecordChange, Where, restored
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState


@dataclass(frozen=True)
class BlockDecisions:
    """Looks at blocks that have the rows of each of ``places``, and then of each part of ``backup``."""

    places: Sequence[OffsetsTopicState]
    backup: Sequence[Where] = ()
    _owners: KeyOwners = field(default_factory=KeyOwners)
    _values: Shapes = field(default_factory=Shapes)

    def say_the_same(self, blocks: Blocks) -> bool:
        """Whether both topics have the same values of the same keys."""
        if len(blocks) != len(Side):
            return False
        left, right = blocks
        return have_same(left, right, KEY, NO_KEY, VALUE) and are_single(left)

    def are_merged(self, blocks: Blocks) -> bool:
        """Whether a merge has nothing to do, whatever its policy: both topics say the same, where it should lie."""
        return (
            self.say_the_same(blocks)
            and self._values.have_all(column(blocks[0], VALUE))
            and all(map(_lie_where_java_puts_them, self.places, blocks))
        )

    def are_as_saved(self, blocks: Blocks) -> bool:
        """Whether a restore has nothing to do: each topic says what its backup says."""
        return self._are_paired(blocks) and all(
            have_same(now, then, KEY, NO_KEY, PARTITION, VALUE) for _, now, then in self._pairs(blocks)
        )

    def writes(self, request: MergeOffsets | RestoreBackup, blocks: Blocks) -> Sequence[tuple[Any, ...]] | None:
        """The records to write, with names or without; None where the keys have to be looked at one by one."""
        if not all(self._owners.is_of_all(column(rows, KEY), request.connector) for rows in blocks):
            return None
        if isinstance(request, RestoreBackup) and request.since:
            return None  # what was committed since is told key by key
        return self._restored(blocks) if isinstance(request, RestoreBackup) else self._merged(request, blocks)

    def _restored(self, blocks: Blocks) -> list[RecordChange] | None:
        then = blocks[len(self.places) :]
        known = all(are_single(rows) and min(column(rows, PARTITION), default=0) >= 0 for rows in then)
        if not self._are_paired(blocks) or not known:
            return None
        return [
            write for at, *both in self._pairs(blocks) for write in restored(at, *map(_by_partition, reversed(both)))
        ]

    def _merged(self, request: MergeOffsets, blocks: Blocks) -> list[tuple[Any, ...]] | None:
        """Of a block of which the target of the merge has nothing."""
        sides = {at.side: (at, rows) for at, rows in zip(self.places, blocks, strict=True)}
        if len(sides) != len(Side):
            return None
        into, there = sides.pop(Side(request.into))
        ((_, rows),) = sides.values()
        if there or not are_single(rows) or not self._values.have_all(column(rows, VALUE)):
            return None
        keys = column(rows, KEY)
        homes = partitions_of(keys, into.partitions)
        columns = repeat(into.topic), homes, keys, column(rows, VALUE), repeat(None), repeat(into.bootstrap)
        return list(zip(*columns, strict=False))

    def _pairs(self, blocks: Blocks) -> Iterable[tuple[OffsetsTopicState, list[Row], list[Row]]]:
        then = dict(zip(self.backup, blocks[len(self.places) :], strict=True))
        for at, now in zip(self.places, blocks, strict=False):
            yield at, now, then.get((at.bootstrap, at.topic), [])

    def _are_paired(self, blocks: Blocks) -> bool:
        """Whether nothing is in a place that the backup does not have, and nothing in the backup that has no place."""
        wheres = [(at.bootstrap, at.topic) for at in self.places]
        both = set(wheres).intersection(self.backup)
        return not any(rows for where, rows in zip([*wheres, *self.backup], blocks, strict=True) if where not in both)


def _lie_where_java_puts_them(at: OffsetsTopicState, rows: list[Row]) -> bool:
    return column(rows, PARTITION) == partitions_of(column(rows, KEY), at.partitions)


def _by_partition(rows: list[Row]) -> ByPartition:
    return dict(zip(zip(column(rows, KEY), column(rows, PARTITION), strict=True), column(rows, VALUE), strict=True))
