"""The stored offset that the tasks of a connector committed last, and the staleness of its
dedicated topic. Pure.

This is the only judge of that. Planners, steps, findings and checks ask it, each with records that
it has just read.

Tasks commit to one topic: the dedicated one where workers keep a separate store, else the global
one. Commits to the dedicated topic are copied to the global one. A worker sends that copy before
the transaction is committed, so that the copy of a task that was killed may be ahead
(``ConnectorOffsetBackingStore``): a later global offset alone proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from connectctl.ops.connect.source_offsets import StoredOffset, read_offset
from connectctl.ops.kafka.records import ConsumerRecord


class Side(StrEnum):
    """The topic of an offset: the workers' global one, or the connector's dedicated one."""

    GLOBAL = "global"
    DEDICATED = "dedicated"


@dataclass(frozen=True)
class Commits:
    """The topic that a connector's tasks commit to, None if it is unknown.

    ``running``: the tasks commit now, or did until the current run stopped them. That topic then
    has the last commits, whatever the timestamps are.
    """

    to: Side | None = None
    running: bool = False


class LastCommit(NamedTuple):
    """The side of the last commit with the reason; None if neither side has an offset.

    ``stale``: the dedicated topic has another offset than the global one, and the global one is
    later. ``in_doubt``: it is stale although tasks commit to it, as after a downgrade, or the copy
    of an aborted commit is ahead: an operator has to choose. ``later`` is the difference in
    milliseconds, 0 where no timestamps were compared.
    """

    side: Side | None
    stale: bool
    why: str
    later: int = 0
    in_doubt: bool = False


def last_commit(
    global_: StoredOffset | None, dedicated: StoredOffset | None, commits: Commits
) -> LastCommit:
    """Return the last commit of one source partition."""
    if dedicated is None or dedicated.tombstone:
        side = (
            Side.GLOBAL
            if global_ is not None
            else Side.DEDICATED
            if dedicated is not None
            else None
        )
        return LastCommit(side, False, "the dedicated topic has no offset")
    if global_ is None:
        return LastCommit(Side.DEDICATED, False, "only the dedicated topic has an offset")
    if _same(global_, dedicated):
        return LastCommit(Side.DEDICATED, False, "both topics have the same offset")
    if commits.running and commits.to is not None:
        why = f"its tasks commit to the {commits.to} topic"
        return LastCommit(commits.to, commits.to is Side.GLOBAL, why)
    later = (
        (global_.timestamp or 0) - (dedicated.timestamp or 0)
        if None not in (global_.timestamp, dedicated.timestamp)
        else 0
    )
    if later > 0:
        return LastCommit(
            Side.GLOBAL, True, "the global record is later", later, commits.to is not Side.GLOBAL
        )
    return LastCommit(Side.DEDICATED, False, "the dedicated topic takes precedence")


def last_commit_of_records(
    global_: ConsumerRecord | None, dedicated: ConsumerRecord | None, commits: Commits
) -> LastCommit:
    """Return the last commit by the records of a key in the global and the dedicated topic."""
    if (
        global_ is not None
        and dedicated is not None
        and dedicated.value is not None
        and global_.value == dedicated.value
    ):
        return _SAME
    return last_commit(
        global_ and read_offset(global_), dedicated and read_offset(dedicated), commits
    )


COPY_MS = 60_000
"""Milliseconds that the copy of a commit to the dedicated topic may take while the connector
runs.
"""


def is_copied(
    global_: StoredOffset | None, dedicated: StoredOffset | None, now_ms: float, *, running: bool
) -> bool:
    """Return whether the global topic has the last commit to the dedicated one, or is about to
    receive it.
    """
    if (
        dedicated is None
        or dedicated.offset is None
        or (global_ is not None and global_.offset == dedicated.offset)
    ):
        return True
    written, copied = dedicated.timestamp or 0, (global_.timestamp or 0) if global_ else 0
    if written < copied:
        return True
    return (
        running and now_ms - written <= COPY_MS and (global_ is None or written - copied <= COPY_MS)
    )


_SAME = LastCommit(Side.DEDICATED, False, "both topics have the same offset")


def _same(global_: StoredOffset, dedicated: StoredOffset) -> bool:
    if global_.problem or dedicated.problem:
        return global_.raw == dedicated.raw
    return global_.offset == dedicated.offset


def age_difference(last: LastCommit) -> str:
    """Return how much older the dedicated offset is, as text; empty where no timestamps were
    compared.
    """
    if not last.later:
        return ""
    return f"{last.later // 1000} s" if last.later >= 1000 else f"{last.later} ms"
