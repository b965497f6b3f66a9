"""Whatever a file of a plan holds: it is the plan that was made, or bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from connectctl.cli.flow import read_plan
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.plan import Noop, Plan
from connectctl.ops.operations.connectors.cure import AwaitPublished
from connectctl.ops.operations.connectors.steps import SetTargetState
from connectctl.ops.operations.sink_offsets.changes import GroupChange, restoring
from connectctl.ops.operations.sink_offsets.steps import ChangeGroupOffsets
from connectctl.ops.registry import KINDS
from depth import deep
from fakes.anyjson import encodings, mutated
from hypothesis import given, settings
from hypothesis import strategies as st

STEPS = (SetTargetState("a", "stop", now="RUNNING"), AwaitPublished("a"))
GROUP = ChangeGroupOffsets("a", "g", GroupChange((("t", 0, 1),)), "set it", (("t", 0, None),))
PLAN = Plan(
    "connectors stop", "cluster", (*STEPS, GROUP), (Noop("b", "already STOPPED"),), "group"
).as_json()


@settings(max_examples=deep(200, 50))
@given(raw=encodings(PLAN))
def test_a_plan_of_any_json_is_read_or_bad_input(raw: bytes, tmp_path_factory: Any) -> None:
    path = Path(tmp_path_factory.getbasetemp()) / "plan.json"
    path.write_bytes(raw)
    try:
        found = Plan.from_json(read_plan(path), KINDS)
    except BadInput:
        return
    assert found.as_json()["digest"] == PLAN["digest"] or "digest" not in json.loads(raw)


@settings(max_examples=deep(200, 50))
@given(data=mutated(PLAN["steps"]))
def test_steps_of_any_json_are_read_or_bad_input(data: Any) -> None:
    without = {name: value for name, value in PLAN.items() if name != "digest"}
    try:
        found = Plan.from_json({**without, "steps": data}, KINDS)
    except BadInput:
        return
    assert len(found.steps) == len(data)


@given(
    data=mutated(
        [{"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": {"kafka_offset": 3}}]
    )
    | st.none()
)
def test_offsets_of_a_group_of_any_json_are_read_or_bad_input(data: Any) -> None:
    try:
        found = restoring(data)
    except BadInput:
        return
    assert found.exact
