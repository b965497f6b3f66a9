"""The backup of a run that is resumed: what it overwrites now, without what it has itself written before. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.offsets.record_changes import decide

if TYPE_CHECKING:
    from connectctl.ops.operations.offsets.changes import OffsetRequest
    from connectctl.ops.operations.offsets.record_changes import Saved
    from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState


@dataclass(frozen=True)
class RenewedBackup:
    """``records`` are those of each topic, with its name and bootstrap servers; ``committed`` is how many are new."""

    records: tuple[tuple[tuple[ConsumerRecord, ...], str, str | None], ...]
    committed: int


def renewed(
    places: Sequence[OffsetsTopicState], saved: Saved, request: OffsetRequest, restored: Saved | None = None
) -> RenewedBackup:
    """The backup ``saved`` of ``places``, with what was committed since.

    A record that is neither in the backup nor what ``request`` writes over it was committed meanwhile. ``restored`` is the
    backup that a restore reads.
    """
    former = [_as_saved(at, saved) for at in places]
    own = {(w.bootstrap, w.topic, w.partition, w.key): w.value for w in decide(request, former, restored).writes}
    found, committed = [], 0
    for at, then in zip(places, former, strict=True):
        kept = {(key, r.partition): r for key, records in then.records.items() for r in records}
        for key, records in at.records.items():
            for r in records:
                before, place = kept.get((key, r.partition)), (at.bootstrap, at.topic, r.partition, key)
                unchanged = before is not None and before.value == r.value
                if unchanged or (place in own and own[place] == r.value):
                    continue
                kept[key, r.partition] = r
                committed += 1
        found.append((tuple(kept.values()), at.topic, at.bootstrap))
    return RenewedBackup(tuple(found), committed)


def _as_saved(at: OffsetsTopicState, saved: Saved) -> OffsetsTopicState:
    records: dict[bytes, list[ConsumerRecord]] = {}
    for record in saved.get((at.bootstrap, at.topic), ()):
        if record.key is not None:
            records.setdefault(record.key, []).append(record)
    return replace(at, records={key: tuple(its) for key, its in records.items()})
