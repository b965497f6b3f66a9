"""What a connector's tasks committed last, of all its source partitions: ``connect.last_commit`` is asked of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from connectctl.ops.connect.last_commit import Commits, LastCommit, Side, age_difference, last_commit_of_records
from connectctl.ops.core.finding import counted

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState


def commits_of(places: Sequence[OffsetsTopicState], *, running: bool) -> Commits:
    """The topic that the tasks of the connector with ``places`` commit to."""
    return Commits(next((at.side for at in places if at.in_use), None), running)


def last_commits(places: Sequence[OffsetsTopicState], *, running: bool) -> Iterator[tuple[bytes, LastCommit]]:
    """The verdict on every key that is in both topics."""
    by_side = {at.side: at for at in places}
    ours, theirs = by_side.get(Side.DEDICATED), by_side.get(Side.GLOBAL)
    if ours is None or theirs is None:
        return
    commits = commits_of(places, running=running)
    for key in sorted(ours.records.keys() & theirs.records.keys()):
        yield key, last_commit_of_records(theirs.record(key), ours.record(key), commits)


def stale(places: Sequence[OffsetsTopicState], *, running: bool, in_doubt: bool = False) -> str | None:
    """That the dedicated topic is stale, with the number of source partitions; None where it is not.

    With ``in_doubt`` only where a person has to choose between the two topics.
    """
    found = [
        (key, last)
        for key, last in last_commits(places, running=running)
        if (last.in_doubt if in_doubt else last.stale)
    ]
    if not found:
        return None
    by_side = {at.side: at for at in places}
    ours, theirs = by_side[Side.DEDICATED], by_side[Side.GLOBAL]
    key, last = found[0]
    old, new = _text(ours.value(key)), _text(theirs.value(key)) or "tombstone"
    how = f"is {age_difference(last)} older than the global {new}" if last.later else f"differs from the global {new}"
    to = "" if in_doubt or last.in_doubt else f"; {last.why}"
    return (
        f"The dedicated topic {ours.topic} looks stale for {counted(len(found), 'source partition')}: its offset of "
        f"{_text(key)}, {old}, {how}{to}."
    )


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode(errors="backslashreplace")
