"""What a fence is for: a zombie that was asleep can commit nothing; real tasks are fenced, told
truthfully, restarted.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from confluent_kafka import Consumer, TopicPartition
from live.real import (
    Ran,
    connectctl,
    connector,
    create_topic,
    eventually,
    follow_next_commands,
    write_uncommitted,
)
from live.real import workers as rest
from nextsteps import commands_in

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
SCHEMAS = {
    kind: json.loads((Path(__file__).parents[2] / f"docs/schema/{name}.json").read_text())
    for kind, name in {"FenceResult": "fence", "Plan": "plan"}.items()
}
SOURCE = "org.apache.kafka.connect.tools.VerifiableSourceConnector"
ZOMBIE = """
import sys
from confluent_kafka import Producer, KafkaException
bootstrap, id, topic = sys.argv[1:]
producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": id, "transaction.timeout.ms": 300000})
producer.init_transactions(120)
producer.begin_transaction()
for n in range(100):
    producer.produce(topic, f"zombie {n}")
producer.flush(300)
print("open", flush=True)
sys.stdin.readline()
try:
    for n in range(100):
        producer.produce(topic, f"late {n}")
    producer.commit_transaction(30)
except KafkaException as e:
    print(e.args[0].name(), flush=True)
else:
    print("committed", flush=True)
"""


def fence(cluster: Sandbox, *args: str, code: int = 0) -> Any:
    ran = connectctl("--context", f"sandbox-{cluster.spec.name}", "fence", *args, "-o", "json")
    assert ran.code == code, ran.out + ran.err
    jsonschema.validate(ran.json, SCHEMAS[ran.json["kind"]])
    return ran.json


def run(cluster: Sandbox, *args: str) -> Ran:
    return connectctl("--context", f"sandbox-{cluster.spec.name}", *args)


@contextmanager
def zombie(cluster: Sandbox, id: str, topic: str) -> Iterator[subprocess.Popen[str]]:
    """A process with an open transaction that is about to be committed."""
    process = subprocess.Popen(
        [sys.executable, "-c", ZOMBIE, cluster.bootstrap_servers, id, topic],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == "open\n"
        yield process
    finally:
        os.kill(process.pid, signal.SIGCONT)
        process.kill()
        process.communicate()


def read(cluster: Sandbox, topic: str, isolation: str) -> list[bytes]:
    """Every record of partition 0, up to the end that this isolation level has."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    try:
        while (message := consumer.poll(20)) is not None and message.error() is None:
            found.append(message.value() or b"")
    finally:
        consumer.close()
    return found


def name() -> str:
    return f"f{uuid.uuid4().hex[:8]}"


def test_a_zombie_that_slept_in_an_open_transaction_commits_nothing(cluster: Sandbox) -> None:
    id, topic = name(), create_topic(cluster.bootstrap_servers, name(), 1, "delete")
    with zombie(cluster, id, topic) as process:
        os.kill(process.pid, signal.SIGSTOP)
        planned = fence(cluster, "--transactional-id", id, "--dry-run")
        assert planned["preview"][0]["plan"]["state"] == "Ongoing"
        assert planned["preview"][0]["plan"]["topicPartitions"] == [
            {"topic": topic, "partition": 0}
        ]

        done = fence(cluster, "--transactional-id", id, "--yes")
        (result,) = done["results"]
        assert (result["outcome"], result["abortedTransaction"], result["error"]) == (
            "fenced",
            True,
            None,
        )
        assert result["epochAfter"] > result["epochBefore"]
        assert done["summary"]["fenced"] == 1
        assert read(cluster, topic, "read_committed") == []

        os.kill(process.pid, signal.SIGCONT)
        assert process.stdin
        assert process.stdout
        print("go on", file=process.stdin, flush=True)
        assert process.stdout.readline().strip() in (
            "_FENCED",
            "INVALID_PRODUCER_EPOCH",
            "PRODUCER_FENCED",
        )
    assert read(cluster, topic, "read_committed") == []
    assert len(read(cluster, topic, "read_uncommitted")) == 100


def test_a_successor_goes_on_after_the_fence(cluster: Sandbox) -> None:
    id, topic = name(), create_topic(cluster.bootstrap_servers, name(), 1, "delete")
    with zombie(cluster, id, topic) as process:
        os.kill(process.pid, signal.SIGSTOP)
        fence(cluster, "--transactional-id", id, "--yes")
        write_uncommitted(cluster.bootstrap_servers, topic, id, ("k", "good")).commit_transaction(
            30
        )
        os.kill(process.pid, signal.SIGCONT)
        print("go on", file=process.stdin, flush=True)
        assert process.stdout
        assert process.stdout.readline().strip() != "committed"
    assert read(cluster, topic, "read_committed") == [b"good"]


