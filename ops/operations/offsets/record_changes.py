"""From a request and the topics' contents to the records to write. Pure; empty if nothing has to change.

A record is written where Java's partitioner puts its key. Copies of the key on other partitions are deleted with it, or a
worker could still read them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.last_commit import Commits, Side, last_commit_of_records
from connectctl.ops.connect.source_keys import SourceKey, parse_key, respelled, spelled_by_rest, value_by_rest
from connectctl.ops.connect.source_offsets import problem_of
from connectctl.ops.core.errors import Refused
from connectctl.ops.kafka.partitioner import java_partition, partitions_of
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.offsets.changes import (
    CopyOffsets,
    MergeOffsets,
    MergePolicy,
    OffsetRequest,
    ResetOffsets,
    RestoreBackup,
    SetOffsets,
)
from connectctl.ops.operations.offsets.ends import later_records
from connectctl.ops.operations.offsets.last_commits import commits_of
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState, is_of

Where = tuple[str | None, str]
"""A topic: its cluster's bootstrap servers, None for the workers' own cluster, and its name."""
Saved = Mapping[Where, Collection["ConsumerRecord"]]
"""The records of a backup by topic. Topics of one name on two clusters are two topics."""


class RecordChange(NamedTuple):
    """One record to write. ``before`` is what was there, None for nothing."""

    topic: str
    partition: int
    key: bytes
    value: bytes | None
    before: bytes | None
    bootstrap: str | None = None


@dataclass(frozen=True)
class Conflict:
    """A source partition on which the policies disagree: what each would take, which one won, and why."""

    key: str
    global_: str | None
    dedicated: str | None
    taken: str
    why: str

    def as_json(self) -> dict[str, str | None]:
        """Return the JSON of the conflict."""
        sides = {"global": self.global_, "dedicated": self.dedicated}
        return {"key": self.key, **sides, "taken": self.taken, "why": self.why}


@dataclass(frozen=True)
class OffsetChanges:
    """The changes of a request. ``refusals`` are reasons against it; then ``writes`` must not be executed.

    ``moved`` is how many source partitions were committed since the run that a restore takes back, ``merged`` how many have
    an offset in the topic that a merge is made of.
    """

    writes: Collection[RecordChange]
    conflicts: tuple[Conflict, ...] = ()
    refusals: tuple[str, ...] = ()
    moved: int = 0
    merged: int = 0


def digest(writes: Collection[RecordChange]) -> str:
    """Return the same for the same writes over the same records, in whatever order: if it changes, the plan is stale."""
    total = 0
    for write in writes:
        total += int.from_bytes(hashlib.sha256(repr(tuple(write)).encode()).digest())
    return f"{total % (1 << 256):064x}"


def decide(request: OffsetRequest, places: Sequence[OffsetsTopicState], backup: Saved | None = None) -> OffsetChanges:
    """The changes for ``request``, given the connector's topics ``places``; ``backup`` is for a ``RestoreBackup``."""
    if isinstance(request, MergeOffsets):
        return _merge(request, places)
    if isinstance(request, RestoreBackup):
        return _restore(request, places, backup or {})
    wanted = dict(_wanted(request, places))
    return OffsetChanges(tuple(write for at in _in_order(places, wanted) for write in put(at, wanted)))


def _in_order(places: Sequence[OffsetsTopicState], wanted: Mapping[bytes, bytes | None]) -> list[OffsetsTopicState]:
    """Deletions reach the global topic first, or the old offset would reappear there (KAFKA-15018)."""
    deletes = any(value is None for value in wanted.values())
    return sorted(places, key=lambda at: (at.side is Side.DEDICATED) == deletes)


def put(at: OffsetsTopicState, wanted: Mapping[bytes, bytes | None]) -> Iterator[RecordChange]:
    """The records that make ``at`` say ``wanted``, key by key."""
    for (key, value), home in zip(wanted.items(), partitions_of(list(wanted), at.partitions), strict=True):
        found = {record.partition: record.value for record in at.records.get(key, ())}
        if found.get(home) != value:
            yield RecordChange(at.topic, home, key, value, found.get(home), at.bootstrap)
        for partition, stray in found.items():
            if partition != home and stray is not None:
                yield RecordChange(at.topic, partition, key, None, stray, at.bootstrap)


