"""Where offsets topics ended when a plan was made, or when a step of a run had read or written them.

What lies beyond was committed later. Positions in a topic tell that; clocks of workers and operators do not.
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


def ends_of(places: Sequence[OffsetsTopicState]) -> Ends:
    """Where the topics of ``places`` ended when they were read."""
    return tuple((at.bootstrap, at.topic, tuple(at.ends)) for at in places if at.partitions_exist)


def write_ends(journal: Journal, run: Run, step: int, places: Sequence[OffsetsTopicState]) -> None:
    """Write where the topics of ``places`` ended when they were read for step ``step`` of ``run``."""
    journal.write(run.id, _file(step), json.dumps(ends_of(places)).encode())


def read_ends(journal: Journal, run: Run, step: int) -> Ends | None:
    """What ``write_ends`` wrote; None where the step did not come to it."""
    path = journal.path(run.id, _file(step))
    if not path.exists():
        return None
    return tuple((bootstrap, topic, tuple(its)) for bootstrap, topic, its in read_json(path.read_bytes()))


def later_records(at: OffsetsTopicState, since: Ends) -> Iterator[tuple[bytes, ConsumerRecord]]:
    """Every key of ``at`` whose record lies beyond ``since``, with that record."""
    ends = {(bootstrap, topic): its for bootstrap, topic, its in since}.get((at.bootstrap, at.topic), ())
    for key in at.records:
        record = at.record(key)
        if record is not None and record.offset >= (ends[record.partition] if record.partition < len(ends) else 0):
            yield key, record


def _file(step: int) -> str:
    return f"ends-{step}.json"