def test_a_running_task_is_not_fenced_without_force_and_then_restarted(cluster: Sandbox) -> None:
    source = name()
    config = {"connector.class": SOURCE, "tasks.max": "2", "topic": source, "throughput": "50"}
    with connector(cluster, source, config) as workers:
        eventually(lambda: workers.state(source) == ["RUNNING"] * 3)
        refused = run(cluster, "fence", source, "--yes", "-o", "json")
        assert refused.code == 4
        assert refused.out == ""
        assert json.loads(refused.err.splitlines()[-1])["error"]["code"] == "running-tasks"

        follow_next_commands(run(cluster, "fence", source, "--yes").err)

        fenced = run(cluster, "fence", source, "--yes", "--force")
        assert fenced.code == 0, fenced.out + fenced.err
        eventually(lambda: workers.state(source)[1:] == ["FAILED"] * 2)
        # A run that another test left unfinished on this cluster is named with its own command.
        named = [each for each in commands_in(fenced.err) if each[1][0] == "connectors"]
        assert len(named) == 1, fenced.err
        (restart,) = named
        restarted = connectctl(
            *(word for option in restart[0] for word in option), *restart[1], "--yes", "--wait"
        )
        assert (restarted.code, workers.state(source)) == (0, ["RUNNING"] * 3), (
            restarted.out + restarted.err
        )

        done = fence(cluster, source, "--yes", "--force", "--restart-failed")
        assert [(r["task"], r["connector"], r["outcome"]) for r in done["results"]] == [
            (0, source, "fenced"),
            (1, source, "fenced"),
        ]
        assert workers.state(source) == ["RUNNING"] * 3


def test_a_fenced_task_that_has_nothing_to_write_is_restarted_too(
    cluster: Sandbox, tmp_path: Path
) -> None:
    source, file = name(), tmp_path / "lines.txt"
    file.write_text("one\n")
    config = {
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "topic": source,
        "file": str(file),
    }
    with connector(cluster, source, config) as workers:
        eventually(lambda: read(cluster, source, "read_committed") == [b'"one"'])
        fence(cluster, source, "--yes", "--force", "--restart-failed")
        assert workers.state(source) == ["RUNNING"] * 2
        with file.open("a") as more:
            more.write("two\n")
        eventually(lambda: len(read(cluster, source, "read_committed")) == 2)
        assert workers.state(source) == ["RUNNING"] * 2


def test_without_a_terminal_and_without_yes_nothing_is_done(cluster: Sandbox) -> None:
    id = name()
    write_uncommitted(
        cluster.bootstrap_servers,
        create_topic(cluster.bootstrap_servers, name(), 1),
        id,
        ("k", "v"),
    )
    ran = run(cluster, "fence", "--transactional-id", id)
    assert ran.code == 2
    assert "fence 1 transactional id; this will abort 1 open transaction" in ran.err
    shown = run(cluster, "transactions", "show", id, "-o", "json").json
    assert shown["transaction"]["state"] == "Ongoing"


def test_a_task_set_that_shrank_still_has_its_old_ids_fenced(cluster: Sandbox) -> None:
    source = name()
    config = {"connector.class": SOURCE, "tasks.max": "3", "topic": source, "throughput": "20"}
    with connector(cluster, source, config) as workers:
        eventually(lambda: workers.state(source) == ["RUNNING"] * 4)
        workers.call(
            "PUT", f"/connectors/{source}/config", config | {"tasks.max": "1", "name": source}
        )
        eventually(lambda: workers.state(source) == ["RUNNING"] * 2)
        workers.call("PUT", f"/connectors/{source}/stop")
        eventually(lambda: workers.state(source) == ["STOPPED"])
        old = f"{cluster.group_id}-{source}-2"
        topic = create_topic(cluster.bootstrap_servers, name(), 1, "delete")
        with zombie(cluster, old, topic) as process:
            os.kill(process.pid, signal.SIGSTOP)
            done = fence(cluster, source, "--yes")
            assert [r["task"] for r in done["results"]] == [0, 1, 2]
            assert [r["abortedTransaction"] for r in done["results"]] == [False, False, True]
            os.kill(process.pid, signal.SIGCONT)
            print("go on", file=process.stdin, flush=True)
            assert process.stdout
            assert process.stdout.readline().strip() != "committed"


def test_the_leader_is_fenced_only_when_asked_for_and_takes_its_id_back(cluster: Sandbox) -> None:
    leader = f"connect-cluster-{cluster.group_id}"
    # groups of other tests have leaders, too
    by_prefix = fence(cluster, "--prefix", leader, "--yes")
    assert [(r["transactionalId"], r["outcome"]) for r in by_prefix["results"]] == [
        (leader, "skipped")
    ]
    assert fence(cluster, "--leader", "--yes")["summary"]["fenced"] == 1
    # The first write may fail, by which the leader learns that it was fenced; connectctl's own
    # retries are for that.
    source = name()
    config = {
        "connector.class": SOURCE,
        "tasks.max": "1",
        "topic": source,
        "throughput": "1",
        "name": source,
    }
    workers = rest(cluster)
    eventually(
        lambda: (
            workers.call("PUT", f"/connectors/{source}/config", config).status_code in (200, 201)
        )
    )
    workers.delete(source)
