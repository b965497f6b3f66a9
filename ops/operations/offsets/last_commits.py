"""The last commits of a connector's tasks, for all of its source partitions, by
``connect.last_commit``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from connectctl.ops.connect.last_commit import (
    Commits,
    LastCommit,
    Side,
    age_difference,
    last_commit_of_records,
)
from connectctl.ops.core.finding import counted

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState


def commits_of(states: Sequence[OffsetsTopicState], *, running: bool) -> Commits:
    """Return the topic to which the tasks of the connector of ``states`` commit."""
    return Commits(next((state.side for state in states if state.in_use), None), running)


def last_commits(
    states: Sequence[OffsetsTopicState], *, running: bool
) -> Iterator[tuple[bytes, LastCommit]]:
    """Yield the verdict on each key that is in both topics."""
    by_side = {state.side: state for state in states}
    dedicated, global_ = by_side.get(Side.DEDICATED), by_side.get(Side.GLOBAL)
    if dedicated is None or global_ is None:
        return
    commits = commits_of(states, running=running)
    for key in sorted(dedicated.records.keys() & global_.records.keys()):
        yield key, last_commit_of_records(global_.record(key), dedicated.record(key), commits)


def stale(
    states: Sequence[OffsetsTopicState], *, running: bool, in_doubt: bool = False
) -> str | None:
    """Return the message that the dedicated topic is stale, with the number of source partitions;
    None if it is not.

    With ``in_doubt``, only source partitions count for which the user must choose between the two
    topics.
    """
    found = [
        (key, last)
        for key, last in last_commits(states, running=running)
        if (last.in_doubt if in_doubt else last.stale)
    ]
    if not found:
        return None
    by_side = {state.side: state for state in states}
    dedicated, global_ = by_side[Side.DEDICATED], by_side[Side.GLOBAL]
    key, last = found[0]
    old, new = text_of(dedicated.value(key)), text_of(global_.value(key)) or "tombstone"
    how = (
        f"is {age_difference(last)} older than the global {new}"
        if last.later
        else f"differs from the global {new}"
    )
    to = "" if in_doubt or last.in_doubt else f"; {last.why}"
    return (
        f"The dedicated topic {dedicated.topic} looks stale for "
        f"{counted(len(found), 'source partition')}: its offset of {text_of(key)}, {old}, "
        f"{how}{to}."
    )


def text_of(raw: bytes | None) -> str | None:
    """Return a raw key or value as text, with escapes for bytes that are not UTF-8."""
    return None if raw is None else raw.decode(errors="backslashreplace")
