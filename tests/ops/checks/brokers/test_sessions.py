from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.checks.brokers import rules
from connectctl.ops.checks.brokers.observe import CLEANUP, BrokerFacts, observe
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.goal import Goal
from connectctl.ops.core.errors import NotAuthorized
from connectctl.ops.core.rule import check
from fakes.brokers import DEFAULTS, FakeBrokers
from fakes.check_context import check_context

SESSION = "consumer.override.session.timeout.ms"
LEAST, MOST = "group.min.session.timeout.ms", "group.max.session.timeout.ms"


def seen(brokers: FakeBrokers | None = None, goal: Goal = Goal.NOW, **more: Any) -> BrokerFacts:
    """The brokers as they are seen with a sink of that configuration."""
    sink = Connector("snk", None, {0: None}, more.pop("config", {}), "sink")
    return observe(check_context(sink, brokers=brokers, enabled=False, **more), goal)


def said(facts: BrokerFacts, goal: Goal = Goal.NOW) -> list[tuple[str, str]]:
    return [(finding.id, finding.message) for finding in check(rules, facts, goal)]


@pytest.mark.parametrize(
    ("session", "bound"),
    [
        ("5999", f"{LEAST} of broker 1 is 6,000 ms"),
        ("6000", ""),
        ("1800000", ""),
        ("1800001", MOST),
    ],
)
def test_a_session_that_brokers_refuse_is_an_error_with_or_without_transactions(
    session: str, bound: str
) -> None:
    found = said(seen(config={SESSION: session}))
    assert [id for id, _ in found] == ["BROKER018"] * bool(bound)
    assert all(bound in message and SESSION in message for _, message in found)


def test_the_workers_property_holds_where_the_sink_has_none_of_its_own() -> None:
    facts = seen(told={"consumer.session.timeout.ms": "1"})
    assert [each.property for each in facts.sessions] == ["consumer.session.timeout.ms"]
    assert (
        seen(told={"consumer.session.timeout.ms": "1"}, config={SESSION: "9000"})
        .sessions[0]
        .milliseconds
        == 9000
    )


def test_with_the_default_or_with_the_newer_protocol_nobody_is_asked_for_bounds() -> None:
    down = FakeBrokers(down=NotAuthorized("no"))
    newer = {SESSION: "1", "consumer.override.group.protocol": "consumer"}
    for facts in (seen(down), seen(down, config=newer)):
        assert [each.what for each in facts.unseen] == ["the brokers' connections"]


@pytest.mark.parametrize("goal", Goal)
def test_a_broker_that_accepts_no_connection_is_named_with_and_without_transactions(
    goal: Goal,
) -> None:
    brokers = FakeBrokers(offline={2: "two:9092"})
    found = [text for id, text in said(seen(brokers, goal), goal) if id == "BROKER019"]
    assert found == ["The metadata of the cluster has it at two:9092, which accepts no connection."]


def test_bounds_that_a_broker_does_not_describe_are_unknown_and_not_the_default() -> None:
    facts = seen(FakeBrokers(told={1: {LEAST: "6000"}}), config={SESSION: "1800001"})
    assert said(facts) == []
    assert [each.what for each in facts.unseen] == [f"{MOST} of broker 1"]
    refused = seen(FakeBrokers(told={1: NotAuthorized("no rights")}), config={SESSION: "1"})
    assert said(refused) == []
    assert [each.what for each in refused.unseen] == ["the settings of broker 1"]


def test_a_sink_that_reads_elsewhere_is_not_judged_by_these_brokers() -> None:
    facts = seen(config={SESSION: "1", "consumer.override.bootstrap.servers": "other:9092"})
    assert (said(facts), [each.what for each in facts.unseen]) == (
        [],
        [f"{MOST} of the brokers at other:9092"],
    )


@pytest.mark.parametrize(("interval", "found"), [("10000", []), ("60000", ["BROKER017"])])
def test_an_interval_above_ten_seconds_is_a_warning_where_there_are_transactions(
    interval: str, found: list[str]
) -> None:
    brokers = FakeBrokers(told={1: DEFAULTS | {CLEANUP: interval}})
    assert [id for id, _ in said(seen(brokers, Goal.ENABLED), Goal.ENABLED)] == found
    assert said(seen(brokers, Goal.NOW)) == []


def test_an_interval_that_is_not_described_is_told() -> None:
    brokers = FakeBrokers(
        told={1: {name: value for name, value in DEFAULTS.items() if name != CLEANUP}}
    )
    facts = seen(brokers, Goal.ENABLED)
    assert [each.what for each in facts.unseen] == [f"{CLEANUP} of broker 1"]
