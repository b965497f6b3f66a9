"""What preflight says of fencing and of transactions, beside what real coordinators and workers
show.
"""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from connectctl.ops.checks.fencing import observe as fencing_observe
from connectctl.ops.checks.fencing import rules as fencing_rules
from connectctl.ops.checks.transactions import observe as transaction_observe
from connectctl.ops.checks.transactions import rules as transaction_rules
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.rest.connect import Connect
from connectctl.ops.connect import config_topic
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.transactional_ids import TransactionalIdIndex, task_id
from connectctl.ops.connect.zombie_fencing import CURE
from connectctl.ops.core.rule import check
from connectctl.ops.kafka.partitioner import coordinator_partition
from connectctl.ops.kafka.transaction_log import TOPIC as TRANSACTION_STATE
from connectctl.ops.operations.connectors import observe as reading
from connectctl.ops.operations.connectors.fencing_diagnosis import write_times
from fakes.check_context import check_context
from live.offsetchanges import read_all
from live.real import FILE_SOURCE, connector, eventually

if TYPE_CHECKING:
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
VERIFIABLE = "org.apache.kafka.connect.tools.VerifiableSourceConnector"


def kafka(cluster: Sandbox) -> Kafka:
    return Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)


def found(
    cluster: Sandbox, *names: str, goal: Goal = Goal.NOW, enabled: bool = True
) -> dict[str, Finding]:
    """What preflight says of fencing and transactions of these connectors, by id."""
    here = kafka(cluster)
    rest = Connect(cluster.rest_urls, auth={}, tls={}, timeout=120)
    checked = [each for each in reading.from_workers(rest) if each.name in names]
    assert len(checked) == len(names)
    topics = cluster.topics
    images = here.image([topics["config"], topics["status"]], patience=10)
    written = {
        key: at for image in images.values() for key, at in write_times(image.latest).items()
    }
    state = config_topic.parse(images[topics["config"]].latest, topics["config"])
    directory = TransactionalIdIndex({cluster.group_id: frozenset(state.connectors)})
    calls = TransactionClient({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
    try:
        context = check_context(
            *checked,
            kafka=here,
            calls=rest,
            transactions=calls,
            group=cluster.group_id,
            bootstrap=cluster.bootstrap_servers,
            workers=2,
            internal=topics,
            state=state,
            directory=directory,
            enabled=enabled,
            written=written,
        )
        seen = fencing_observe.observe(context, time.time())
        paced = transaction_observe.observe(context, time.time())
    finally:
        calls.close()
    assert seen.unseen == paced.unseen == ()
    return {
        f.id: f for f in (*check(fencing_rules, seen, goal), *check(transaction_rules, paced, goal))
    }


def test_ids_are_on_the_partitions_that_real_coordinators_put_them(cluster: Sandbox) -> None:
    ids = [f"fencing-hash-{text}-0" for text in ("plain", "é", "\U0001f600", "longer" * 20)]
    for id in ids:
        producer = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": id}
        )
        producer.init_transactions(120)
    here = kafka(cluster)
    image = here.image([TRANSACTION_STATE], patience=10)[TRANSACTION_STATE]
    where = {_id(record.key): record.partition for record in image.latest if record.key}
    facts = here.topics([TRANSACTION_STATE])[TRANSACTION_STATE]
    assert {id: where[id] for id in ids} == {
        id: coordinator_partition(id, facts.partitions) for id in ids
    }
    assert set(facts.leaders.values()) == {1}


def _id(key: bytes) -> str:
    version, length = struct.unpack_from(">hh", key)
    assert version == 0
    return key[4 : 4 + length].decode()


def test_a_running_connector_gives_no_finding(cluster: Sandbox, tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text("one\n")
    config = {"connector.class": FILE_SOURCE, "file": str(file), "topic": "fencing-plain-lines"}
    with connector(cluster, "fencing-plain", config) as rest:
        eventually(lambda: rest.state("fencing-plain") == ["RUNNING", "RUNNING"])
        eventually(lambda: rest.offsets("fencing-plain"))
        for goal in Goal:
            assert found(cluster, "fencing-plain", goal=goal) == {}
            assert found(cluster, "fencing-plain", goal=goal, enabled=False) == {}


def test_a_round_for_many_tasks_is_foretold_and_its_cure_too(cluster: Sandbox) -> None:
    many = {
        "connector.class": VERIFIABLE,
        "tasks.max": "110",
        "topic": "fencing-many",
        "throughput": "1",
    }
    with connector(cluster, "fencing-many", many, "STOPPED") as rest:
        finding = found(cluster, "fencing-many")["FENCE010"]
        assert finding.severity == "error"
        assert "broker 1 coordinates 110 of its 110 ids" in finding.message
        assert "times out after 90 s" in finding.message
        assert finding.next_step == "connectctl connectors cure fencing-many"
        assert found(cluster, "fencing-many", goal=Goal.DOWNGRADE) == {}
        rest.call("PATCH", "/connectors/fencing-many/config", CURE)
        eventually(lambda: found(cluster, "fencing-many") == {})


def test_an_id_that_another_application_uses_is_told(cluster: Sandbox, tmp_path: Path) -> None:
    name, file = "fencing-foreign", tmp_path / "in.txt"
    file.write_text("one\n")
    config = {"connector.class": FILE_SOURCE, "file": str(file), "topic": "fencing-foreign-lines"}
    with connector(cluster, name, config) as rest:
        eventually(lambda: rest.call("GET", f"/connectors/{name}/topics").json()[name]["topics"])
        eventually(lambda: rest.offsets(name))
        rest.call("PUT", f"/connectors/{name}/stop")
        eventually(lambda: rest.state(name) == ["STOPPED"])
        assert found(cluster, name) == {}
        id = task_id(cluster.group_id, name, 0)
        intruder = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": id}
        )
        intruder.init_transactions(120)
        intruder.begin_transaction()
        intruder.produce("fencing-payments", value=b"1")
        assert intruder.flush(300) == 0
        for enabled, severity in ((True, "warning"), (False, "error")):
            told = found(cluster, name, goal=Goal.ENABLED, enabled=enabled)
            assert told["FENCE012"].severity == severity
            assert "open on fencing-payments" in told["FENCE012"].message
        intruder.abort_transaction(60)
        assert found(cluster, name, goal=Goal.ENABLED, enabled=False) == {}


@pytest.mark.slow  # waits for a flush that comes after a minute
def test_an_interval_beyond_the_time_out_aborts_in_silence_and_then_fails_as_foretold(
    cluster: Sandbox,
) -> None:
    config = {
        "connector.class": VERIFIABLE,
        "throughput": "5",
        "transaction.boundary": "interval",
        "producer.override.transaction.timeout.ms": "2000",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    }
    long, short = "fencing-long-interval", "fencing-short-interval"
    interval = "transaction.boundary.interval.ms"
    with (
        connector(cluster, long, config | {"topic": long, interval: "600000"}) as rest,
        connector(cluster, short, config | {"topic": short, interval: "14000"}),
    ):
        told = found(cluster, long)["TXN005"]
        assert told.severity == "error"
        assert "every 600 s; that is more than its transaction time-out of 2 s" in told.message
        # The coordinator looks for transactions to abort every ten seconds.
        aborted = eventually(lambda: found(cluster, long).get("TXN009"))
        assert aborted.subject == f"{long} task 0"
        assert rest.state(long) == ["RUNNING", "RUNNING"]
        assert read_all(cluster, long) == []

        eventually(lambda: "FAILED" in rest.state(short))
        trace = rest.call("GET", f"/connectors/{short}/status").json()["tasks"][0]["trace"]
        assert "before its producer transaction expired" in trace, trace
        expired = eventually(lambda: found(cluster, short).get("TXN007"))
        assert expired.subject == f"{short} task 0"
        assert "longer than 2 s, and its coordinator aborted it" in expired.message
        assert "FENCE007" not in found(cluster, short)


def test_a_task_that_was_fenced_is_not_told_to_have_expired(cluster: Sandbox) -> None:
    name = "fencing-taken"
    config = {"connector.class": VERIFIABLE, "topic": "fencing-taken-numbers", "throughput": "5"}
    with connector(cluster, name, config) as rest:
        eventually(lambda: rest.offsets(name))  # it works, and does not only say so
        id = task_id(cluster.group_id, name, 0)
        properties = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "transaction.timeout.ms": 60_000,
        }
        thief = Producer(properties | {"transactional.id": id})
        thief.init_transactions(120)
        thief.begin_transaction()
        thief.produce("fencing-taken-numbers", value=b"1")
        assert thief.flush(300) == 0
        eventually(lambda: "FAILED" in rest.state(name))
        trace = rest.call("GET", f"/connectors/{name}/status").json()["tasks"][0]["trace"]
        told = found(cluster, name)
        assert "FENCE007" in told, f"{told}\n{trace}"
        assert "fenced by another producer, which uses its id now" in told["FENCE007"].message
        assert not {"TXN007", "TXN009"} & set(told)
        thief.abort_transaction(60)
