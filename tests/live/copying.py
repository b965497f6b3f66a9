"""A topic copy that a test starts, and what arrived in its target."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.task_runtime.attempt.task_attempt import source_producer_class
from connectctl.ops.task_runtime.connectors.topic_copy.connector import TopicCopy
from connectctl.ops.task_runtime.spi.connector import ConnectorContext, SourceContext
from connectctl.ops.task_runtime.spi.delivery_settings import delivery_settings
from connectctl.ops.task_runtime.spi.transaction_batch import TaskResult, TaskStats
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.committed_offsets import CommittedOffsets, OffsetStore
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from live.real import Ran, connectctl, create_topic

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox


Seen = tuple[bytes | None, bytes | None, Any, tuple[int, int]]


class Copy:
    """A topic and the job that copies it, on one cluster that is source and target."""

    nulls = True

    def __init__(
        self, cluster: Sandbox, partitions: int = 2, more: Mapping[str, str] | None = None
    ):
        self.cluster, self.bootstrap = cluster, cluster.bootstrap_servers
        self.name = f"copy-{secrets.token_hex(4)}"
        self.topic = create_topic(self.bootstrap, f"{self.name}-in", partitions, "delete")
        self.remote = f"east.{self.topic}"
        self.written = [0] * partitions
        # what is older than a week is deleted after five minutes
        self.began = int(time.time() * 1000) - 3_600_000
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
        """So many more records for each partition; every fifth has no value or headers of its
        own.
        """
        small = {"linger.ms": 5, "batch.num.messages": 10}
        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "enable.idempotence": True} | small
        )
        for partition, count in enumerate(counts):
            for n in range(self.written[partition], self.written[partition] + count):
                value = (
                    None
                    if self.nulls and n % 5 == 3
                    else json.dumps({"seq": n, "pad": "é\0"}).encode()
                )
                headers = [("a", b"\0\xff"), ("a", None), ("b", b"")] if n % 5 == 4 else None
                producer.produce(
                    self.topic,
                    value,
                    b"\xfe%d" % n,
                    partition,
                    timestamp=self.began + n,
                    headers=headers,
                )
            self.written[partition] += count
        assert producer.flush(60) == 0

    def seen(self, topic: str) -> list[list[Seen]]:
        """What a reader with read_committed sees of each partition."""
        client = {
            "bootstrap.servers": self.bootstrap,
            "group.id": "x",
            "isolation.level": "read_committed",
        }
        # Records that are gone from the beginning are an error: "latest" would make an empty
        # partition of them.
        client |= {"auto.offset.reset": "error"}
        consumer = Consumer(client | {"enable.partition.eof": True, "enable.auto.commit": False})
        found: list[list[Seen]] = [
            [] for _ in consumer.list_topics(topic, 30).topics[topic].partitions
        ]
        consumer.assign([TopicPartition(topic, p, 0) for p in range(len(found))])
        # a partition that is written to comes to its end more than once
        left = set(range(len(found)))
        end = time.monotonic() + 300
        while left:
            assert time.monotonic() < end, (
                f"partitions {sorted(left)} of {topic} do not come to an end"
            )
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
        """What a start does for the tasks: their configurations, once the remote topics are as they
        have to be.
        """
        started = TopicCopy()
        started.context = ConnectorContext(Kafka({"bootstrap.servers": self.bootstrap}, timeout=30))
        started.start({**self.config, "name": self.name, **(config or {})})
        return started.task_configs(int(self.config["tasks.max"]))

    def run_here(self, offsets: str, tasks: Sequence[dict[str, str]]) -> list[TaskResult]:
        """Each of the tasks to the end of its partitions, without Spark."""
        return [self._task(offsets, n, task) for n, task in enumerate(tasks)]

    def _task(self, offsets: str, number: int, config: dict[str, str]) -> TaskResult:
        kafka, how = (
            Kafka({"bootstrap.servers": self.bootstrap}, timeout=30),
            delivery_settings(config),
        )
        stats = TaskStats()
        supply = TopicCopy.supply(SourceContext(self.name, config, how, offsets, 30, stats))
        assert supply is not None
        kind = source_producer_class(supply, how)
        properties = {**supply.producer_properties, **how.properties}
        id_ = task_id(f"g-{self.name}", self.name, number)
        kernel = AttemptLoop(
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

    def run(
        self, directory: Path, *args: str, own: bool = True, timeout: int = 60, **until: Any
    ) -> Ran:
        path = directory / "job.yaml"
        job = {
            "name": self.name,
            "config": self.config,
            "spark": {"master": "local[2]"},
            "until": until,
        }
        path.write_text(json.dumps(job))  # which is YAML, too
        group = ["--group-id", f"g-{self.name}"] if own else []
        where = [
            "--context",
            f"sandbox-{self.cluster.spec.name}",
            "--timeout",
            str(timeout),
            *group,
        ]
        return connectctl(*where, "run", str(path), "-o", "json", *args)
