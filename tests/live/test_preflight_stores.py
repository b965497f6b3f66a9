"""What preflight says of offset stores, beside what real workers then do with them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from connectctl.ops.checks.offset_stores import rules
from connectctl.ops.checks.offset_stores.observe import observe
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.rest.connect import Connect
from connectctl.ops.connect.connector import Connector
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.offset_store import StoreMode, separate_store
from connectctl.ops.core.rule import check
from connectctl.ops.operations.connectors import observe as reading
from fakes.check_context import check_context
from live.offsetchanges import VERIFIABLE, live, read_all, records
from live.real import FILE_SOURCE, connector, create_topic, eventually, write

if TYPE_CHECKING:
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live


def key(name: str, id: int = 0) -> str:
    return json.dumps([name, {"id": id}], separators=(",", ":"))


def found(
    cluster: Sandbox,
    *names: str,
    goal: Goal = Goal.NOW,
    mode: StoreMode = StoreMode.ENABLED,
    planned: tuple[Connector, ...] = (),
) -> list[Finding]:
    """What preflight says of these connectors, and of those that nobody has created yet.

    New edges each time, because they remember the topics they first saw.
    """
    properties = {"bootstrap.servers": cluster.bootstrap_servers}
    kafka, calls = (
        Kafka(properties, timeout=120),
        Connect(cluster.rest_urls, auth={}, tls={}, timeout=120),
    )

    def other(bootstrap: str, overrides: Any) -> Kafka:
        return Kafka({"bootstrap.servers": bootstrap}, timeout=120)

    topics = cluster.topics
    checked = [each for each in reading.from_workers(calls) if each.name in names]
    assert len(checked) == len(names)
    context = check_context(
        *checked,
        *planned,
        kafka=kafka,
        calls=calls if names else None,
        other_kafka=other,
        bootstrap=cluster.bootstrap_servers,
        enabled=mode is StoreMode.ENABLED,
        internal=topics,
    )
    facts = observe(context, goal, time.time())
    assert facts.unseen == ()
    return list(check(rules, facts, goal))


def by_id(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.id: finding for finding in findings}


@contextmanager
def stopped(cluster: Sandbox, configs: dict[str, dict[str, str]]) -> Iterator[None]:
    """Connectors that never ran."""
    with ExitStack() as stack:
        for name, config in configs.items():
            stack.enter_context(connector(cluster, name, VERIFIABLE | config, "STOPPED"))
        yield


def write_at(cluster: Sandbox, topic: str, name: str, seqno: int, seconds_ago: float) -> None:
    """An offset that was written a while ago."""
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "partitioner": "murmur2_random"}
    )
    at = int((time.time() - seconds_ago) * 1000)
    producer.produce(topic, key=key(name), value=json.dumps({"seqno": seqno}), timestamp=at)
    assert producer.flush(300) == 0


@pytest.mark.parametrize("mode", [StoreMode.ENABLED, StoreMode.NOT_ENABLED])
def test_connectors_with_nothing_special_give_no_finding(
    cluster: Sandbox, tmp_path: Path, mode: StoreMode
) -> None:
    file = tmp_path / "in.txt"
    file.write_text("one\n")
    plain = {"connector.class": FILE_SOURCE, "file": str(file), "topic": "stores-plain-lines"}
    numbers = VERIFIABLE | {"topic": "stores-plain-numbers"}
    name = f"stores-plain-{mode.name.lower().replace('_', '-')}"
    with connector(cluster, name, plain) as rest, connector(cluster, f"{name}-2", numbers):
        eventually(lambda: rest.offsets(name) and rest.offsets(f"{name}-2"))
        for goal in Goal:
            assert found(cluster, name, f"{name}-2", goal=goal, mode=mode) == []


def test_a_connector_with_an_unseeded_topic_starts_over_as_foretold(cluster: Sandbox) -> None:
    name, topic = "stores-unseeded", "stores-unseeded-numbers"
    config = VERIFIABLE | {
        "topic": topic,
        "throughput": "50",
        "topic.creation.default.partitions": "1",
    }
    config |= {"topic.creation.default.replication.factor": "1"}
    with connector(cluster, name, config) as rest:

        def reached() -> int:
            return max((each["offset"]["seqno"] for each in rest.offsets(name)), default=0)

        eventually(lambda: reached() >= 20)
        rest.call("PUT", f"/connectors/{name}/stop")
        eventually(lambda: rest.state(name) == ["STOPPED"])
        assert "STORE001" not in by_id(found(cluster, name))
        create_topic(cluster.bootstrap_servers, f"{name}-offsets", 1)
        rest.call(
            "PATCH", f"/connectors/{name}/config", {"offsets.storage.topic": f"{name}-offsets"}
        )

        def foretold() -> Finding | None:
            return by_id(found(cluster, name)).get("STORE001")

        finding = eventually(foretold)
        assert "restart 1 source partition from the beginning" in finding.message
        assert finding.next_step == f"connectctl offsets merge {name} --into dedicated --stop"
        rest.call("PUT", f"/connectors/{name}/resume")
        eventually(lambda: live(cluster, f"{name}-offsets", name))
        rest.call("PUT", f"/connectors/{name}/stop")  # to read the topic to an end that stays
        eventually(lambda: rest.state(name) == ["STOPPED"])
        numbers: list[Any] = list(read_all(cluster, topic))
        assert numbers.count(0) == 2


def test_topics_that_are_stale_shared_missing_or_not_the_connectors_own(cluster: Sandbox) -> None:
    kafka, global_ = cluster.bootstrap_servers, cluster.topics["offsets"]
    for topic in ("stores-stale-offsets", "stores-ahead-offsets", "stores-both-offsets"):
        create_topic(kafka, topic, 1)
    create_topic(kafka, "stores-deletes-offsets", 1, "delete")
    own = "offsets.storage.topic"
    configs = {
        "stores-stale": {own: "stores-stale-offsets"},
        "stores-ahead": {own: "stores-ahead-offsets"},
        "stores-both-1": {own: "stores-both-offsets"},
        "stores-both-2": {own: "stores-both-offsets"},
        "stores-deletes": {own: "stores-deletes-offsets"},
        "stores-status": {own: cluster.topics["status"]},
    }
    with stopped(cluster, configs):
        for name, ours, theirs in (("stores-stale", 500, 100), ("stores-ahead", 100, 500)):
            write_at(cluster, f"{name}-offsets", name, 5, ours)
            write_at(cluster, global_, name, 9, theirs)

        def all_there() -> bool:
            return {"OFFSETS013", "STORE011", "STORE006"} <= set(by_id(found(cluster, *configs)))

        eventually(all_there)
        told = {(f.id, f.subject) for f in found(cluster, *configs, goal=Goal.DOWNGRADE)}
        assert ("STORE010", "stores-ahead") in told
        assert ("STORE010", "stores-stale") not in told
        told = {(f.id, f.subject) for f in found(cluster, *configs)}
        assert {
            ("OFFSETS013", "stores-stale"),
            ("STORE011", "stores-both-offsets"),
            ("OFFSETS017", "stores-deletes-offsets"),
            ("STORE006", "stores-status"),
        } <= told
        assert not {subject for id, subject in told if id == "OFFSETS010"}, "said better"


def test_a_topic_that_is_still_to_be_created_is_foretold(cluster: Sandbox) -> None:
    # Workers create it even for a connector that is STOPPED, so that only one that they do not have
    # yet shows this.
    config = VERIFIABLE | {"offsets.storage.topic": "stores-new-offsets"}
    planned = Connector("stores-new", None, config=config)
    assert set(by_id(found(cluster, planned=(planned,)))) == {"STORE004", "STORE012"}
    with stopped(cluster, {"stores-new": {"offsets.storage.topic": "stores-new-offsets"}}):
        eventually(lambda: set(by_id(found(cluster, "stores-new"))) == {"STORE012"})


def test_a_topic_that_is_not_compacted_makes_the_worker_refuse(cluster: Sandbox) -> None:
    name, own = "stores-refused", "stores-refused-offsets"
    create_topic(cluster.bootstrap_servers, own, 1, "delete")
    with connector(cluster, name, VERIFIABLE | {"offsets.storage.topic": own}) as rest:
        eventually(lambda: "OFFSETS017" in by_id(found(cluster, name)))
        eventually(lambda: "FAILED" in rest.state(name))
        assert "cleanup.policy=compact" in rest.call("GET", f"/connectors/{name}/status").text


def test_a_connector_that_writes_to_its_offsets_topic_fails_as_foretold(cluster: Sandbox) -> None:
    name, own = "stores-loop", "stores-loop-offsets"
    create_topic(cluster.bootstrap_servers, own, 1)
    with connector(
        cluster, name, VERIFIABLE | {"offsets.storage.topic": own, "topic": own}, "STOPPED"
    ) as rest:
        finding = by_id(found(cluster, name))["STORE008"]
        assert "With exactly-once enabled its tasks fail" in finding.message
        rest.call("PUT", f"/connectors/{name}/resume")
        eventually(lambda: rest.state(name) == ["RUNNING", "FAILED"])
        said = rest.call("GET", f"/connectors/{name}/status").text
        assert "may not produce to their own offsets topics" in said


def test_another_spelling_of_the_same_cluster_makes_workers_write_every_offset_twice(
    cluster: Sandbox,
) -> None:
    name, global_ = "stores-spelled", cluster.topics["offsets"]
    localhost = cluster.bootstrap_servers.replace("127.0.0.1", "localhost")
    assert localhost != cluster.bootstrap_servers
    config = VERIFIABLE | {
        "producer.override.bootstrap.servers": localhost,
        "topic": "stores-spelled-numbers",
    }
    write(cluster.bootstrap_servers, global_, (key(name), {"seqno": 7}))
    with connector(cluster, name, config) as rest:
        told = by_id(found(cluster, name))
        assert localhost in told["STORE005"].message
        assert "STORE001" not in told, "it is the same topic after all"
        eventually(lambda: rest.state(name) == ["RUNNING", "RUNNING"])

        def twice() -> bool:
            kafka = Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
            image = kafka.image([global_], patience=10, superseded=True)[global_]
            values = [
                r.value for r in (*image.latest, *image.superseded) if r.key == key(name).encode()
            ]
            return len(values) > len(set(values))

        eventually(twice)
        assert live(cluster, global_, name)
        rest.call("PUT", f"/connectors/{name}/stop")
        eventually(lambda: rest.state(name) == ["STOPPED"])
        before = by_id(found(cluster, name, goal=Goal.ENABLED, mode=StoreMode.NOT_ENABLED))
        assert "STORE005" in before
        assert "STORE001" not in before
        assert by_id(found(cluster, name, mode=StoreMode.NOT_ENABLED)) == {}
    assert records(cluster, global_, name)


@pytest.mark.parametrize(("servers", "status"), [("{0},{0}", 200), ("{0},", 500), ("", 500)])
def test_an_empty_bootstrap_server_is_one_to_workers(
    cluster: Sandbox, servers: str, status: int
) -> None:
    given, name = servers.format(cluster.bootstrap_servers), "stores-empty-server"
    config = VERIFIABLE | {"producer.override.bootstrap.servers": given}
    with connector(cluster, name, config, "STOPPED") as rest:
        offset = {"partition": {"id": 0}, "offset": {"seqno": 3}}
        answer = rest.call("PATCH", f"/connectors/{name}/offsets", {"offsets": [offset]})
        assert answer.status_code == status, answer.text
        assert status == 200 or "must not be empty" in answer.text
        store = separate_store(config, cluster.topics["offsets"], cluster.bootstrap_servers)
        assert (store is None) == (status == 200), (
            "nothing is there, and it is not the workers' own"
        )
