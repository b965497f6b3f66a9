"""A topic copy on a real broker: byte for byte, once, in turns with a worker's MirrorSourceConnector, whatever is gone."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.attempt.task_attempt import source_producer_class
from connectctl.ops.task_runtime.connectors.topic_copy.connector import TopicCopy
from connectctl.ops.task_runtime.spi.connector import ConnectorContext, SourceContext
from connectctl.ops.task_runtime.spi.delivery_settings import delivery_settings
from connectctl.ops.task_runtime.spi.transaction_batch import TaskResult, TaskStats
from connectctl.ops.task_runtime.task.exactly_once_task import ExactlyOnceTask
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from connectctl.ops.task_runtime.task.offset_store import CommittedOffsets, OffsetStore
from live.real import Ran, connectctl, connector, create_topic, eventually
from otherbrokers import VERSION_2

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
Seen = tuple[bytes | None, bytes | None, Any, tuple[int, int]]


class Copy:
    """A topic and the job that copies it, on one cluster that is source and target."""

    nulls = True

    def __init__(self, cluster: Sandbox, partitions: int = 2, more: Mapping[str, str] | None = None):
        self.cluster, self.bootstrap = cluster, cluster.bootstrap_servers
        self.name = f"copy-{secrets.token_hex(4)}"
        self.topic = create_topic(self.bootstrap, f"{self.name}-in", partitions, "delete")
        self.remote = f"east.{self.topic}"
        self.written = [0] * partitions
        self.began = int(time.time() * 1000) - 3_600_000  # what is older than a week is deleted after five minutes
        self.config = {
            "connector.class": "TopicCopy",
            "tasks.max": "2",
            "source.cluster.alias": "east",
            "target.cluster.alias": "west",
            "source.cluster.bootstrap.servers": self.bootstrap,
            "topics": self.topic,
            "heartbeats.replication.enabled": "false",
        } | dict(more or {})

    def write(self, *counts: int) -> None:
        """So many more records for each partition; every fifth has no value or headers of its own."""
        small = {"linger.ms": 5, "batch.num.messages": 10}
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True} | small)
        for partition, count in enumerate(counts):
            for n in range(self.written[partition], self.written[partition] + count):
                value = None if self.nulls and n % 5 == 3 else json.dumps({"seq": n, "pad": "é\0"}).encode()
                headers = [("a", b"\0\xff"), ("a", None), ("b", b"")] if n % 5 == 4 else None
                producer.produce(self.topic, value, b"\xfe%d" % n, partition, timestamp=self.began + n, headers=headers)
            self.written[partition] += count
        assert producer.flush(60) == 0

    def seen(self, topic: str) -> list[list[Seen]]:
        """What a reader with read_committed sees of each partition."""
        client = {"bootstrap.servers": self.bootstrap, "group.id": "x", "isolation.level": "read_committed"}
        # Records that are gone from the beginning are an error: "latest" would make an empty partition of them.
        client |= {"auto.offset.reset": "error"}
        consumer = Consumer(client | {"enable.partition.eof": True, "enable.auto.commit": False})
        found: list[list[Seen]] = [[] for _ in consumer.list_topics(topic, 30).topics[topic].partitions]
        consumer.assign([TopicPartition(topic, p, 0) for p in range(len(found))])
        left = set(range(len(found)))  # a partition that is written to comes to its end more than once
        end = time.monotonic() + 300
        while left:
            assert time.monotonic() < end, f"partitions {sorted(left)} of {topic} do not come to an end"
            for m in consumer.consume(10_000, timeout=1):
                if (error := m.error()) is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    left.discard(m.partition())
                else:
                    found[m.partition()].append((m.key(), m.value(), m.headers(), m.timestamp()))
        consumer.close()
        return found

    def all_there(self) -> bool:
        return self.seen(self.remote) == self.seen(self.topic)

    def start(self, config: dict[str, str] | None = None) -> list[dict[str, str]]:
        """What a start does for the tasks: their configurations, once the remote topics are as they have to be."""
        started = TopicCopy()
        started.context = ConnectorContext(Kafka({"bootstrap.servers": self.bootstrap}, timeout=30))
        started.start({**self.config, "name": self.name, **(config or {})})
        return started.task_configs(int(self.config["tasks.max"]))

    def run_here(self, offsets: str, tasks: Sequence[dict[str, str]]) -> list[TaskResult]:
        """Each of the tasks to the end of its partitions, without Spark."""
        return [self._task(offsets, n, task) for n, task in enumerate(tasks)]

    def _task(self, offsets: str, number: int, config: dict[str, str]) -> TaskResult:
        kafka, how = Kafka({"bootstrap.servers": self.bootstrap}, timeout=30), delivery_settings(config)
        stats = TaskStats()
        supply = TopicCopy.supply(SourceContext(self.name, config, how, offsets, 30, stats))
        assert supply is not None
        kind = source_producer_class(kafka, supply, how, config)
        properties = {**supply.producer_properties, **how.properties}
        id_ = task_id(f"g-{self.name}", self.name, number)
        kernel = ExactlyOnceTask(
            lambda: kind(kafka, id_, timeout_ms=how.timeout_ms, properties=properties),
            SourceOffsetsLedger(offsets, OffsetStore(CommittedOffsets(kafka, offsets, self.name))),
            stopped=lambda: kernel.stats.instances > 0 and not supply.has_more,
            patience=60,
            outage=600,
            strict=how.strict,
            stats=stats,
        )
        try:
            return kernel.run(supply)
        finally:
            supply.close()

    def run(self, directory: Path, *args: str, own: bool = True, timeout: int = 60, **until: Any) -> Ran:
        path = directory / "job.yaml"
        job = {"name": self.name, "config": self.config, "spark": {"master": "local[2]"}, "until": until}
        path.write_text(json.dumps(job))  # which is YAML, too
        group = ["--group-id", f"g-{self.name}"] if own else []
        where = ["--context", f"sandbox-{self.cluster.spec.name}", "--timeout", str(timeout), *group]
        return connectctl(*where, "run", str(path), "-o", "json", *args)


@pytest.fixture
def offsets(cluster: Sandbox) -> str:
    return create_topic(cluster.bootstrap_servers, f"copy-{secrets.token_hex(4)}-offsets", 3)


@pytest.mark.parametrize("way", ["unopened", "opened"])
@pytest.mark.parametrize("strict", ["false", "true"])
def test_keys_values_headers_timestamps_and_partitions_stay_as_they_are(
    cluster: Sandbox, offsets: str, strict: str, way: str
) -> None:
    more = {"epoch.per.transaction": strict, "records.per.transaction": "30", "copy.batches": way}
    copy = Copy(cluster, more=more)
    copy.write(100, 57)
    first = copy.run_here(offsets, copy.start())
    assert [ended.stats.records for ended in first] == [100, 57]
    assert all(ended.stats.transactions > 1 for ended in first)
    # The producer speaks transaction version 2: each transaction has its epoch, and needs no instance of its own for that.
    assert not VERSION_2 or all(ended.stats.instances <= ended.stats.transactions / 2 for ended in first)
    copy.write(10, 20)
    second = copy.run_here(offsets, copy.start())
    assert [ended.stats.records for ended in second] == [10, 20]
    assert copy.all_there()


@pytest.mark.parametrize("way", ["unopened", "opened"])
def test_what_was_aborted_is_not_copied_and_what_is_behind_markers_is(cluster: Sandbox, offsets: str, way: str) -> None:
    copy = Copy(cluster, 1, {"copy.batches": way})
    producer = Producer({"bootstrap.servers": copy.bootstrap, "transactional.id": copy.name})
    producer.init_transactions(30)
    for n, end in enumerate((producer.commit_transaction, producer.abort_transaction) * 3):
        producer.begin_transaction()
        producer.produce(copy.topic, f"{n}")
        producer.flush(30)
        end(30)
    ended = copy.run_here(offsets, copy.start())[0]
    assert ended.stats.records == 3
    assert [value for _, value, _, _ in copy.seen(copy.remote)[0]] == [b"0", b"2", b"4"]
    assert copy.run_here(offsets, copy.start())[0].stats.records == 0


def test_remote_topics_are_made_like_their_source_and_grow_with_it(cluster: Sandbox, offsets: str) -> None:
    copy = Copy(cluster, 2)
    admin = AdminClient({"bootstrap.servers": copy.bootstrap})
    source = Kafka({"bootstrap.servers": copy.bootstrap}, timeout=30)
    copy.config["topics"] = f"{copy.name}-(in|tidy)"
    tidy = create_topic(copy.bootstrap, f"{copy.name}-tidy", 1)
    tasks = copy.start()
    assert source.topics([f"east.{tidy}"])[f"east.{tidy}"].config["cleanup.policy"] == "compact"
    assert [task["task.assigned.partitions"] for task in tasks] == [f"{copy.topic}-0,{tidy}-0", f"{copy.topic}-1"]
    from confluent_kafka.admin import NewPartitions

    admin.create_partitions([NewPartitions(copy.topic, 3)])[copy.topic].result()
    eventually(lambda: len(admin.list_topics(copy.topic, 30).topics[copy.topic].partitions) == 3)
    copy.written.append(0)
    copy.write(5, 5, 5)
    copy.run_here(offsets, copy.start())
    assert [len(found) for found in copy.seen(copy.remote)] == [5, 5, 5]
    assert copy.all_there()


def test_a_source_topic_that_is_gone_or_another_by_now_is_one_line(cluster: Sandbox, offsets: str) -> None:
    copy = Copy(cluster, 1)
    copy.write(5)
    tasks = copy.start()
    copy.run_here(offsets, tasks)
    admin = AdminClient({"bootstrap.servers": copy.bootstrap})
    admin.delete_topics([copy.topic])[copy.topic].result()
    eventually(lambda: copy.topic not in admin.list_topics(timeout=30).topics)
    with pytest.raises(ConnectctlError, match=f"topic {copy.topic} no longer exists on the source cluster east"):
        copy.run_here(offsets, tasks)
    create_topic(copy.bootstrap, copy.topic, 1, "delete")
    with pytest.raises(ConnectctlError, match=f"{copy.topic}-0 of east ends at 0, but the committed offset is 4"):
        copy.run_here(offsets, tasks)
    assert len(copy.seen(copy.remote)[0]) == 5


def test_a_source_that_cannot_be_reached_or_has_nothing_is_one_line_before_anything_is_written(
    cluster: Sandbox, tmp_path: Path
) -> None:
    copy = Copy(cluster)
    copy.config["topics"] = "nothing-like-it"
    ran = copy.run(tmp_path, "--dry-run", idle="1s")
    assert (ran.code, "No topic to copy" in ran.err) == (2, True)
    copy.config["topics"] = copy.topic
    plan = copy.run(tmp_path, "--dry-run", idle="1s")
    assert f"create the topic {copy.remote} with 2 partitions, as for {copy.topic} on the source cluster" in plan.out
    copy.config["source.cluster.bootstrap.servers"] = "127.0.0.1:1"
    ran = copy.run(tmp_path, "--yes", timeout=3, idle="1s")
    assert (ran.code, json.loads(ran.err)["error"]["message"]) == (5, "Cannot read the source cluster east")
    there = AdminClient({"bootstrap.servers": copy.bootstrap}).list_topics(timeout=30).topics
    assert [topic for topic in there if copy.name in topic] == [copy.topic]


def test_a_worker_and_a_run_take_turns_in_one_topic_and_every_record_is_there_once(
    cluster: Sandbox, tmp_path: Path
) -> None:
    copy = Copy(cluster)
    copy.config |= {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "target.cluster.bootstrap.servers": copy.bootstrap,
        "source.consumer.isolation.level": "read_committed",
        "replication.factor": "1",
        **dict.fromkeys(("key.converter", "value.converter", "header.converter"), BYTES),
        "emit.offset-syncs.enabled": "false",
    }
    copy.nulls = False  # each record says where it belongs, for the audit
    copy.write(300, 200)
    with connector(cluster, copy.name, copy.config) as rest:
        eventually(lambda: [o["offset"]["offset"] for o in rest.offsets(copy.name)] in ([299, 199], [199, 299]))
        rest.call("PUT", f"/connectors/{copy.name}/pause")
        eventually(lambda: set(rest.state(copy.name)) == {"PAUSED"})
        copy.write(50, 70)
        ran = copy.run(tmp_path, "--take-over", "--yes", own=False, idle="2s")
        assert ran.code == 0, ran.err
        assert ran.json["records"] == 120
        # Its batches are small: each is one of those that are put together, and counted.
        assert sum(task["metrics"]["copy-batch-opened-total"] for task in ran.json["tasks"]) >= 12
        assert rest.state(copy.name)[0] == "PAUSED"
        copy.write(30, 20)
        rest.call("PUT", f"/connectors/{copy.name}/resume")
        eventually(copy.all_there)
        time.sleep(1)
        assert copy.all_there()
        places = {(o["partition"]["cluster"], o["partition"]["partition"]) for o in rest.offsets(copy.name)}
        assert places == {("east", 0), ("east", 1)}
        eventually(lambda: sorted(o["offset"]["offset"] for o in rest.offsets(copy.name)) == [289, 379])
        wish = ("--sequence", "$.seq", "--by", "partition", "--first", "0")
        audit = connectctl("--context", f"sandbox-{cluster.spec.name}", "audit", copy.remote, *wish, "-o", "json")
        assert (audit.code, audit.json["verdict"]) == (0, "exactly-once"), audit.out + audit.err
