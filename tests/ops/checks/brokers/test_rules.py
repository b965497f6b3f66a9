from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from connectctl.ops.checks.brokers import rules
from connectctl.ops.checks.brokers.observe import (
    LOG_MIN_ISR,
    LOG_REPLICAS,
    MAX_TIMEOUT,
    SETTINGS,
    BrokerFacts,
    ClientTimeout,
    observe,
)
from connectctl.ops.checks.context import CheckContext
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.goal import Goal
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Unreachable
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import check
from connectctl.ops.kafka.brokers import BrokerVersion
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.kafka.transaction_log import TOPIC as TRANSACTION_STATE
from fakes.brokers import APIS, DEFAULTS, FakeBrokers, broker
from fakes.check_context import check_context
from hypothesis import given
from hypothesis import strategies as st

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
OVERRIDE = "producer.override.transaction.timeout.ms"
DENIED = NotAuthorized(
    "Not authorized to ask (Kafka at x)", why="the principal lacks it", next_step="Give it that."
)


def log(replicas: int = 3, in_sync: int = 3, leader: int | None = 1, **config: str) -> TopicFacts:
    """A ``__transaction_state`` whose second partition has ``in_sync`` replicas in sync and is led
    by ``leader``.
    """
    settings = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
    settings |= {name.replace("_", "."): value for name, value in config.items()}
    return TopicFacts(
        TRANSACTION_STATE,
        2,
        {0: replicas, 1: replicas},
        {0: replicas, 1: in_sync},
        settings,
        {0: 1, 1: leader},
    )


def facts(**changes: Any) -> BrokerFacts:
    """Three brokers as they should be, with changes."""
    clean = BrokerFacts(
        brokers=3,
        versions={n: broker(n) for n in (1, 2, 3)},
        settings={n: dict(DEFAULTS) for n in (1, 2, 3)},
        transaction_state=log(),
        sources=(ClientTimeout("orders", 60_000),),
        enabled=True,
        workers=("4.3.1",),
    )
    return replace(clean, **changes)


def settings(**told: str) -> dict[int, dict[str, str]]:
    """All brokers as they are by default, but the second one."""
    own = {name.replace("_", "."): value for name, value in told.items()}
    return {1: dict(DEFAULTS), 2: DEFAULTS | own, 3: dict(DEFAULTS)}


def ids(facts: BrokerFacts, goal: Goal = Goal.ENABLED) -> list[tuple[str, Severity]]:
    return [(finding.id, finding.severity) for finding in check(rules, facts, goal)]


def version(
    release: tuple[int, ...] = (4, 3), apis: dict[int, int] | None = None, **features: int
) -> BrokerVersion:
    levels = {"supported": 2, "finalized": 2} | features
    return replace(broker(2, release, **levels), apis=apis or APIS)


@pytest.mark.parametrize("goal", Goal)
def test_brokers_as_they_should_be_give_no_finding(goal: Goal) -> None:
    assert ids(facts(), goal) == []
    alone = facts(brokers=1, versions={1: broker()}, settings={1: DEFAULTS}, transaction_state=None)
    assert ids(alone, goal) == []
    assert ids(replace(alone, transaction_state=log(1, 1, min_insync_replicas="1")), goal) == []


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        pytest.param(
            {"versions": {1: version((0, 10, 2), {2: 1})}}, "BROKER001", id="no transactions"
        ),
        pytest.param(
            {"versions": {1: version((1, 0), {2: 2, 22: 0, 24: 0})}},
            "BROKER003",
            id="no verification",
        ),
        pytest.param(
            {"versions": {1: broker(), 2: version((4, 2))}}, "BROKER002", id="two releases"
        ),
        pytest.param(
            {"settings": settings(transaction_partition_verification_enable="false")},
            "BROKER003",
            id="off",
        ),
        pytest.param(
            {"versions": {2: version(finalized=1)}}, "BROKER004", id="transaction.version 1"
        ),
        pytest.param(
            {"transaction_state": log(leader=None, in_sync=0)},
            "BROKER006",
            id="a partition without leader",
        ),
        pytest.param({"transaction_state": log(in_sync=1)}, "BROKER007", id="too few in sync"),
        pytest.param({"transaction_state": log(in_sync=2)}, "BROKER008", id="one behind"),
        pytest.param(
            {"transaction_state": log(1, 1, min_insync_replicas="1")}, "BROKER009", id="one replica"
        ),
        pytest.param(
            {"transaction_state": log(min_insync_replicas="1")},
            "BROKER010",
            id="acknowledged alone",
        ),
        pytest.param(
            {"transaction_state": log(unclean_leader_election_enable="true")},
            "BROKER011",
            id="unclean",
        ),
        pytest.param({"transaction_state": log(2, 2)}, "BROKER012", id="none may be away"),
        pytest.param(
            {"sources": (ClientTimeout("orders", 900_001, OVERRIDE),)}, "BROKER013", id="timeout"
        ),
        pytest.param(
            {"leader": ClientTimeout("leader", 900_001, "x")},
            "BROKER014",
            id="the leader's timeout",
        ),
        pytest.param(
            {"settings": settings(transaction_max_timeout_ms="60000")}, "BROKER015", id="no fencing"
        ),
        pytest.param(
            {"settings": settings(transactional_id_expiration_ms="3600000")},
            "BROKER016",
            id="expiration",
        ),
    ],
)
def test_each_thing_that_is_wrong_is_found(broken: dict[str, Any], found: str) -> None:
    assert found in [id_ for id_, _ in ids(facts(**broken))]
    assert ids(facts(**broken), Goal.DOWNGRADE) == []
    assert ids(facts(**broken, enabled=False), Goal.NOW) == []


