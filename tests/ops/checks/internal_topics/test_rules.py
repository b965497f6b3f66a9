from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from connectctl.ops.checks.context import CheckContext
from connectctl.ops.checks.internal_topics import rules
from connectctl.ops.checks.internal_topics.rules import DEDICATED, TopicsSeen, observe
from connectctl.ops.connect.connector import Connector
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.core.finding import Severity
from connectctl.ops.core.rule import check
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import TopicFacts
from connectctl.ops.kafka.transactions import PartitionProducer, Transaction
from fakes.brokers import FakeBrokers, broker
from fakes.check_context import check_context
from fakes.coordinators import FakeCoordinators
from fakes.kafkareads import FakeKafka

INTERNAL = {"config": "cfg", "offsets": "off", "status": "sta"}


def topic(
    name: str = "off", partitions: int = 2, replicas: int = 3, in_sync: int = 3, **more: Any
) -> TopicFacts:
    """A topic whose last partition has ``in_sync`` replicas in sync and is led by ``leader``."""
    leader = more.pop("leader", 1)
    config = {
        "cleanup.policy": "compact",
        "min.insync.replicas": "2",
        "delete.retention.ms": "86400000",
    }
    config |= {key.replace("_", "."): value for key, value in more.items()}
    all_ = range(partitions)
    there = dict.fromkeys(all_, replicas) | {partitions - 1: in_sync}
    return TopicFacts(
        name,
        partitions,
        dict.fromkeys(all_, replicas),
        there,
        config,
        dict.fromkeys(all_, 1) | {partitions - 1: leader},
    )


def ids(
    *topics: TopicFacts, roles: dict[str, str] | None = None, brokers: int = 3, bounded: bool = True
) -> list[str]:
    named = {name: role for role, name in INTERNAL.items()} if roles is None else roles
    return [finding.id for finding in check(rules, TopicsSeen(topics, named, brokers, bounded))]


def test_topics_as_they_should_be_give_no_finding() -> None:
    assert ids(topic("cfg", 1), topic("off"), topic("sta")) == []
    alone = [
        topic(name, 1 if name == "cfg" else 5, 1, 1, min_insync_replicas="1")
        for name in INTERNAL.values()
    ]
    assert ids(*alone, brokers=1) == []


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        pytest.param(topic(in_sync=0, leader=None), ["TOPIC007"], id="a partition without leader"),
        pytest.param(topic(in_sync=1), ["TOPIC008"], id="too few in sync"),
        pytest.param(topic(min_insync_replicas="1"), ["TOPIC009"], id="acknowledged alone"),
        pytest.param(topic(unclean_leader_election_enable="true"), ["TOPIC010"], id="unclean"),
        pytest.param(topic(replicas=2, in_sync=2), ["TOPIC011"], id="none may be away"),
        pytest.param(topic(min_insync_replicas="5"), ["TOPIC011"], id="wants more than there are"),
        pytest.param(
            topic(min_insync_replicas="5", in_sync=2),
            ["TOPIC008", "TOPIC011"],
            id="and one is away",
        ),
        pytest.param(topic(partitions=1), ["TOPIC012"], id="one partition"),
        pytest.param(topic(delete_retention_ms="1000"), ["TOPIC013"], id="tombstones go early"),
        pytest.param(topic("cfg", 1), [], id="the config topic has one partition"),
        pytest.param(topic("sta", 1), [], id="one partition is enough for statuses"),
        pytest.param(topic(in_sync=2), [], id="TOPIC005 tells of the workers' own"),
    ],
)
def test_each_thing_that_is_wrong_is_found(broken: TopicFacts, found: list[str]) -> None:
    assert ids(broken) == found


def test_brokers_before_3_7_refuse_writes_to_a_topic_that_wants_more_in_sync_than_it_has() -> None:
    alone = topic(replicas=1, in_sync=1)
    assert (ids(alone), ids(alone, bounded=False)) == ([], ["TOPIC008"])
    for release, bounded in (((3, 6), False), ((3, 7), True)):
        seen = observe(
            sources(kafka(), brokers=FakeBrokers(known={1: broker(), 2: broker(2, release)})), 0.0
        )
        assert seen.bounded is bounded


