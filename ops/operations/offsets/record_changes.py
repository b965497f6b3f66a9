"""Decides the records to write for a request, from the records of the topics. Pure.

A record is written to the partition to which Java's partitioner assigns its key. Records of the key
on other partitions are deleted with it, because a worker could still read them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.last_commit import Commits, Side, last_commit_of_records
from connectctl.ops.connect.source_keys import (
    SourceKey,
    parse_key,
    respelled,
    spelled_by_rest,
    value_by_rest,
)
from connectctl.ops.connect.source_offsets import problem_of
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.finding import counted
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
from connectctl.ops.operations.offsets.topic_state import (
    OffsetsTopicState,
    commits_of,
    is_of,
    text_of,
)

Where = tuple[str | None, str]
"""A topic: the bootstrap servers of its cluster, None for the workers' own cluster, and its
name.
"""
Saved = Mapping[Where, Collection["ConsumerRecord"]]
"""The records of a backup by topic. Topics of one name on two clusters are two topics."""


class RecordChange(NamedTuple):
    """One record to write. ``before`` is the former value, None if there was none."""

    topic: str
    partition: int
    key: bytes
    value: bytes | None
    before: bytes | None
    bootstrap: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the record."""
        return {
            "topic": self.topic,
            "kafkaPartition": self.partition,
            "key": text_of(self.key),
            "before": text_of(self.before),
            "after": text_of(self.value),
        }


@dataclass(frozen=True)
class Conflict:
    """A source partition with different offsets in the two topics: both, the one that is taken, and
    the reason.
    """

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
    """The changes of a request. ``refusals`` are reasons against it; ``writes`` must not be
    executed then.

    ``moved`` is the number of source partitions that were committed since the run that a restore
    undoes, ``merged`` the number of those with an offset in the source topic of a merge.
    """

    writes: Collection[RecordChange]
    conflicts: tuple[Conflict, ...] = ()
    refusals: tuple[str, ...] = ()
    moved: int = 0
    merged: int = 0


def digest(writes: Collection[RecordChange]) -> str:
    """Return a digest of the writes and of the records that they replace, which does not depend on
    their order.

    If it changes, the plan is stale.
    """
    total = 0
    for write in writes:
        total += int.from_bytes(hashlib.sha256(repr(tuple(write)).encode()).digest())
    return f"{total % (1 << 256):064x}"


def decide(
    request: OffsetRequest, states: Sequence[OffsetsTopicState], backup: Saved | None = None
) -> OffsetChanges:
    """Return the changes for ``request`` of the connector with the topics ``states``; ``backup`` is
    for a ``RestoreBackup``.
    """
    if isinstance(request, MergeOffsets):
        return _merge(request, states)
    if isinstance(request, RestoreBackup):
        return _restore(request, states, backup or {})
    values = dict(_wanted(request, states))
    return OffsetChanges(
        tuple(write for state in _in_order(states, values) for write in changes_to(state, values))
    )


def _in_order(
    states: Sequence[OffsetsTopicState], values: Mapping[bytes, bytes | None]
) -> list[OffsetsTopicState]:
    """Return the topics in the order of writing: deletions begin with the global topic, or its old
    offset would reappear (KAFKA-15018).
    """
    deletes = any(value is None for value in values.values())
    return sorted(states, key=lambda state: (state.side is Side.DEDICATED) == deletes)


def changes_to(
    state: OffsetsTopicState, values: Mapping[bytes, bytes | None]
) -> Iterator[RecordChange]:
    """Yield the records that give ``state`` the ``values``, key by key."""
    for (key, value), home in zip(
        values.items(), partitions_of(list(values), state.partitions), strict=True
    ):
        found = {record.partition: record.value for record in state.records.get(key, ())}
        if found.get(home) != value:
            yield RecordChange(state.topic, home, key, value, found.get(home), state.bootstrap)
        for partition, stray in found.items():
            if partition != home and stray is not None:
                yield RecordChange(state.topic, partition, key, None, stray, state.bootstrap)


