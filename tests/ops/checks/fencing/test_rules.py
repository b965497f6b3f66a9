"""How long a round of fencing will take, whose ids collide and who else uses them: tables, and
looks at fakes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from connectctl.ops.checks.context import CheckContext
from connectctl.ops.checks.fencing import rules
from connectctl.ops.checks.fencing.observe import (
    Coordinators,
    FencedSource,
    FencingFacts,
    ids_of,
    observe,
)
from connectctl.ops.connect import config_topic
from connectctl.ops.connect.connector import Connector, Status
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.transactional_ids import TransactionalIdIndex, task_id
from connectctl.ops.connect.zombie_fencing import CURE, Backoff, FencingRound
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.core.finding import Finding
from connectctl.ops.core.rule import check
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.partitioner import coordinator_partition, java_hash
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.kafka.transactions import Transaction
from fakes.check_context import check_context
from fakes.coordinators import FakeCoordinators
from fakes.kafkareads import FakeKafka, records
from hypothesis import given
from hypothesis import strategies as st

NONE = TransactionalIdIndex({})


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(1 << 31)),
        ("ops-cluster-reddit-source-0", 1903107487),
        ("é", 233),
        ("\U0001f600", 1772899),
    ],
)
def test_texts_are_hashed_as_java_does(text: str, hashed: int) -> None:
    assert java_hash(text) == hashed


def test_the_hash_without_a_positive_twin_is_on_partition_zero() -> None:
    assert coordinator_partition("polygenelubricants", 50) == 0


@given(st.text(), st.integers(1, 200))
def test_every_id_has_a_partition(id: str, partitions: int) -> None:
    assert 0 <= coordinator_partition(id, partitions) < partitions


def test_ids_are_counted_at_the_broker_that_leads_their_partition() -> None:
    ids = [task_id("g", "c", n) for n in range(100)]
    load = Coordinators({0: 1, 1: 2, 2: 1, 3: None}, 2).load(ids)
    expected = [coordinator_partition(id, 4) for id in ids]
    assert load == {
        1: expected.count(0) + expected.count(2),
        2: expected.count(1),
        None: expected.count(3),
    }
    assert Coordinators({}, 3).load(ids).total() == 100
    assert set(Coordinators({}, 3).load(ids)) == {0, 1, 2}


def fenced(
    ids: int, by_broker: dict[int | None, int] | str | None = "one", **config: str
) -> FencedSource:
    load = {1: ids} if by_broker == "one" else by_broker
    named = {name.replace("_", "."): value for name, value in config.items()}
    return FencedSource("c", ids, load, Backoff.of(named))  # type: ignore[arg-type]


def facts(
    *connectors: FencedSource, enabled: bool | None = True, workers: int = 2, **more: Any
) -> FencingFacts:
    return replace(FencingFacts("g", connectors, NONE, enabled, ("4.3.1",), workers), **more)


def one(found: FencingFacts, goal: Goal = Goal.NOW) -> Finding | None:
    findings = list(check(rules, found, goal))
    assert len(findings) < 2, findings
    return findings[0] if findings else None


@pytest.mark.parametrize(
    ("ids", "workers", "severity", "words"),
    [
        (1, 2, None, ""),
        (20, 2, None, ""),
        (30, 2, "warning", "close to the limit of 30 s"),
        (40, 2, "error", "through a follower fail after 30 s"),
        (40, 1, "warning", "no task processes records meanwhile"),
        (80, 1, "warning", "close to the limit of 90 s"),
        (110, 1, "error", "times out after 90 s"),
        (110, 2, "error", "times out after 90 s"),
    ],
)
def test_a_round_is_held_against_what_the_leader_and_its_followers_wait(
    ids: int, workers: int, severity: str | None, words: str
) -> None:
    finding = one(facts(fenced(ids), workers=workers))
    if severity is None:
        assert finding is None
        return
    assert finding is not None
    assert (finding.id, finding.severity, finding.subject) == ("FENCE010", severity, "c")
    assert words in finding.message
    assert f"broker 1 coordinates {ids} of its {ids} ids" in finding.message
    assert finding.next_step == "connectctl connectors cure c"


def test_the_coordinator_that_has_most_ids_counts() -> None:
    assert one(facts(fenced(60, {1: 20, 2: 20, 3: 20}))) is None
    finding = one(facts(fenced(60, {1: 5, 2: 50, 3: 5})))
    assert finding is not None
    assert "broker 2 coordinates 50 of its 60 ids" in finding.message


def test_the_two_overrides_cure_it() -> None:
    assert one(facts(FencedSource("c", 200, {1: 200}, Backoff.of(CURE)))) is None


def test_on_another_kafka_cluster_only_the_worst_is_known() -> None:
    finding = one(facts(fenced(110, None)))
    assert finding is not None
    assert finding.severity == "warning"
    assert "on another Kafka cluster, at worst" in finding.message


@pytest.mark.parametrize(
    ("enabled", "goal", "severity"),
    [
        (True, Goal.NOW, "error"),
        (False, Goal.NOW, None),
        (False, Goal.PREPARING, "warning"),
        (False, Goal.ENABLED, "error"),
        (True, Goal.PREPARING, None),
        (True, Goal.DOWNGRADE, None),
        (None, Goal.NOW, None),
    ],
)
def test_nothing_is_fenced_without_exactly_once(
    enabled: bool | None, goal: Goal, severity: str | None
) -> None:
    finding = one(facts(fenced(110), enabled=enabled), goal)
    assert (finding.severity if finding else None) == severity


def test_a_round_that_is_due_is_told_instead_of_one_that_will_be() -> None:
    due = FencingRound("c", (110,), (100,), 5.0, Backoff(), 2, began=70.0)
    assert [
        (finding.id, finding.since)
        for finding in check(rules, facts(fenced(110), rounds=(due,)), Goal.NOW)
    ] == [("FENCE008", 70.0)]
    assert [
        finding.id for finding in check(rules, facts(fenced(110), rounds=(due,)), Goal.ENABLED)
    ] == ["FENCE010"]


@pytest.mark.parametrize(
    ("version", "told"),
    [("3.2.0", False), ("3.3.0", True), ("3.7.0", True), ("3.7.1", False), ("4.3.1", False)],
)
def test_versions_that_fail_to_fence_open_transactions_are_told(version: str, told: bool) -> None:
    finding = one(facts(fenced(1), versions=(version,)))
    assert (finding.id if finding else None) == ("FENCE011" if told else None)


# --------------------------------------------------------------------------------------- collisions


def colliding(name: str, ours: str, others: dict[str, set[str]], ids: int = 1) -> list[Finding]:
    directory = TransactionalIdIndex(
        {ours: frozenset((name,))} | {g: frozenset(names) for g, names in others.items()}
    )
    connector = FencedSource(name, ids, {1: ids}, Backoff())
    return list(check(rules, FencingFacts(ours, (connector,), directory, True), Goal.NOW))


def test_two_groups_whose_names_run_into_each_other_share_their_ids() -> None:
    (finding,) = colliding("b-1", "a", {"a-b": {"1", "2"}})
    assert (finding.id, finding.severity, finding.subject) == ("FENCE001", "warning", "b-1")
    assert "those of 1 in a-b (for example a-b-1-0)" in finding.message
    assert finding.why
    (other,) = colliding("1", "a-b", {"a": {"b-1"}})
    assert "those of b-1 in a" in other.message


def test_a_task_whose_id_is_a_leaders_is_told() -> None:
    (finding,) = colliding("cluster-x", "connect", {"x-0": set()})
    assert (
        "Its task 0 has the same transactional id as the leader of x-0: connect-cluster-x-0"
        in finding.message
    )
    assert colliding("cluster-x", "connect", {"x-3": set()}, ids=3) == [], "it has no task 3"


@pytest.mark.parametrize("others", [{"a-b": {"2"}}, {"b": {"b-1"}}, {"ab": {"1"}}, {}])
def test_names_that_only_look_alike_do_not_collide(others: dict[str, set[str]]) -> None:
    assert colliding("b-1", "a", others) == []


# ------------------------------------------------------------------------------------------ looking


def sources(
    transactions: FakeCoordinators, enabled: bool | None = True, **more: Any
) -> CheckContext:
    state = config_topic.parse(
        records(
            ("connector-c", {"properties": {"connector.class": "x.Source"}}),
            ("task-c-0", {"properties": {}}),
            ("task-c-1", {"properties": {}}),
            ("tasks-fencing-c", {"task-count": 3}),
            ("commit-c", {"tasks": 2}),
        ),
        "cfg",
    )
    connector = Connector(
        "c", None, {0: Status("RUNNING"), 1: Status("RUNNING")}, {"topic": "lines"}
    )
    return check_context(connector, transactions=transactions, state=state, enabled=enabled, **more)


def ongoing(id: str, *topics: str) -> Transaction:
    places = tuple(TopicPartition(topic, 0) for topic in topics)
    return Transaction(id, "Ongoing", 1, 0, 60_000, 1000, places, 1)


@pytest.mark.parametrize(
    ("record", "committed", "running", "tasks_max", "ids"),
    [
        (3, 2, 2, "2", 3),
        (2, 5, 5, "5", 5),
        (None, 0, 0, "110", 110),
        (None, 0, 0, "many", 1),
        (None, 4, 2, "9", 4),
    ],
)
def test_ids_reach_as_far_as_anything_says(
    record: int | None, committed: int, running: int, tasks_max: str, ids: int
) -> None:
    said: list[tuple[str, Any]] = [
        ("connector-c", {"properties": {}}),
        ("commit-c", {"tasks": committed}),
    ]
    said += [("tasks-fencing-c", {"task-count": record})] if record is not None else []
    tasks = dict.fromkeys(range(running), Status("RUNNING"))
    each = Connector("c", None, tasks, {"tasks.max": tasks_max})
    assert ids_of(each, config_topic.parse(records(*said), "cfg")) == ids


def test_a_round_that_the_config_topic_says_is_due_is_seen() -> None:
    known = {
        id: Transaction(id, "CompleteCommit", 1, 1, 60_000, coordinator=7)
        for id in ("g-c-0", "g-c-1", "g-c-2")
    }
    seen = observe(sources(FakeCoordinators(known), written={"commit-c": 100.0}), 110.0)
    (due,) = seen.rounds
    assert (due.connector, due.ids, due.since) == ("c", (3,), 10.0)
    assert seen.connectors[0].ids == 3
    assert observe(sources(FakeCoordinators(known), enabled=False), 110.0).rounds == ()


@dataclass
class Active:
    """Workers that saw connectors write to these topics, or do not tell."""

    topics: frozenset[str] | None

    def get(self, path: str, *, timeout: float | None = None) -> Any:
        if self.topics is None:
            raise Unreachable("no worker answers")
        return {"c": {"topics": sorted(self.topics)}}


@pytest.mark.parametrize(
    ("topics", "enabled", "active", "strange"),
    [
        (("lines",), True, frozenset(("lines",)), False),
        (("lines", "new"), True, frozenset(("lines",)), False),
        (("payments",), True, frozenset(("lines",)), True),
        (("payments",), True, None, False),
        (("payments",), True, frozenset(), False),
        (("lines", "__consumer_offsets"), True, frozenset(("lines",)), True),
        (("lines",), False, frozenset(("lines",)), True),
        (("payments",), None, frozenset(("lines",)), False),
    ],
)
def test_a_transaction_that_no_task_can_have_begun_is_a_strangers(
    topics: tuple[str, ...], enabled: bool | None, active: frozenset[str] | None, strange: bool
) -> None:
    calls = FakeCoordinators({"g-c-1": ongoing("g-c-1", *topics)})
    seen = observe(sources(calls, enabled, calls=Active(active)), 10.0)
    assert (set(seen.connectors[0].foreign) == {"g-c-1"}) is strange
    told = [finding for finding in check(rules, seen, Goal.ENABLED) if finding.id == "FENCE012"]
    assert bool(told) is strange
    if told:
        assert told[0].severity == ("error" if enabled is False else "warning")
        assert told[0].next_step == "connectctl transactions show g-c-1"
        assert told[0].since == 1.0


def test_ids_that_may_not_be_seen_are_no_silent_pass() -> None:
    denied = dict.fromkeys(("g-c-0", "g-c-1", "g-c-2"), Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    (unseen,) = observe(sources(FakeCoordinators(denied=denied)), 10.0).unseen
    assert "g-c-0 and 2 more" in unseen.what
    assert "may not see" in unseen.why
    assert "Describe" in (unseen.next_step or "")


def test_partitions_without_a_leader_are_no_silent_pass() -> None:
    class Dark(FakeKafka):
        def topics(self, names: Any) -> dict[str, TopicFacts]:
            return {name: TopicFacts(name, 2, {}, {}, leaders={0: 1, 1: None}) for name in names}

    (unseen,) = observe(sources(FakeCoordinators(), kafka=Dark()), 10.0).unseen
    assert "1 of its 2 partitions have no leader" in unseen.why
