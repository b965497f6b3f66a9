"""Which of two stored offsets the tasks of a connector committed last, and whether its dedicated topic is stale: pure.

This is the only judge of that. Planners, steps, findings and checks ask it, each on records that it has just read.

Tasks commit to one topic: the dedicated one where workers keep a separate store, else the global one. What is committed to
the dedicated topic is copied to the global one. A worker sends that copy before the transaction is committed, so that the
copy of a task that was killed may be ahead (``ConnectorOffsetBackingStore``): a later global offset alone is no proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from connectctl.ops.connect.source_offsets import StoredOffset, read_offset

if TYPE_CHECKING:
    from connectctl.ops.kafka.records import ConsumerRecord


class Side(StrEnum):
    """The topic of an offset: the workers' global one, or the connector's dedicated one."""

    GLOBAL = "global"
    DEDICATED = "dedicated"


@dataclass(frozen=True)
class Commits:
    """The topic that a connector's tasks commit to, None where that is unknown.

    ``running``: they commit now, or did until the run in execution stopped them. That topic then has what they committed
    last, whatever any clock says.
    """

    to: Side | None = None
    running: bool = False


class LastCommit(NamedTuple):
    """The side that was committed last, None where neither has an offset, and why.

    ``stale``: the dedicated topic has another offset than the global one, which is the later one. ``in_doubt``: it is stale
    although tasks commit to it, as after a downgrade, or the copy of what was never committed is ahead: a person has to
    choose. ``later`` is by how many milliseconds, 0 where no clock was asked.
    """

    side: Side | None
    stale: bool
    why: str
    later: int = 0
    in_doubt: bool = False


def last_commit(theirs: StoredOffset | None, ours: StoredOffset | None, commits: Commits) -> LastCommit:
    """The verdict on one source partition: ``theirs`` is in the global topic, ``ours`` in the dedicated one."""
    if ours is None or ours.tombstone:
        side = Side.GLOBAL if theirs is not None else Side.DEDICATED if ours is not None else None
        return LastCommit(side, False, "the dedicated topic has no offset")
    if theirs is None:
        return LastCommit(Side.DEDICATED, False, "only the dedicated topic has an offset")
    if _same(theirs, ours):
        return LastCommit(Side.DEDICATED, False, "both topics have the same offset")
    if commits.running and commits.to is not None:
        why = f"its tasks commit to the {commits.to} topic"
        return LastCommit(commits.to, commits.to is Side.GLOBAL, why)
    later = (theirs.timestamp or 0) - (ours.timestamp or 0) if None not in (theirs.timestamp, ours.timestamp) else 0
    if later > 0:
        return LastCommit(Side.GLOBAL, True, "the global record is later", later, commits.to is not Side.GLOBAL)
    return LastCommit(Side.DEDICATED, False, "the dedicated topic takes precedence")


def last_of(theirs: ConsumerRecord | None, ours: ConsumerRecord | None, commits: Commits) -> LastCommit:
    """The verdict on records of a key."""
    if theirs is not None and ours is not None and ours.value is not None and theirs.value == ours.value:
        return _SAME
    return last_commit(theirs and read_offset(theirs), ours and read_offset(ours), commits)


COPY_MS = 60_000
"""Milliseconds in which the copy of what was committed to the dedicated topic may be under way while the connector runs."""


def is_copied(theirs: StoredOffset | None, ours: StoredOffset | None, now_ms: float, *, running: bool) -> bool:
    """Whether the global topic has what was committed to the dedicated one, or is about to get it."""
    if ours is None or ours.offset is None or (theirs is not None and theirs.offset == ours.offset):
        return True
    written, copied = ours.timestamp or 0, (theirs.timestamp or 0) if theirs else 0
    if written < copied:
        return True
    return running and now_ms - written <= COPY_MS and (theirs is None or written - copied <= COPY_MS)


_SAME = LastCommit(Side.DEDICATED, False, "both topics have the same offset")


def _same(theirs: StoredOffset, ours: StoredOffset) -> bool:
    if theirs.problem or ours.problem:
        return theirs.raw == ours.raw
    return theirs.offset == ours.offset


def lateness(last: LastCommit) -> str:
    """By how much the dedicated offset is older, in words; empty where no clock was asked."""
    if not last.later:
        return ""
    return f"{last.later // 1000} s" if last.later >= 1000 else f"{last.later} ms"
