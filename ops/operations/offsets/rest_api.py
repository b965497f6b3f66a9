"""Translates a change of source offsets into requests to the workers' offsets endpoint (KIP-875).
Pure.

With ``PATCH`` and ``DELETE`` of ``/connectors/{c}/offsets`` a worker serializes every key and value
itself, uses the partition of Java's partitioner, and writes to the global and the dedicated topic.
A change is possible through REST if its result is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect.last_commit import Side
from connectctl.ops.connect.release import CHANGES_OFFSETS, release_of
from connectctl.ops.connect.source_keys import SourceKey, parse_key, spelled_by_rest, value_by_rest
from connectctl.ops.core.finding import some_of
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.operations.offsets.changes import OffsetRequest, ResetOffsets

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.record_changes import OffsetChanges, RecordChange
    from connectctl.ops.operations.offsets.snapshot import WorkerFacts
    from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState

NAMED = 5
"""Keys that a reason names; the others are counted."""


@dataclass(frozen=True)
class Request:
    """A request to ``/connectors/{c}/offsets``."""

    method: str
    body: dict[str, Any] | None


def request(request: OffsetRequest, decision: OffsetChanges) -> Request:
    """Return the request that executes ``decision``, which has no ``obstacles``."""
    if isinstance(request, ResetOffsets) and request.partitions is None:
        return Request("DELETE", None)
    values = {write.key: write.value for write in decision.writes}
    return Request("PATCH", {"offsets": [_entry(key, value) for key, value in values.items()]})


def _entry(raw: bytes, value: bytes | None) -> dict[str, Any]:
    key = parse_key(raw)
    assert isinstance(key, SourceKey)
    return {"partition": key.partition, "offset": None if value is None else read_json(value)}


def obstacles(
    decision: OffsetChanges, states: Sequence[OffsetsTopicState], workers: WorkerFacts
) -> list[str]:
    """Return the reasons why the workers cannot execute ``decision``, or would write other
    records.
    """
    found = list(_of_workers(workers))
    dedicated = [state for state in states if state.side is Side.DEDICATED]
    if (
        dedicated
        and workers.enabled is not False
        and any(write.value is None for write in decision.writes)
    ):
        found.append(
            "with exactly-once and a dedicated topic, workers from 3.8 to 4.3 fail to delete "
            "offsets and leave the topics contradicting each other"
        )
    found += _reason(
        "are in a spelling that workers do not write", filter(_respelled, decision.writes)
    )
    found += _reason("lie on partitions that workers ignore", _strays(decision, states))
    found += _reason("would also be written to another topic", _contradictions(decision, states))
    return found


def _of_workers(workers: WorkerFacts) -> Iterator[str]:
    if workers.version is None:
        yield "no worker answers"
        return
    release = release_of(workers.version)
    if release is None or release < CHANGES_OFFSETS:
        yield f"the workers are {workers.version}, and changing offsets requires 3.6"


def _reason(what: str, writes: Iterator[RecordChange]) -> list[str]:
    keys = list(dict.fromkeys(write.key.decode(errors="backslashreplace") for write in writes))
    return [f"{some_of(keys, NAMED)}: these {what}"] if keys else []


def _respelled(write: RecordChange) -> bool:
    """Return whether a worker would write other bytes, or cannot write the key: its endpoint has no
    null partition.
    """
    key = parse_key(write.key)
    if (
        not isinstance(key, SourceKey)
        or not key.partition
        or spelled_by_rest(key.connector, key.partition) != write.key
    ):
        return True
    try:
        return write.value is not None and value_by_rest(read_json(write.value)) != write.value
    except ValueError:
        return True


def _strays(decision: OffsetChanges, states: Sequence[OffsetsTopicState]) -> Iterator[RecordChange]:
    count = {(state.bootstrap, state.topic): state.partitions for state in states}
    return (
        w
        for w in decision.writes
        if w.partition != java_partition(w.key, count[w.bootstrap, w.topic])
    )


def _contradictions(
    decision: OffsetChanges, states: Sequence[OffsetsTopicState]
) -> Iterator[RecordChange]:
    """Yield writes whose key a worker would also write to a topic in which ``decision`` does not
    set that value.
    """
    ends: Mapping[tuple[str | None, str, bytes], bytes | None] = {
        (w.bootstrap, w.topic, w.key): w.value for w in decision.writes
    }
    for write in decision.writes:
        for state in states:
            if (
                ends.get((state.bootstrap, state.topic, write.key), state.value(write.key))
                != write.value
            ):
                yield write
