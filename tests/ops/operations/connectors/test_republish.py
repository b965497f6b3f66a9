"""The cure of lost task configurations: what is planned, and what keeps it from being known."""

from __future__ import annotations

import json
from typing import Any

import pytest
from connectctl.ops.connect.connector import Connector, Status
from connectctl.ops.connect.task_config_commits import TaskConfigOrder
from connectctl.ops.core.errors import Refused, TimedOut
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.operations.connectors.cure import (
    AwaitPublished,
    CureContext,
    findings,
    orders,
    plan_republish,
)
from connectctl.ops.operations.connectors.steps import Await, SetTargetState
from fakes.kafkareads import FakeKafka

ORDER = TaskConfigOrder("x", 2, 3, 9, -1)


def connector(state: str, target: str | None = None) -> Connector:
    return Connector(
        "x", Status(state, "w:8083"), {0: Status("RUNNING", "w:8083")}, target_state=target
    )


@pytest.mark.parametrize(
    ("state", "target", "back"),
    [
        ("RUNNING", "STARTED", "resume"),
        ("PAUSED", "PAUSED", "pause"),
        ("PAUSED", None, "pause"),
        ("RUNNING", "PAUSED", "pause"),
    ],
)
def test_it_is_stopped_and_brought_back_to_where_it_was(
    state: str, target: str | None, back: str
) -> None:
    steps = plan_republish("c", connector(state, target), ORDER).steps
    assert [type(step) for step in steps] == [
        SetTargetState,
        Await,
        SetTargetState,
        Await,
        AwaitPublished,
    ]
    assert [step.verb for step in steps if isinstance(step, SetTargetState)] == ["stop", back]


def test_one_that_failed_itself_would_lose_the_tasks_that_it_has() -> None:
    with pytest.raises(Refused, match="FAILED"):
        plan_republish("c", connector("FAILED"), ORDER)


def test_tasks_that_do_not_come_are_a_time_out_with_their_offsets() -> None:
    now = iter(range(100))
    lost: dict[str, Any] = {"pending": lambda _: False, "order": lambda _: ORDER}
    context = CureContext(None, 5.0, now=lambda: float(next(now)), sleep=lambda _: None, **lost)  # type: ignore[arg-type]
    with pytest.raises(TimedOut, match="offset 9"):
        AwaitPublished("x").apply(context)


def kafka() -> FakeKafka:
    values = [
        ("task-x-0", {"properties": {}}),
        ("commit-x", {"tasks": 1}),
        ("connector-x", {"properties": {"a": "b"}}),
    ]
    records = [
        ConsumerRecord(k.encode(), json.dumps(v).encode(), 0, n) for n, (k, v) in enumerate(values)
    ]
    return FakeKafka(records={"configs": records})


def test_the_order_is_read_from_the_topic() -> None:
    assert orders(kafka(), "configs") == (TaskConfigOrder("x", 1, 1, 2, -1),)
    (finding,) = findings(kafka(), "configs")
    assert finding.id == "TASK010"
    assert findings(kafka(), None) == ()


def test_a_topic_that_may_not_be_read_is_said_to_be_unseen() -> None:
    denied = kafka()
    denied.forbidden = {"configs"}
    (finding,) = findings(denied, "configs")
    assert finding.id == "SIGHT001"
    assert "configs" in finding.subject
