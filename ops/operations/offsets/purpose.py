"""The purposes for which an engine looks at a connector's offsets, and the keys that matter for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from connectctl.ops.connect.last_commit import Side
from connectctl.ops.operations.offsets.changes import MergeOffsets, RestoreBackup
from connectctl.ops.operations.offsets.last_commits import last_commits
from connectctl.ops.operations.offsets.record_changes import Saved
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState


@dataclass(frozen=True)
class AllKeys:
    """Every record of a connector: for a backup, and where nothing better is known."""

    connector: str


@dataclass(frozen=True)
class DifferingKeys:
    """The keys of which the global and the dedicated topic say different things."""

    connector: str


Purpose = AllKeys | DifferingKeys | MergeOffsets | RestoreBackup


def is_decided(purpose: Purpose, places: Sequence[OffsetsTopicState]) -> TypeGuard[MergeOffsets | RestoreBackup]:
    """Return whether the changes for ``purpose`` can be decided on a part of the keys at a time."""
    return isinstance(purpose, RestoreBackup) or (isinstance(purpose, MergeOffsets) and len(places) == len(Side))


def relevant(purpose: Purpose, places: Sequence[OffsetsTopicState], saved: Saved) -> set[bytes]:
    """Return the keys whose records are needed after the changes for ``purpose`` are decided, or instead of that."""
    every = {key for at in places for key in at.records}
    if isinstance(purpose, RestoreBackup):  # which counts what is in topics that the backup does not have
        return {key for at in places if (at.bootstrap, at.topic) not in saved for key in at.records}
    if isinstance(purpose, AllKeys) or len(places) < len(Side):
        return every
    if isinstance(purpose, DifferingKeys):
        left, right = places
        return {key for key in every if left.value(key) != right.value(key)}
    verdicts = last_commits(places, running=purpose.running)
    return {key for key, last in verdicts if last.stale or last.in_doubt}