def _wanted(
    request: CopyOffsets | SetOffsets | ResetOffsets, places: Sequence[OffsetsTopicState]
) -> Iterable[tuple[bytes, bytes | None]]:
    if isinstance(request, CopyOffsets):
        for raw, text in request.entries:
            key = parse_key(raw.encode())
            assert isinstance(key, SourceKey)
            yield respelled(key, request.connector), text.encode()
        return
    if isinstance(request, ResetOffsets) and request.partitions is None:
        yield from ((key, None) for at in places for key in at.records)
        return
    entries = (
        request.entries
        if isinstance(request, SetOffsets)
        else [(partition, "null") for partition in request.partitions or ()]
    )
    known = _by_meaning(places)
    for partition, offset in entries:
        meant = SourceKey(request.connector, read_json(partition), "")
        spellings = known.get(meant.meaning, {})
        found = [raw for raw, as_connect in spellings.items() if as_connect]
        chosen = found[0] if found else spelled_by_rest(request.connector, meant.partition)
        yield chosen, value_by_rest(read_json(offset))
        # Other spellings of the same source partition would contradict: one of them would go on to be read.
        yield from ((other, None) for other in spellings if other != chosen)


def _by_meaning(places: Sequence[OffsetsTopicState]) -> dict[str, dict[bytes, bool]]:
    """The raw keys that exist for each source partition, those with an offset first; and whether workers find them."""
    found: dict[str, dict[bytes, bool]] = {}
    live = {raw: any(at.live(raw) for at in places) for at in places for raw in at.records}
    for raw in sorted(live, key=lambda raw: not live[raw]):
        key = parse_key(raw)
        if isinstance(key, SourceKey):
            found.setdefault(key.meaning, {})[raw] = key.spelled_as_connect
    return found


def _restore(request: RestoreBackup, places: Sequence[OffsetsTopicState], saved: Saved) -> OffsetChanges:
    """Every partition's record as it was in the backup, and tombstones for what was not there.

    What was committed since the run that is taken back stays as it is, and goes to every topic, whichever is read next.
    """
    was = {
        where: [record for record in records if record.key is not None and is_of(record.key, request.connector)]
        for where, records in saved.items()
    }
    writes: list[RecordChange] = []
    backup = {at.side: _by_partition(was.get((at.bootstrap, at.topic), []), at.partitions) for at in places}
    moved = _moved(request, places, backup)
    for at in places:
        now = {(key, r.partition): r.value for key, found in at.records.items() for r in found}
        then = {place: value for place, value in backup[at.side].items() if place[0] not in moved}
        writes += restored(at, then, {place: value for place, value in now.items() if place[0] not in moved})
        writes += put(at, moved)
    return OffsetChanges(tuple(writes), refusals=tuple(_misfits(request, places, was)), moved=len(moved))


def _moved(
    request: RestoreBackup, places: Sequence[OffsetsTopicState], backup: Mapping[Side, ByPartition]
) -> dict[bytes, bytes | None]:
    """What tasks committed after the run that ``request`` takes back, in the topic that they commit to.

    An offset that the backup has of the key, in whichever topic, is no later one: a merge may have written it. A tombstone
    is none either: somebody reset the offset.
    """
    at = next((at for at in places if at.in_use), None)
    if at is None or not request.since:
        return {}
    known: dict[bytes, set[bytes | None]] = {}
    for (key, _), value in (pair for its in backup.values() for pair in its.items()):
        known.setdefault(key, {None}).add(value)

    later = later_records(at, request.since)
    return {key: record.value for key, record in later if record.value not in known.get(key, {None})}


ByPartition = dict[tuple[bytes, int], bytes | None]
"""Values by key and partition."""


def restored(at: OffsetsTopicState, then: ByPartition, now: ByPartition) -> Iterator[RecordChange]:
    """What makes every partition of ``at`` say what it said ``then``."""
    for key, partition in sorted({**then, **now}):
        value, before = then.get((key, partition)), now.get((key, partition))
        if before != value:
            yield RecordChange(at.topic, partition, key, value, before, at.bootstrap)


def _by_partition(records: Iterable[ConsumerRecord], partitions: int) -> ByPartition:
    """The newest value of each key on each partition; a backup that names no partitions is laid out as Java would."""
    found: ByPartition = {}
    for record in sorted(records, key=lambda r: r.offset):
        key = record.key or b""
        found[key, record.partition if record.partition >= 0 else java_partition(key, partitions)] = record.value
    return found


