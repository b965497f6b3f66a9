"""The purposes for which an engine reads a connector's offsets, and the keys that are relevant to
them.
"""

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
    """All records of a connector: for a backup, and by default."""

    connector: str


@dataclass(frozen=True)
class DifferingKeys:
    """The keys with different values in the global and the dedicated topic."""

    connector: str


Purpose = AllKeys | DifferingKeys | MergeOffsets | RestoreBackup


def is_decided(
    purpose: Purpose, states: Sequence[OffsetsTopicState]
) -> TypeGuard[MergeOffsets | RestoreBackup]:
    """Return whether the changes for ``purpose`` can be decided on a part of the keys at a time."""
    return isinstance(purpose, RestoreBackup) or (
        isinstance(purpose, MergeOffsets) and len(states) == len(Side)
    )


def relevant(purpose: Purpose, states: Sequence[OffsetsTopicState], saved: Saved) -> set[bytes]:
    """Return the keys whose records are needed in addition to the decision for ``purpose``, or
    instead of it.
    """
    keys = {key for state in states for key in state.records}
    # It counts the offsets in topics that the backup does not include.
    if isinstance(purpose, RestoreBackup):
        return {
            key
            for state in states
            if (state.bootstrap, state.topic) not in saved
            for key in state.records
        }
    if isinstance(purpose, AllKeys) or len(states) < len(Side):
        return keys
    if isinstance(purpose, DifferingKeys):
        global_, dedicated = states
        return {key for key in keys if global_.value(key) != dedicated.value(key)}
    verdicts = last_commits(states, running=purpose.running)
    return {key for key, last in verdicts if last.stale or last.in_doubt}
