"""Brokers, internal topics and readers on a real cluster: what preflight says, and what then
happens.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from connectctl.ops.checks.brokers import observe as broker_observe
from connectctl.ops.checks.brokers import rules as broker_rules
from connectctl.ops.checks.consumers import observe as consumer_observe
from connectctl.ops.checks.consumers import rules as consumer_rules
from connectctl.ops.checks.internal_topics import rules as internal_topics_rules
from connectctl.ops.clients.kafka_protocol.brokers import Brokers
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.rest.connect import Connect
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.goal import Goal
from connectctl.ops.core.finding import Finding
from connectctl.ops.core.rule import check
from connectctl.ops.core.unseen import Unseen
from connectctl.ops.kafka.acls import CLUSTER_NAME, Operation, Resource
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.operations.connectors.observe import from_workers
from fakes.acls import allow
from fakes.check_context import check_context
from live.brokerfeatures import asked, set_feature
from live.consumers import Consumers
from live.grants import Grants
from live.real import FILE_SOURCE, connector, eventually, write

if TYPE_CHECKING:
    from connectctl.ops.checks.context import CheckContext
    from connectctl.ops.kafka.fence_attempt import InitProducerIdResponse
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
VERIFIABLE = "org.apache.kafka.connect.tools.VerifiableSourceConnector"
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
MIRROR = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
TIMEOUT = "producer.override.transaction.timeout.ms"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PASSWORD = "correct-horse-battery"


@dataclass(frozen=True)
class Edges:
    """A cluster's edges, and the checks over them. ``connectors`` are those that a test is
    about.
    """

    kafka: Kafka
    brokers: Brokers
    transactions: TransactionClient
    bootstrap: str
    calls: Connect | None = None
    internal: Mapping[str, str] | None = None

    def checked(self, *names: str) -> list[Connector]:
        """The connectors with these names as their workers know them."""
        assert self.calls is not None
        return [each for each in from_workers(self.calls) if each.name in names]

    def seen(self, *connectors: Connector) -> CheckContext:
        """These connectors with this cluster as the areas of preflight see it."""
        return check_context(
            *connectors,
            kafka=self.kafka,
            calls=self.calls,
            transactions=self.transactions,
            brokers=self.brokers,
            bootstrap=self.bootstrap,
            internal=self.internal or {},
        )

    def of_brokers(
        self, *connectors: Connector, goal: Goal = Goal.ENABLED
    ) -> tuple[dict[str, Finding], list[Unseen]]:
        facts = broker_observe.observe(self.seen(*connectors), goal)
        return {finding.id: finding for finding in check(broker_rules, facts, goal)}, list(
            facts.unseen
        )

    def of_topics(self, *connectors: Connector, now: float = 0.0) -> dict[tuple[str, str], Finding]:
        seen = internal_topics_rules.observe(self.seen(*connectors), now or time.time())
        assert seen.unseen == ()
        return {
            (finding.id, finding.subject): finding for finding in check(internal_topics_rules, seen)
        }

    def of_readers(
        self, *connectors: Connector, goal: Goal = Goal.ENABLED
    ) -> dict[tuple[str, str], Finding]:
        facts = consumer_observe.observe(self.seen(*connectors), goal)
        assert facts.unseen == ()
        return {
            (finding.id, finding.subject): finding for finding in check(consumer_rules, facts, goal)
        }

    def close(self) -> None:
        self.brokers.close()
        self.transactions.close()


def opened(properties: dict[str, Any], **more: Any) -> Edges:
    kafka, brokers_ = Kafka(properties, timeout=120), Brokers(properties, timeout=120)
    transactions = TransactionClient(properties, timeout=120)
    return Edges(kafka, brokers_, transactions, str(properties["bootstrap.servers"]), **more)


@pytest.fixture
def here(cluster: Sandbox) -> Iterator[Edges]:
    """The shared cluster, seen anew by each test: metadata are kept."""
    calls = Connect(tuple(cluster.rest_urls), auth={}, tls={}, timeout=60)
    edges = opened(
        {"bootstrap.servers": cluster.bootstrap_servers}, calls=calls, internal=cluster.topics
    )
    # A coordinator that still loads a part of its log lists no groups.
    eventually(lambda: not edges.brokers.readers().problems)
    yield edges
    edges.close()


@pytest.fixture
def made(cluster: Sandbox) -> Iterator[Consumers]:
    with Consumers(cluster.bootstrap_servers) as found:
        yield found


def source_of(topic: str, **more: str) -> Connector:
    """A source connector that nobody runs and that writes to ``topic``."""
    return Connector("brokers-source", None, config={"topic": topic} | more, type="source")


# ------------------------------------------------------------------------------------------ brokers


@pytest.mark.parametrize("goal", Goal)
def test_a_clean_cluster_gives_no_finding(
    here: Edges, cluster: Sandbox, made: Consumers, goal: Goal, tmp_path: Path
) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("one\n")
    config = {
        "connector.class": FILE_SOURCE,
        "file": str(file),
        "topic": made.new_topic("brokers-clean"),
    }
    name = f"brokers-clean-{goal.value}"
    with connector(cluster, name, config) as rest:
        eventually(lambda: rest.state(name) == ["RUNNING", "RUNNING"])
        mine = here.checked(name)
        assert here.of_brokers(*mine, goal=goal) == ({}, [])
        assert here.of_readers(*mine, goal=goal) == {}
        # Other tests may hold the workers' topics back at this moment, which is for TXN001 and
        # TXN004 to say.
        assert [key for key in here.of_topics(*mine) if key[0].startswith("TOPIC")] == []


def test_a_timeout_above_the_brokers_is_foretold_and_the_task_fails_by_it(
    here: Edges, cluster: Sandbox
) -> None:
    name = "brokers-timeout"
    config = {"connector.class": VERIFIABLE, "topic": name, "throughput": "1", TIMEOUT: "900001"}
    (foretold, _) = here.of_brokers(Connector(name, None, config=config, type="source"))
    assert {id_: finding.subject for id_, finding in foretold.items()} == {"BROKER013": name}
    with connector(cluster, name, config) as rest:
        eventually(lambda: rest.state(name) == ["RUNNING", "FAILED"])
        trace = rest.call("GET", f"/connectors/{name}/status").json()["tasks"][0]["trace"]
        assert "transaction timeout is larger than the maximum value allowed by the broker" in trace
        assert set(here.of_brokers(*here.checked(name))[0]) == {"BROKER013"}


# ---------------------------------------------------------------------------------- internal topics


def test_a_dedicated_topic_is_judged_by_its_settings_and_takes_what_it_is_not_said_to_refuse(
    here: Edges, made: Consumers
) -> None:
    topic = made.new_topic(
        "brokers-offsets",
        1,
        cleanup_policy="compact",
        min_insync_replicas="2",
        unclean_leader_election_enable="true",
        delete_retention_ms="1000",
    )
    mine = source_of("brokers-any", **{"offsets.storage.topic": topic})
    found = {id_ for id_, subject in here.of_topics(mine) if subject == topic}
    assert found == {"TOPIC010", "TOPIC012", "TOPIC013"}
    # Two in sync are wanted and one there is: brokers want no more than that since 3.7.
    said: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": here.bootstrap, "acks": "all", "retries": 0})
    producer.produce(topic, b"v", key=b"k", on_delivery=lambda error, _: said.append(error))
    assert producer.flush(300) == 0
    assert said == [None]


def test_a_transaction_that_stays_open_on_an_offsets_topic_is_told_when_it_is_long(
    here: Edges, made: Consumers
) -> None:
    topic = made.new_topic("brokers-held", 2, cleanup_policy="compact")
    mine = source_of("brokers-any", **{"offsets.storage.topic": topic})
    with held(here.bootstrap, topic):
        told = {
            id_
            for id_, subject in here.of_topics(mine, now=time.time() + 100)
            if subject == f"{topic}-0"
        }
    assert told == {"TXN004"}


# ------------------------------------------------------------------------------------------ readers


@contextmanager
def held(bootstrap: str, topic: str) -> Iterator[None]:
    """A transaction that is open on the first partition of a topic, for longer than a slow machine
    needs.
    """
    client = {
        "bootstrap.servers": bootstrap,
        "transactional.id": f"{topic}-id",
        "transaction.timeout.ms": 600_000,
    }
    producer = Producer(client)
    producer.init_transactions(120)
    producer.begin_transaction()
    # a key that a worker's JsonConverter takes
    producer.produce(topic, b"open", key=b'"k"', partition=0)
    assert producer.flush(300) == 0
    try:
        yield
    finally:
        producer.abort_transaction(120)


def consumed(consumer: Consumer, topic: str, count: int) -> None:
    """Read so many records, and commit what was read."""
    consumer.subscribe([topic])
    read = 0
    end = time.monotonic() + 600
    while read < count:
        assert time.monotonic() < end, f"{read} of {count} records"
        message = consumer.poll(0.5)
        read += message is not None and message.error() is None
    consumer.commit(asynchronous=False)


def test_who_commits_beyond_an_open_transaction_is_proven_and_who_does_not_is_named(
    here: Edges, made: Consumers
) -> None:
    topic = made.new_topic("brokers-read", 1)
    write(here.bootstrap, topic, ("k", "committed"))
    with held(here.bootstrap, topic):
        careless = made.open(
            f"{topic}-careless", isolation_level="read_uncommitted", group_protocol="consumer"
        )
        consumed(careless, topic, 2)
        consumed(made.open(f"{topic}-careful", isolation_level="read_committed"), topic, 1)
        found = here.of_readers(source_of(topic))
        assert found.keys() == {("READER003", f"{topic}-careless"), ("READER005", "brokers-source")}
        assert f"{topic}-0" in found["READER003", f"{topic}-careless"].message
        assert f"{topic}-careful;" in found["READER005", "brokers-source"].message
        assert here.of_readers(source_of("brokers-nowhere")) == {}
    # The proof is gone with the transaction; nothing else shows how they read.
    eventually(lambda: {id_ for id_, _ in here.of_readers(source_of(topic))} == {"READER005"})


def test_a_sink_of_a_sources_topic_is_told_until_it_reads_committed(
    here: Edges, cluster: Sandbox, made: Consumers, tmp_path: Path
) -> None:
    topic = made.new_topic("brokers-sink", 1)
    file = tmp_path / "lines.txt"
    file.write_text("one\ntwo\n")
    text = "org.apache.kafka.connect.storage.StringConverter"
    out = {
        "connector.class": FILE_SINK,
        "topics": topic,
        "file": str(tmp_path / "out.txt"),
        "value.converter": text,
    }
    into = {"connector.class": FILE_SOURCE, "file": str(file), "topic": topic}
    with connector(cluster, f"{topic}-from", into), connector(cluster, f"{topic}-to", out) as rest:
        eventually(lambda: here.checked(f"{topic}-from", f"{topic}-to")[1:])

        def found(goal: Goal = Goal.ENABLED) -> set[str]:
            about = here.checked(f"{topic}-from", f"{topic}-to")
            return {id_ for id_, _ in here.of_readers(*about, goal=goal)}

        assert found() == {"READER001", "SINK001"}
        assert found(Goal.NOW) == {"READER001"}
        with held(here.bootstrap, topic):
            eventually(lambda: found(Goal.NOW) == {"READER001", "READER003"})
        rest.call(
            "PUT",
            f"/connectors/{topic}-to/config",
            out | {"consumer.override.isolation.level": "read_committed"},
        )
        eventually(lambda: found(Goal.NOW) == set())


def test_a_mirror_of_a_sources_topic_is_told_where_connect_would_refuse_it(
    here: Edges, cluster: Sandbox, made: Consumers
) -> None:
    topic = made.new_topic("brokers-mirrored", 1)
    config = {
        "connector.class": MIRROR,
        "source.cluster.alias": "here",
        "target.cluster.alias": "there",
        "source.cluster.bootstrap.servers": here.bootstrap,
        "target.cluster.bootstrap.servers": here.bootstrap,
        "topics": "brokers-mirrored.*",
    }
    name = f"{topic}-mirror"
    committed = {"source.consumer.isolation.level": "read_committed"}

    def refused(more: dict[str, str]) -> bool:
        asked = config | more | {"name": name, "exactly.once.support": "required"}
        answer = rest.call("PUT", f"/connector-plugins/{MIRROR}/config/validate", asked).json()
        (told,) = [
            each["value"]
            for each in answer["configs"]
            if each["value"]["name"] == "exactly.once.support"
        ]
        return bool(told["errors"])

    def found() -> set[tuple[str, str]]:
        return set(here.of_readers(source_of(topic), *here.checked(name)))

    with connector(cluster, name, config, "STOPPED") as rest:
        assert (found(), refused({})) == ({("READER002", name)}, True)
        rest.call("PUT", f"/connectors/{name}/config", config | committed)
        eventually(lambda: found() == set())
        assert not refused(committed)


def test_a_share_group_is_named_and_nothing_else_is_asked_of_it(
    here: Edges, made: Consumers
) -> None:
    from confluent_kafka import ShareConsumer

    topic = made.new_topic("brokers-shared", 1)
    group = f"{topic}-group"
    quiet = {"log_level": 0, "bootstrap.servers": here.bootstrap, "group.id": group}
    consumer = ShareConsumer(quiet)
    try:
        consumer.subscribe([topic])

        def told() -> set[tuple[str, str]]:
            consumer.poll(timeout=0.2)
            return set(here.of_readers(source_of(topic)))

        eventually(lambda: told() == {("READER005", "share groups")})
    finally:
        consumer.close()
        eventually(lambda: deleted(here.bootstrap, group))


def deleted(bootstrap: str, group: str) -> bool:
    """Whether the group is gone, which it cannot be while it has members."""
    from kafka.protocol.admin import DeleteGroupsRequest

    answer = asked(bootstrap, DeleteGroupsRequest(groups_names=[group]))
    return {result.error_code for result in answer.results} <= {0, 69}


# ----------------------------------------------------------- a broker that is set as none should be


@pytest.fixture(scope="module")
def strict(state_home: Path) -> Iterator[Sandbox]:
    """A broker without workers that allows little, and has a user who may do nothing."""
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    spec = SandboxSpec(
        name="brokers",
        workers=0,
        extra_listeners={"SECURED": "SASL_PLAINTEXT"},
        extra_broker_properties={
            "transaction.max.timeout.ms": "50000",
            "transaction.state.log.replication.factor": "3",
            "transactional.id.expiration.ms": "3600000",
            "transaction.partition.verification.enable": "false",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secured.plain.sasl.jaas.config": f'{LOGIN} user_nobody="{PASSWORD}";',
        },
    )
    yield up(spec)
    down("brokers")


def test_what_a_broker_does_not_allow_is_foretold_and_it_answers_so(strict: Sandbox) -> None:
    def found() -> set[str]:
        edges = opened({"bootstrap.servers": strict.bootstrap_servers})
        findings, unseen = edges.of_brokers(source_of("any"))
        edges.close()
        assert unseen == []
        return set(findings)

    assert found() == {"BROKER003", "BROKER005", "BROKER013", "BROKER014", "BROKER015", "BROKER016"}
    # What a producer has by default, what workers fence with, and what is allowed but has no
    # coordinator.
    assert [initialised(strict, timeout) for timeout in (60_000, 90_000, 50_000)] == [
        Code.INVALID_TRANSACTION_TIMEOUT,
        Code.INVALID_TRANSACTION_TIMEOUT,
        Code.NOT_COORDINATOR,
    ]
    told: dict[str, InitProducerIdResponse] = {}
    transactions = TransactionClient({"bootstrap.servers": strict.bootstrap_servers}, timeout=120)
    for number in range(3):
        transactions.fence({f"strict-{number}": 50_000}, 20.0, told.__setitem__)
    transactions.close()
    assert [answer.lookup for answer in told.values()] == [True] * 3
    assert "BROKER005" in found()


def initialised(strict: Sandbox, timeout: int) -> int:
    """What the broker answers to InitProducerId, whoever coordinates the id."""
    from kafka.protocol.producer.transaction import InitProducerIdRequest

    request = InitProducerIdRequest(
        transactional_id="strict", transaction_timeout_ms=timeout, max_version=5
    )
    return int(asked(strict.bootstrap_servers, request).error_code)


def test_an_old_transaction_version_is_told_and_is_gone_when_it_is_raised(strict: Sandbox) -> None:
    edges = opened({"bootstrap.servers": strict.bootstrap_servers})
    set_feature(strict.bootstrap_servers, 1, 2)
    eventually(lambda: "BROKER004" in edges.of_brokers()[0])
    set_feature(strict.bootstrap_servers, 2, 1)
    eventually(lambda: "BROKER004" not in edges.of_brokers()[0])
    edges.close()


def test_a_principal_without_permissions_is_told_what_it_cannot_see(strict: Sandbox) -> None:
    nobody = opened(secured(strict))
    findings, unseen = nobody.of_brokers(source_of("any"))
    why = {each.what: each.why for each in unseen}
    assert sorted(why) == ["__transaction_state", "the settings of broker 1"]
    assert "DescribeConfigs on" in why["the settings of broker 1"]
    assert "Describe on Topic __transaction_state is missing" in why["__transaction_state"]
    # What the brokers speak is told to anybody.
    assert set(findings) <= {"BROKER004"}
    assert who_reads(nobody, "brokers-secret") == {
        "all consumer groups",
        "who reads brokers-secret",
    }
    nobody.close()
    root = opened({"bootstrap.servers": strict.bootstrap_servers})
    assert who_reads(root, "brokers-secret") == set()
    root.close()


def secured(strict: Sandbox) -> dict[str, Any]:
    """The client properties of the user without permissions."""
    return {
        "bootstrap.servers": strict.listeners["SECURED"],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "nobody",
        "sasl.password": PASSWORD,
    }


def test_a_group_that_a_principal_sees_and_may_not_describe_is_told(strict: Sandbox) -> None:
    topic, group = "brokers-guarded", "brokers-guarded-group"
    nobody = opened(secured(strict))
    grants = Grants(strict)
    with Consumers(strict.bootstrap_servers) as made:
        topic = made.new_topic(topic)
        made.commit(group, TopicPartition(topic, 0), 0)
        describe = [
            allow("User:nobody", Operation.DESCRIBE, *what)
            for what in ((Resource.TOPIC, topic), (Resource.CLUSTER, CLUSTER_NAME))
        ]
        with grants.given(*describe):
            assert who_reads(nobody, topic) == {f"the topics that {group} reads"}
            with grants.given(allow("User:nobody", Operation.DESCRIBE, Resource.GROUP, group)):
                assert who_reads(nobody, topic) == set()
    grants.close()
    nobody.close()


def who_reads(edges: Edges, topic: str) -> set[str]:
    """What is unseen of the readers of a topic."""
    given = replace(edges, calls=None).seen(source_of(topic))
    return {each.what for each in consumer_observe.observe(given, Goal.ENABLED).unseen}