def _misfits(request: RestoreBackup, places: Sequence[OffsetsTopicState], was: Saved) -> Iterator[str]:
    """Why a backup does not match the connector's current topics: restoring it would delete other records."""
    here = {(at.bootstrap, at.topic): at for at in places}
    for where, records in was.items():
        if records and where not in here:
            now = " and ".join(topic for _, topic in here) or "no topic"
            yield f"the backup has offsets of {request.connector} in {where[1]}, but the connector uses {now}"
    if request.run is not None:
        return  # made of all places there were: what is in none of them was not there
    if not any(was.values()):
        yield f"the backup has no offsets of {request.connector}"
        return
    for where, at in here.items():
        if count := 0 if where in was else sum(map(at.live, at.records)):
            yield f"the backup does not include {at.topic}: restoring it would delete {count} offsets of {request.connector}"


def _merge(request: MergeOffsets, places: Sequence[OffsetsTopicState]) -> OffsetChanges:
    by_side = {at.side: at for at in places}
    left, right = by_side[Side.GLOBAL], by_side[Side.DEDICATED]
    target = by_side[Side(request.into)]
    policy, commits = MergePolicy(request.policy), commits_of(places, running=request.running)
    wanted: dict[bytes, bytes | None] = {}
    conflicts, refusals = [], []
    for key in sorted({*left.records, *right.records}):
        theirs, ours = left.record(key), right.record(key)
        side, why = _take(policy, theirs, ours, commits)
        value = side.value if side else None
        if side is not None and (problem := problem_of(side)):
            refusals.append(f"{_shown(key)}: {problem}")
        if theirs and ours and theirs.value != ours.value:
            taken = "deleted" if value is None else _shown(value)
            conflicts.append(Conflict(_shown(key), text_of(theirs.value), text_of(ours.value), taken, why))
        if value is not None or target.live(key):
            wanted[key] = value
    other = right if target is left else left
    merged = sum(other.value(key) is not None for key in other.records)
    return OffsetChanges(tuple(put(target, wanted)), tuple(conflicts), tuple(refusals), merged=merged)


def _shown(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")


def text_of(value: bytes | None) -> str | None:
    return None if value is None else _shown(value)


def _take(
    policy: MergePolicy, theirs: ConsumerRecord | None, ours: ConsumerRecord | None, commits: Commits
) -> tuple[ConsumerRecord | None, str]:
    """The record that ``policy`` takes of the global (``theirs``) and the dedicated one (``ours``), and why."""
    if policy is MergePolicy.EFFECTIVE:
        last = last_commit_of_records(theirs, ours, commits)
        if ours is None or ours.value is None or (last.stale and not last.in_doubt):
            return theirs, last.why
        return ours, "the dedicated topic takes precedence"
    if theirs is None or ours is None:
        return ours or theirs, "only one topic has a record"
    if policy is MergePolicy.NEWEST:
        if commits.running and commits.to is Side.GLOBAL:
            return theirs, f"its tasks commit to the {commits.to} topic"
        newer = (theirs.timestamp or 0) > (ours.timestamp or 0)
        return (theirs, "the global record is newer") if newer else (ours, "the dedicated record is not older")
    return (theirs if policy is MergePolicy.GLOBAL else ours), f"--policy {policy}"


def effective_entries(places: Sequence[OffsetsTopicState], *, running: bool = False) -> tuple[tuple[str, str], ...]:
    """Raw key and raw value, as text, of every effective offset: what a copy writes.

    Raises ``Refused`` where one cannot be read.
    """
    by_side, commits = {at.side: at for at in places}, commits_of(places, running=running)
    found, unreadable = [], []
    for key in sorted({key for at in places for key in at.records}):
        sides = {side: at.record(key) for side, at in by_side.items()}
        chosen, _ = _take(MergePolicy.EFFECTIVE, sides.get(Side.GLOBAL), sides.get(Side.DEDICATED), commits)
        if chosen is None or chosen.value is None:
            continue
        if problem := problem_of(chosen):
            unreadable.append(f"{_shown(key)}: {problem}")
        else:
            found.append((key.decode(), chosen.value.decode()))
    if unreadable:
        raise Refused("Some offsets are unreadable for workers", why="; ".join(unreadable), code="unreadable")
    return tuple(found)