@pytest.mark.parametrize(
    ("own", "count", "expected"),
    [
        ({LOG_REPLICAS: "3", LOG_MIN_ISR: "2"}, 1, ["BROKER005"]),
        ({LOG_REPLICAS: "1", LOG_MIN_ISR: "2"}, 1, []),
        ({LOG_REPLICAS: "3", LOG_MIN_ISR: "2"}, 3, []),
        ({}, 0, []),
    ],
)
def test_the_log_that_cannot_be_created_is_told_before_anybody_tries(
    own: dict[str, str], count: int, expected: list[str]
) -> None:
    seen = facts(
        brokers=count, versions={1: broker()}, settings={1: DEFAULTS | own}, transaction_state=None
    )
    assert [id_ for id_, _ in ids(seen)] == expected
    assert ids(replace(seen, log_hidden=True)) == []


def test_brokers_before_3_7_want_as_many_in_sync_as_they_are_told_however_few_there_are() -> None:
    own = {1: DEFAULTS | {LOG_REPLICAS: "1", LOG_MIN_ISR: "2"}}
    old = facts(
        brokers=1, versions={1: broker(release=(3, 6))}, settings=own, transaction_state=None
    )
    assert [id_ for id_, _ in ids(old)] == ["BROKER005"]
    assert [id_ for id_, _ in ids(replace(old, transaction_state=log(1, 1)))] == ["BROKER007"]
    assert ids(replace(old, transaction_state=log(1, 1), versions={1: broker()})) == []


def test_the_log_is_judged_as_it_is_and_not_by_how_the_brokers_would_create_it() -> None:
    assert ids(facts(settings=settings(transaction_state_log_min_isr="5"))) == []


@pytest.mark.parametrize(
    ("supported", "workers", "expected"),
    [
        (2, ("4.3.1",), WARNING),
        (2, (), WARNING),
        (2, ("3.9.1",), INFO),
        (2, ("3.9.1", "4.0.0"), WARNING),
        (1, (), INFO),
    ],
)
def test_an_old_transaction_version_is_a_warning_where_a_command_cures_it(
    supported: int, workers: tuple[str, ...], expected: Severity
) -> None:
    seen = facts(versions={1: broker(finalized=1, supported=supported)}, workers=workers)
    assert ids(seen) == [("BROKER004", expected)]


def test_without_any_broker_that_tells_its_version_nothing_is_said_of_versions() -> None:
    assert ids(facts(versions={}, settings={})) == []


@given(st.integers(1, 2_000_000), st.integers(1, 2_000_000))
def test_a_timeout_is_refused_exactly_where_it_is_above_the_brokers(
    timeout: int, limit: int
) -> None:
    seen = facts(
        settings=settings(transaction_max_timeout_ms=str(limit)),
        sources=(ClientTimeout("orders", timeout, OVERRIDE),),
    )
    refused = [finding for finding in check(rules, seen, Goal.ENABLED) if finding.id == "BROKER013"]
    assert bool(refused) is (timeout > min(limit, 900_000))
    for finding in refused:
        assert (finding.subject, f"{timeout:,}" in finding.message) == ("orders", True)