def test_what_says_how_to_cure_too_few_in_sync_depends_on_whether_brokers_can() -> None:
    def hint(facts: TopicFacts) -> str | None:
        (finding,) = check(rules, TopicsSeen((facts,), {"off": "offsets"}, 3, bounded=False))
        return finding.next_step

    assert hint(topic(in_sync=1)) == "Start the brokers that host its replicas."
    assert hint(topic(replicas=1, in_sync=1)) == (
        "kafka-configs.sh --alter --topic off --add-config min.insync.replicas=1"
    )


def test_dedicated_topics_are_judged_in_what_nobody_else_looks_at() -> None:
    roles = {"own": DEDICATED}
    assert ids(topic("own", in_sync=2), roles=roles) == ["TOPIC005"]
    assert ids(topic("own", 2, 1, 1, min_insync_replicas="1"), roles=roles) == ["TOPIC006"]
    assert ids(topic("own", 1), roles=roles) == ["TOPIC012"]


def test_a_topic_whose_settings_are_hidden_is_judged_by_its_layout_alone() -> None:
    hidden = TopicFacts("off", 2, {0: 3, 1: 3}, {0: 3, 1: 1}, {}, {0: 1, 1: 1})
    assert ids(hidden) == []


# ---------------------------------------------------------------------------------------- observing


@dataclass
class DownKafka(FakeKafka):
    """One that does not answer."""

    error: Unreachable = field(
        default_factory=lambda: Unreachable("Kafka does not answer", why="refused")
    )

    def topics(self, names: Any) -> Any:
        raise self.error


def sources(
    kafka: FakeKafka,
    calls: FakeCoordinators | None = None,
    brokers: FakeBrokers | None = None,
    **configs: dict[str, str],
) -> CheckContext:
    checked = [
        Connector(name, None, config=config, type="source") for name, config in configs.items()
    ]
    return check_context(
        *checked, kafka=kafka, transactions=calls, brokers=brokers, internal=INTERNAL
    )


def kafka(**configs: dict[str, str]) -> FakeKafka:
    names = ("cfg", "off", "sta", "own")
    return FakeKafka(
        records={name: [] for name in names},
        partitions={"off": 5, "own": 5},
        config={"cfg": {}} | configs,
    )


def test_the_workers_topics_and_dedicated_ones_on_their_cluster_are_looked_at() -> None:
    far = {"offsets.storage.topic": "far-away", "producer.override.bootstrap.servers": "there:9092"}
    seen = observe(
        sources(kafka(), a={"offsets.storage.topic": "own"}, b=far, c={}, d=far | {}), 0.0
    )
    assert seen.roles == {"own": DEDICATED, "cfg": "config", "off": "offsets", "sta": "status"}
    assert {facts.name for facts in seen.topics} == {"cfg", "off", "sta", "own"}


def test_a_connector_that_names_the_workers_own_topic_makes_it_no_dedicated_one() -> None:
    assert (
        observe(sources(kafka(), a={"offsets.storage.topic": "off"}), 0.0).roles["off"] == "offsets"
    )


def test_settings_that_may_not_be_seen_are_said_to_be_unseen() -> None:
    seen = observe(sources(kafka()), 0.0)
    assert [(each.what, each.why) for each in seen.unseen] == [
        ("the settings of cfg", "this principal may not describe them")
    ]


def test_brokers_that_do_not_answer_are_no_error_of_ours() -> None:
    seen = observe(sources(DownKafka()), 0.0)
    assert [(each.what, each.why) for each in seen.unseen] == [
        ("the layout of internal topics", "Kafka does not answer: refused")
    ]


def test_a_transaction_that_holds_an_offsets_topic_for_long_is_told_and_one_that_hangs_is_an_error() -> (
    None
):
    places = {
        TopicPartition("off", 0): (PartitionProducer(7, 0, 0, 0, 90),),
        TopicPartition("own", 0): (PartitionProducer(8, 0, 0, 0, 90),),
    }
    known = Transaction("app", "Ongoing", 7, 0, 600_000, 0, (TopicPartition("off", 0),))
    calls = FakeCoordinators(known={"app": known}, partitions=dict(places))
    seen = observe(
        sources(
            kafka(cfg={"cleanup.policy": "compact"}), calls, a={"offsets.storage.topic": "own"}
        ),
        100.0,
    )
    assert {(finding.id, finding.severity, finding.subject) for finding in check(rules, seen)} == {
        ("TXN004", Severity.WARNING, "off-0"),
        ("TXN001", Severity.ERROR, "own-0"),
    }