def _wanted(
    request: CopyOffsets | SetOffsets | ResetOffsets, states: Sequence[OffsetsTopicState]
) -> Iterable[tuple[bytes, bytes | None]]:
    if isinstance(request, CopyOffsets):
        for raw, text in request.entries:
            key = parse_key(raw.encode())
            assert isinstance(key, SourceKey)
            yield respelled(key, request.connector), text.encode()
        return
    if isinstance(request, ResetOffsets) and request.partitions is None:
        yield from ((key, None) for state in states for key in state.records)
        return
    entries = (
        request.entries
        if isinstance(request, SetOffsets)
        else [(partition, "null") for partition in request.partitions or ()]
    )
    known = _by_meaning(states)
    for partition, offset in entries:
        source_key = SourceKey(request.connector, read_json(partition), "")
        spellings = known.get(source_key.meaning, {})
        found = [raw for raw, as_connect in spellings.items() if as_connect]
        chosen = found[0] if found else spelled_by_rest(request.connector, source_key.partition)
        yield chosen, value_by_rest(read_json(offset))
        # Other spellings of the same source partition are deleted: workers could still read one of
        # them.
        yield from ((spelling, None) for spelling in spellings if spelling != chosen)


def _by_meaning(states: Sequence[OffsetsTopicState]) -> dict[str, dict[bytes, bool]]:
    """Return the raw keys of each source partition, those with an offset first, and whether workers
    find them.
    """
    found: dict[str, dict[bytes, bool]] = {}
    live = {
        raw: any(state.live(raw) for state in states) for state in states for raw in state.records
    }
    for raw in sorted(live, key=lambda raw: not live[raw]):
        key = parse_key(raw)
        if isinstance(key, SourceKey):
            found.setdefault(key.meaning, {})[raw] = key.spelled_as_connect
    return found


def _restore(
    request: RestoreBackup, states: Sequence[OffsetsTopicState], saved: Saved
) -> OffsetChanges:
    """Return the records of the backup for every Kafka partition, and tombstones for keys that it
    does not have.

    Offsets that were committed since the undone run are kept, and are written to every topic of the
    connector.
    """
    saved_records = {
        where: [
            record
            for record in records
            if record.key is not None and is_of(record.key, request.connector)
        ]
        for where, records in saved.items()
    }
    writes: list[RecordChange] = []
    backup = {
        state.side: _by_partition(
            saved_records.get((state.bootstrap, state.topic), []), state.partitions
        )
        for state in states
    }
    moved = _moved(request, states, backup)
    for state in states:
        now = {(key, r.partition): r.value for key, found in state.records.items() for r in found}
        before = {at: value for at, value in backup[state.side].items() if at[0] not in moved}
        writes += changes_back(
            state, before, {at: value for at, value in now.items() if at[0] not in moved}
        )
        writes += changes_to(state, moved)
    return OffsetChanges(
        tuple(writes), refusals=tuple(_misfits(request, states, saved_records)), moved=len(moved)
    )


def _moved(
    request: RestoreBackup, states: Sequence[OffsetsTopicState], backup: Mapping[Side, ByPartition]
) -> dict[bytes, bytes | None]:
    """Return the offsets that tasks committed after the run that ``request`` undoes, in the topic
    that they commit to.

    An offset of the key that is in the backup, in any topic, is not a later one: a merge may have
    written it. A tombstone is not a later offset either: it is the result of a reset.
    """
    state = next((state for state in states if state.in_use), None)
    if state is None or not request.since:
        return {}
    known: dict[bytes, set[bytes | None]] = {}
    for (key, _), value in (pair for values in backup.values() for pair in values.items()):
        known.setdefault(key, {None}).add(value)

    later = later_records(state, request.since)
    return {
        key: record.value for key, record in later if record.value not in known.get(key, {None})
    }


ByPartition = dict[tuple[bytes, int], bytes | None]
"""Values by key and partition."""


def changes_back(
    state: OffsetsTopicState, saved: ByPartition, now: ByPartition
) -> Iterator[RecordChange]:
    """Yield the records that give every partition of ``state`` its values in ``saved`` again."""
    for key, partition in sorted({**saved, **now}):
        value, before = saved.get((key, partition)), now.get((key, partition))
        if before != value:
            yield RecordChange(state.topic, partition, key, value, before, state.bootstrap)


def _by_partition(records: Iterable[ConsumerRecord], partitions: int) -> ByPartition:
    """Return the newest value of each key on each partition; without partitions in the backup, by
    Java's partitioner.
    """
    found: ByPartition = {}
    for record in sorted(records, key=lambda r: r.offset):
        key = record.key or b""
        found[
            key, record.partition if record.partition >= 0 else java_partition(key, partitions)
        ] = record.value
    return found


