"""What a change of offsets starts from: a connector at rest, offsets that are read in full, a saved
plan's requests.
"""

from __future__ import annotations

import pytest
from connectctl.ops.connect.connector import State
from connectctl.ops.connect.last_commit import Side
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.core.plan import Plan
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.offsets.changes import ResetOffsets, SetOffsets
from connectctl.ops.operations.offsets.planning import ConnectorState, plan_changes
from connectctl.ops.operations.offsets.prepare import entries_to_copy, targets_of
from connectctl.ops.operations.offsets.topic_state import OffsetsTopicState
from fakes.offsettopics import places, record

A = ["c", {"t": "a"}]


def _state(*records: ConsumerRecord) -> ConnectorState:
    return ConnectorState(
        "c", tuple(places(records, None)), State.STOPPED, True, {"connector.class": "x.y.Source"}
    )


def test_offsets_are_copied_only_where_all_are_read_and_there_are_any() -> None:
    assert len(entries_to_copy(_state(record(A, {"lsn": 1})))) == 1
    with pytest.raises(BadInput, match="c has no source offsets to copy"):
        entries_to_copy(_state())
    hidden = OffsetsTopicState("off", Side.GLOBAL, 1, {}, problem="an open transaction blocks it")
    with pytest.raises(ConnectctlError, match="an open transaction blocks it"):
        entries_to_copy(ConnectorState("c", (hidden,), None, True, {}))


@pytest.mark.parametrize(("partitions", "typed"), [(None, "c"), (('{"t": "a"}',), None)])
def test_a_saved_plan_asks_for_the_same_again(
    partitions: tuple[str, ...] | None, typed: str | None
) -> None:
    state, request = _state(record(A, {"lsn": 1})), ResetOffsets("c", partitions)
    saved = plan_changes("offsets reset", "id", [(state, request)], stop=False).plan
    (target,), whole = targets_of(saved)
    assert (target.name, whole, target.request and target.request(state)) == ("c", typed, request)
    assert targets_of(Plan("offsets set", "id", ())) == ([], None)
    assert (
        targets_of(
            plan_changes("offsets set", "id", [(state, SetOffsets("c", ()))], stop=False).plan
        )[1]
        is None
    )
