"""Requests about committed offsets, and what they write over what is there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.step import step_from_data, step_to_data
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.operations.sink_offsets.changes import (
    GroupChange,
    decide,
    entries_json,
    resetting,
    restoring,
    setting,
)
from connectctl.ops.operations.sink_offsets.steps import ChangeGroupOffsets
from connectctl.ops.registry import KINDS
from hypothesis import given
from hypothesis import strategies as st

places = st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 3))
committed = st.dictionaries(places, st.integers(0, 9))
changes = st.builds(
    GroupChange,
    st.dictionaries(places, st.none() | st.integers(0, 9)).map(
        lambda d: tuple((*k, v) for k, v in d.items())
    ),
    st.booleans(),
)


def after(change: GroupChange, was: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
    writes = {write.partition: write.after for write in decide(change, was)}
    return {place: offset for place, offset in (was | writes).items() if offset is not None}


@given(changes, committed)
def test_a_change_that_was_made_has_nothing_left_to_write(
    change: GroupChange, was: dict[TopicPartition, int]
) -> None:
    assert decide(change, after(change, was)) == ()


@given(committed, committed)
def test_a_backup_gives_back_exactly_what_was_there(
    was: dict[TopicPartition, int], now: dict[TopicPartition, int]
) -> None:
    assert after(restoring(json.loads(json.dumps(entries_json(was)))), now) == was


@given(changes)
def test_a_step_comes_back_from_its_plan_as_it_was(change: GroupChange) -> None:
    step = ChangeGroupOffsets("c", "g", change, "set", (("t", 0, 0),), "rest", False, "run")
    assert step_from_data(json.loads(json.dumps(step_to_data(step))), KINDS) == step


def test_numbers_may_be_text_as_workers_take_them() -> None:
    texts = ('{"kafka_topic": "t", "kafka_partition": "1"}', '{"kafka_offset": "7"}')
    assert setting([texts]) == GroupChange((("t", 1, 7),))
    assert resetting(texts[:1]) == GroupChange((("t", 1, None),))


@pytest.mark.parametrize(
    ("partition", "offset"),
    [
        ({"kafka_topic": "t"}, {"kafka_offset": 1}),
        ({"kafka_topic": "t", "kafka_partition": -1}, {"kafka_offset": 1}),
        ({"kafka_topic": "t", "kafka_partition": True}, {"kafka_offset": 1}),
        ({"kafka_topic": 3, "kafka_partition": 1}, {"kafka_offset": 1}),
        ({"kafka_topic": "t", "kafka_partition": 1, "more": 1}, {"kafka_offset": 1}),
        ({"kafka_topic": "t", "kafka_partition": 1}, {"kafka_offset": -1}),
        ({"kafka_topic": "t", "kafka_partition": 1}, {"kafka_offset": 1.5}),
        ({"kafka_topic": "t", "kafka_partition": 1}, {"kafka_offset": 1 << 63}),
        ({"kafka_topic": "t", "kafka_partition": 1}, {"offset": 1}),
        (None, {"kafka_offset": 1}),
    ],
)
def test_what_no_worker_would_take_is_bad_input(partition: Any, offset: Any) -> None:
    with pytest.raises(BadInput, match="does not fit a sink"):
        setting([(json.dumps(partition), json.dumps(offset))])
