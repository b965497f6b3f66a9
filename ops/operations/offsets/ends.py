"""The end offsets of offsets topics when a plan was made, or after a step of a run had read or
written them.

Records from these offsets on were committed later. Offsets prove the order; the clocks of workers
and operators do not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from connectctl.ops.config.json_text import read_json

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Journal, Run
    from connectctl.ops.kafka.records import ConsumerRecord
    from connectctl.ops.operations.offsets.changes import Ends
    from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState


def ends_of(states: Sequence[OffsetsTopicState]) -> Ends:
    """Return the end offsets of the topics ``states`` when they were read."""
    return tuple(
        (state.bootstrap, state.topic, tuple(state.ends))
        for state in states
        if state.partitions_exist
    )


def write_ends(journal: Journal, run: Run, step: int, states: Sequence[OffsetsTopicState]) -> None:
    """Write the end offsets of the topics ``states`` that step ``step`` of ``run`` has read."""
    journal.write(run.id, _file(step), json.dumps(ends_of(states)).encode())


def read_ends(journal: Journal, run: Run, step: int) -> Ends | None:
    """Return the end offsets from ``write_ends``, None if the step was not executed so far."""
    path = journal.path(run.id, _file(step))
    if not path.exists():
        return None
    return tuple(
        (bootstrap, topic, tuple(offsets))
        for bootstrap, topic, offsets in read_json(path.read_bytes())
    )


def later_records(state: OffsetsTopicState, since: Ends) -> Iterator[tuple[bytes, ConsumerRecord]]:
    """Yield the keys of ``state`` whose records are later than ``since``, with these records."""
    ends = {(bootstrap, topic): offsets for bootstrap, topic, offsets in since}.get(
        (state.bootstrap, state.topic), ()
    )
    for key in state.records:
        record = state.record(key)
        if record is not None and record.offset >= (
            ends[record.partition] if record.partition < len(ends) else 0
        ):
            yield key, record


def _file(step: int) -> str:
    return f"ends-{step}.json"