def test_what_only_the_next_step_brings_about_is_a_warning_for_preparing() -> None:
    seen = facts(settings={1: DEFAULTS | {MAX_TIMEOUT: "50000"}}, enabled=False)
    assert ids(seen, Goal.ENABLED) == [
        ("BROKER013", ERROR),
        ("BROKER014", ERROR),
        ("BROKER015", ERROR),
    ]
    assert ids(seen, Goal.PREPARING) == [
        ("BROKER013", WARNING),
        ("BROKER014", ERROR),
        ("BROKER015", WARNING),
    ]


@pytest.mark.parametrize(
    ("workers", "expected"), [(("3.7.0",), []), (("3.7.1",), ["BROKER015"]), ((), ["BROKER015"])]
)
def test_workers_before_3_7_1_fence_with_a_timeout_that_every_broker_takes(
    workers: tuple[str, ...], expected: list[str]
) -> None:
    seen = facts(settings=settings(transaction_max_timeout_ms="80000"), workers=workers)
    assert [id_ for id_, _ in ids(seen)] == expected


# ---------------------------------------------------------------------------------------- observing


def sources(
    fake: FakeBrokers | None = None, told: dict[str, str] | None = None, **configs: dict[str, str]
) -> CheckContext:
    checked = [
        Connector(name, None, config=config, type="source") for name, config in configs.items()
    ]
    return check_context(*checked, brokers=fake, told=told)


def test_a_connectors_timeout_is_its_override_else_the_workers_else_kafkas() -> None:
    seen = observe(sources(own={OVERRIDE: "5000"}, bad={OVERRIDE: "long"}, none={}), Goal.ENABLED)
    assert {each.name: (each.milliseconds, each.property) for each in seen.sources} == {
        "own": (5000, OVERRIDE),
        "bad": (60_000, None),
        "none": (60_000, None),
    }
    told = {"producer.transaction.timeout.ms": "7000", "transaction.timeout.ms": "8000"}
    seen = observe(sources(told=told, none={}), Goal.ENABLED)
    assert [(each.milliseconds, each.property) for each in (*seen.sources, seen.leader)] == [
        (7000, "producer.transaction.timeout.ms"),
        (8000, "transaction.timeout.ms"),
    ]


def test_a_connector_that_writes_to_another_cluster_is_not_judged_by_these_brokers_and_that_is_said() -> (
    None
):
    far = {"producer.override.bootstrap.servers": "there:9092", OVERRIDE: "5000000"}
    seen = observe(
        sources(far=far, near={"producer.override.bootstrap.servers": "other:1,here:9092"}),
        Goal.ENABLED,
    )
    assert [each.name for each in seen.sources] == ["near"]
    assert [(each.what, each.why) for each in seen.unseen] == [
        ("the brokers at there:9092", "far writes to another Kafka cluster")
    ]


def test_what_brokers_do_not_tell_is_unseen_and_the_rest_is_judged() -> None:
    fake = FakeBrokers(
        known={1: broker(), 2: Unreachable("Kafka does not answer")}, told={1: DENIED, 2: DENIED}
    )
    fake.unseen = {TRANSACTION_STATE}
    seen = observe(sources(fake), Goal.ENABLED)
    assert [each.what for each in seen.unseen] == [
        "the version of broker 2",
        "the settings of broker 1, 2",
        TRANSACTION_STATE,
    ]
    assert seen.unseen[1].next_step == "Give it that."
    assert (set(seen.versions), seen.settings, seen.log_hidden) == ({1}, {}, True)
    assert ids(seen) == []


@pytest.mark.parametrize("error", [Unreachable("down"), ConnectctlError("broken", why="so")])
def test_brokers_that_answer_nothing_are_no_error_of_ours(error: ConnectctlError) -> None:
    seen = observe(sources(FakeBrokers(down=error)), Goal.NOW)
    assert {each.what for each in seen.unseen} == {
        TRANSACTION_STATE,
        "the brokers' connections",
        "the brokers' versions",
        "the brokers' settings",
    }


@pytest.mark.parametrize(("enabled", "goal"), [(True, Goal.DOWNGRADE), (False, Goal.NOW)])
def test_where_nothing_has_transactions_only_connections_are_tried(
    enabled: bool, goal: Goal
) -> None:
    asked = check_context(brokers=FakeBrokers(down=Unreachable("down")), enabled=enabled)
    assert [each.what for each in observe(asked, goal).unseen] == ["the brokers' connections"]


def test_the_defaults_of_the_fake_are_the_settings_that_are_asked_for() -> None:
    assert DEFAULTS.keys() == set(SETTINGS)