def _misfits(
    request: RestoreBackup, states: Sequence[OffsetsTopicState], saved: Saved
) -> Iterator[str]:
    """Yield the reasons why a backup does not match the connector's topics: restoring it would
    delete other records.
    """
    current = {(state.bootstrap, state.topic): state for state in states}
    for where, records in saved.items():
        if records and where not in current:
            now = " and ".join(topic for _, topic in current) or "no topic"
            yield (
                f"the backup has offsets of {request.connector} in {where[1]}, but the "
                f"connector uses {now}"
            )
    if request.run is not None:
        return  # The run saved all topics: a topic that is not in its backup did not exist.
    if not any(saved.values()):
        yield f"the backup has no offsets of {request.connector}"
        return
    for where, state in current.items():
        if count := 0 if where in saved else sum(map(state.live, state.records)):
            loss = f"restoring it would delete {counted(count, 'offset')} of {request.connector}"
            yield f"the backup does not include {state.topic}: {loss}"


def _merge(request: MergeOffsets, states: Sequence[OffsetsTopicState]) -> OffsetChanges:
    by_side = {state.side: state for state in states}
    global_, dedicated = by_side[Side.GLOBAL], by_side[Side.DEDICATED]
    target = by_side[Side(request.into)]
    policy, commits = MergePolicy(request.policy), commits_of(states, running=request.running)
    values: dict[bytes, bytes | None] = {}
    conflicts, refusals = [], []
    for key in sorted({*global_.records, *dedicated.records}):
        global_record, dedicated_record = global_.record(key), dedicated.record(key)
        selected, why = _select(policy, global_record, dedicated_record, commits)
        value = selected.value if selected else None
        if selected is not None and (problem := problem_of(selected)):
            refusals.append(f"{_shown(key)}: {problem}")
        if global_record and dedicated_record and global_record.value != dedicated_record.value:
            policy_value = "deleted" if value is None else _shown(value)
            conflicts.append(
                Conflict(
                    _shown(key),
                    text_of(global_record.value),
                    text_of(dedicated_record.value),
                    policy_value,
                    why,
                )
            )
        if value is not None or target.live(key):
            values[key] = value
    source = dedicated if target is global_ else global_
    merged = sum(source.value(key) is not None for key in source.records)
    return OffsetChanges(
        tuple(changes_to(target, values)), tuple(conflicts), tuple(refusals), merged=merged
    )


def _shown(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")


def _select(
    policy: MergePolicy,
    global_record: ConsumerRecord | None,
    dedicated_record: ConsumerRecord | None,
    commits: Commits,
) -> tuple[ConsumerRecord | None, str]:
    """Return the record that ``policy`` selects of the global and the dedicated one, and the
    reason.
    """
    if policy is MergePolicy.EFFECTIVE:
        last = last_commit_of_records(global_record, dedicated_record, commits)
        if (
            dedicated_record is None
            or dedicated_record.value is None
            or (last.stale and not last.in_doubt)
        ):
            return global_record, last.why
        return dedicated_record, "the dedicated topic takes precedence"
    if global_record is None or dedicated_record is None:
        return dedicated_record or global_record, "only one topic has a record"
    if policy is MergePolicy.NEWEST:
        if commits.running and commits.to is Side.GLOBAL:
            return global_record, f"its tasks commit to the {commits.to} topic"
        newer = (global_record.timestamp or 0) > (dedicated_record.timestamp or 0)
        return (
            (global_record, "the global record is newer")
            if newer
            else (dedicated_record, "the dedicated record is not older")
        )
    return (
        global_record if policy is MergePolicy.GLOBAL else dedicated_record
    ), f"--policy {policy}"


def effective_entries(
    states: Sequence[OffsetsTopicState], *, running: bool = False
) -> tuple[tuple[str, str], ...]:
    """Return raw key and raw value, as text, of every effective offset: the entries of a copy.

    Raises ``Refused`` if one is unreadable for workers.
    """
    by_side, commits = {state.side: state for state in states}, commits_of(states, running=running)
    found, unreadable = [], []
    for key in sorted({key for state in states for key in state.records}):
        records = {side: state.record(key) for side, state in by_side.items()}
        chosen, _ = _select(
            MergePolicy.EFFECTIVE, records.get(Side.GLOBAL), records.get(Side.DEDICATED), commits
        )
        if chosen is None or chosen.value is None:
            continue
        if problem := problem_of(chosen):
            unreadable.append(f"{_shown(key)}: {problem}")
        else:
            found.append((key.decode(), chosen.value.decode()))
    if unreadable:
        raise Refused(
            "Some offsets are unreadable for workers", why="; ".join(unreadable), code="unreadable"
        )
    return tuple(found)
