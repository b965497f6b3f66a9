"""The backup of a resumed run: the records that it overwrites, without those that it has written
itself. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.offsets.changes import OffsetRequest
from connectctl.ops.operations.offsets.record_changes import Saved, decide
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState


@dataclass(frozen=True)
class RenewedBackup:
    """The records of each topic, with its name and bootstrap servers. ``committed`` is the number
    of new ones.
    """

    records: tuple[tuple[tuple[ConsumerRecord, ...], str, str | None], ...]
    committed: int


def renewed(
    states: Sequence[OffsetsTopicState],
    saved: Saved,
    request: OffsetRequest,
    restored: Saved | None = None,
) -> RenewedBackup:
    """Return the backup ``saved`` of ``states`` with the records that were committed since.

    A record was committed since if it is neither in the backup nor written by ``request``.
    ``restored`` is the backup that a restore reads.
    """
    former = [_as_saved(state, saved) for state in states]
    written = {
        (w.bootstrap, w.topic, w.partition, w.key): w.value
        for w in decide(request, former, restored).writes
    }
    found, committed = [], 0
    for state, earlier in zip(states, former, strict=True):
        kept = {(key, r.partition): r for key, records in earlier.records.items() for r in records}
        for key, records in state.records.items():
            for r in records:
                before, key_in_topic = (
                    kept.get((key, r.partition)),
                    (state.bootstrap, state.topic, r.partition, key),
                )
                unchanged = before is not None and before.value == r.value
                if unchanged or (key_in_topic in written and written[key_in_topic] == r.value):
                    continue
                kept[key, r.partition] = r
                committed += 1
        found.append((tuple(kept.values()), state.topic, state.bootstrap))
    return RenewedBackup(tuple(found), committed)


def _as_saved(state: OffsetsTopicState, saved: Saved) -> OffsetsTopicState:
    records: dict[bytes, list[ConsumerRecord]] = {}
    for record in saved.get((state.bootstrap, state.topic), ()):
        if record.key is not None:
            records.setdefault(record.key, []).append(record)
    return replace(
        state, records={key: tuple(saved_records) for key, saved_records in records.items()}
    )
