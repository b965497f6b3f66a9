"""Which cures are due: each once, within a budget, and none that did not help."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from connectctl.ops.checks.heal.planning import (
    BUDGET,
    HOUR,
    MOST_IN_VAIN,
    SETTLED,
    FailedPart,
    HealSnapshot,
    PastCure,
    plan_heal,
)
from connectctl.ops.checks.heal.steps import EndDecided, RestartPart
from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import PartitionProducer
from connectctl.ops.operations.connectors.cure import AwaitRound
from connectctl.ops.operations.transactions.hanging import Hanging
from connectctl.ops.operations.transactions.outcome import DecidedOutcome, TransactionResult
from connectctl.ops.operations.transactions.write_marker import AbortHanging, CommitHanging

NOW = 10_000_000.0
PASSING = "org.apache.kafka.common.errors.TimeoutException: Timed out"
LASTING = "org.apache.kafka.connect.errors.DataException: not JSON"


def failed(connector: str, task: int = 0, trace: str = PASSING, since: float = NOW) -> FailedPart:
    return FailedPart(connector, task, trace, trace.partition(": ")[2], since)


def snapshot(*parts: FailedPart, **more: Any) -> HealSnapshot:
    return replace(HealSnapshot("kafka", "connect", parts), **more)


def past(connector: str, task: int = 0, ago: float = 60, *, useless: bool = False) -> PastCure:
    return PastCure("r1", connector, f"{connector}/{task}", NOW - ago, useless)


def test_what_is_transient_is_restarted_and_the_rest_is_left_alone_and_said() -> None:
    plan = plan_heal(
        snapshot(failed("a"), failed("a", 1, LASTING), failed("b", CONNECTOR_INSTANCE))
    )
    restarts = [step for step in plan.steps if isinstance(step, RestartPart)]
    assert [(step.subject, step.task) for step in restarts] == [("a", 0), ("b", -1)]
    assert [(noop.subject, noop.why) for noop in plan.noops] == [
        ("a/1", "its failure is not transient: not JSON")
    ]


def test_a_cure_that_did_not_help_is_not_repeated_within_the_hour() -> None:
    plan = plan_heal(snapshot(failed("a"), past=[past("a")]))
    assert not plan.steps
    assert "by the run r1, which did not help" in plan.noops[0].why


def test_a_part_that_ran_for_a_while_after_its_cure_is_cured_again() -> None:
    again = failed("a", since=NOW - 60)
    assert plan_heal(snapshot(again, past=[past("a", ago=60 + SETTLED)])).steps
    assert not plan_heal(snapshot(again, past=[past("a", ago=60 + SETTLED - 1)])).steps


def test_a_connector_has_a_budget() -> None:
    parts = [failed("a", task) for task in range(BUDGET + 2)]
    plan = plan_heal(snapshot(*parts, failed("b")))
    assert [step.subject for step in plan.steps] == ["a"] * BUDGET + ["b"]
    assert {noop.why for noop in plan.noops} == {f"its budget is spent: {BUDGET} cures an hour"}
    spent = [past("a", task + 10) for task in range(BUDGET)]
    assert [
        step.subject for step in plan_heal(snapshot(*parts, failed("b"), past=spent)).steps
    ] == ["b"]


def test_it_stops_when_its_cures_do_not_help() -> None:
    useless = [past(f"c{n}", useless=True) for n in range(MOST_IN_VAIN)]
    plan = plan_heal(snapshot(failed("a"), past=useless))
    assert not plan.steps
    assert "did not help: find the cause" in plan.noops[0].why
    assert plan_heal(snapshot(failed("a"), past=useless[1:])).steps


def test_a_round_of_fencing_is_cured_once_for_all_of_its_tasks() -> None:
    round_ = AwaitRound("a")
    plan = plan_heal(snapshot(failed("a"), failed("a", 1), fencing={"a": [round_]}))
    assert plan.steps == (round_,)


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (TransactionResult.COMMIT, CommitHanging),
        (TransactionResult.ABORT, AbortHanging),
        (None, None),
    ],
)
def test_a_hanging_transaction_is_ended_as_decided_and_only_then(
    outcome: TransactionResult | None, kind: type | None
) -> None:
    producer = PartitionProducer(7, 1, 0, 0, 5)
    found = Hanging(
        TopicPartition("t", 0), producer, None, "forgotten", decision=DecidedOutcome(outcome, "why")
    )
    plan = plan_heal(snapshot(hanging=[found]))
    inner = [step.inner for step in plan.steps if isinstance(step, EndDecided)]
    assert [type(each) for each in inner] == ([kind] if kind else [])
    assert bool(plan.noops) == (kind is None)
    assert not plan_heal(snapshot(hanging=[replace(found, proven=False)])).steps


def test_steps_are_restarts_and_never_a_stop() -> None:
    plan = plan_heal(snapshot(failed("a"), failed("b", CONNECTOR_INSTANCE)))
    assert {type(step) for step in plan.steps} == {RestartPart}
    assert [step.describe() for step in plan.steps] == [
        "restart a/0, whose failure is transient (TimeoutException)",
        "restart b, whose failure is transient (TimeoutException)",
    ]
    assert HOUR == 3600
