"""What the catalogue of ``doctor`` is made with: a situation, and where it is planted.

The past is planted, too: records of the workers' topics, and commits of groups, with the times at
which they would have been written.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.kafka.offset_commits import TOPIC as COMMITS
from connectctl.ops.kafka.partitioner import coordinator_partition
from live.real import FILE_SOURCE, Workers, create_topic, eventually, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
VERIFIABLE_SOURCE = "org.apache.kafka.connect.tools.VerifiableSourceConnector"
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
RUNNING = ["RUNNING", "RUNNING"]
STRINGS = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
WRITES_INTERNAL_TOPICS = "__admin_client"
"""The client id whose records brokers take for their own topics."""
LONGEST_TRANSACTION = 900_000
"""``transaction.max.timeout.ms`` of brokers, by default."""


@dataclass
class Bed:
    """Where a situation is planted: the cluster, the connector's ``name``, which is that of its
    topic as well, a directory of its own, what has to be closed in the end, the last first, the
    connectors to delete, and what is done before each look of doctor. ``options`` are those of
    connectctl.
    """

    cluster: Sandbox
    name: str
    directory: Path
    closing: list[Callable[[], None]] = field(default_factory=list)
    connectors: list[str] = field(default_factory=list)
    repeated: list[Callable[[], None]] = field(default_factory=list)
    options: tuple[str, ...] = ()

    @property
    def rest(self) -> Workers:
        return workers(self.cluster)

    @cached_property
    def admin(self) -> AdminClient:
        """The client; what it was asked is answered only as long as there is a reference to it."""
        return AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})

    def source(self, text: str = "", **config: str) -> None:
        """Create a source of a file with ``text``."""
        file = self.directory / "in.txt"
        file.write_text(text)
        self.create(FILE_SOURCE, {"file": str(file), "topic": self.name}, **config)

    def numbers(self, **config: str) -> None:
        """Create a source that writes numbers to the topic of its name."""
        self.create(VERIFIABLE_SOURCE, {"topic": self.name, "throughput": "5"}, **config)

    def sink(
        self, file: str = "out.txt", more: Mapping[str, str] | None = None, **config: str
    ) -> None:
        """Create a sink that writes the topic of its name to ``file``."""
        path = {"file": str(self.directory / file), "topics": self.name}
        self.create(FILE_SINK, path | STRINGS | dict(more or {}), **config)

    def create(self, plugin: str, config: Mapping[str, str], **more: str) -> None:
        """Create a connector; of names in ``more``, __ is a dot."""
        dotted = {key.replace("__", "."): value for key, value in more.items()}
        name, state = dotted.pop("name", self.name), dotted.pop("state", "RUNNING")
        whole = {"connector.class": plugin, **config, **dotted}
        body = {"name": name, "config": whole, "initial_state": state}
        answer = self.rest.call("POST", "/connectors", body)
        assert answer.status_code == 201, answer.text
        self.connectors.append(name)

    def created_ago(
        self, ago: float, plugin: str, config: Mapping[str, str], task_class: str = ""
    ) -> None:
        """Write the records of the config topic that create a connector, ``ago`` seconds old, and of
        its one task if ``task_class`` is its class: the worker has nothing to add then.
        """
        whole = {"name": self.name, "connector.class": plugin, "tasks.max": "1", **config}
        records = [(f"connector-{self.name}", json.dumps({"properties": whole}), ago)]
        if task_class:
            task = {"properties": {**whole, "task.class": task_class}}
            records.append((f"task-{self.name}-0", json.dumps(task), ago))
            records.append((f"commit-{self.name}", '{"tasks":1}', ago))
        self.write(self.cluster.topics["config"], records)
        self.connectors.append(self.name)

    def configure(self, **more: str) -> None:
        """Change the connector's configuration."""
        path = f"/connectors/{self.name}/config"
        dotted = {key.replace("__", "."): value for key, value in more.items()}
        answer = self.rest.call("PUT", path, self.rest.call("GET", path).json() | dotted)
        assert answer.status_code == 200, answer.text

    def states(self, *states: str, name: str = "") -> None:
        """Wait until connector and tasks have ``states``."""
        path = f"/connectors/{name or self.name}/status"

        def reached() -> bool:
            answer = self.rest.call("GET", path)
            if answer.status_code != 200:
                return False
            status = answer.json()
            return [each["state"] for each in (status["connector"], *status["tasks"])] == [*states]

        eventually(reached)

    def runs(self, tasks: int = 1) -> None:
        """Wait until connector and tasks run."""
        self.states(*["RUNNING"] * (tasks + 1))

    def topic(self, *values: str, ago: float = 0.0, name: str = "", partitions: int = 1) -> None:
        """Create a topic, with these records in each partition that are ``ago`` seconds old."""
        topic = name or self.name
        create_topic(self.cluster.bootstrap_servers, topic, partitions, "delete")
        for partition in range(partitions):
            self.write(topic, [(None, value, ago) for value in values], partition)

    def empty(self) -> None:
        """Delete the records of the topic's first partition."""
        end = {TopicPartition(self.name, 0): OffsetSpec.latest()}
        ends = [
            TopicPartition(self.name, 0, future.result().offset)
            for future in self.admin.list_offsets(end).values()
        ]
        for deleted in self.admin.delete_records(ends).values():
            deleted.result()

    def committed(self, *ago: float) -> None:
        """Write offsets of the source, each so many seconds ago."""
        key = json.dumps([self.name, {"filename": str(self.directory / "in.txt")}])
        offsets = [(key, '{"position":0}', seconds) for seconds in ago]
        self.write(self.cluster.topics["offsets"], offsets)

    def sink_committed(self, offset: int, partition: int = 0) -> None:
        """Commit an offset of the sink's group, which has no members yet."""
        at = TopicPartition(self.name, partition, offset)
        group = ConsumerGroupTopicPartitions(f"connect-{self.name}", [at])
        for future in self.admin.alter_consumer_group_offsets([group]).values():
            future.result()

    def sink_had_committed(self, offset: int, ago: float) -> None:
        """Write the record of a commit of the sink's group that is ``ago`` seconds old."""
        group = f"connect-{self.name}"
        at = int((time.time() - ago) * 1000)
        key = b"\0\1" + _text(group) + _text(self.name) + (0).to_bytes(4, "big")
        value = (3).to_bytes(2, "big") + offset.to_bytes(8, "big") + b"\xff" * 4 + b"\0\0"
        partitions = len(self.admin.list_topics(COMMITS, timeout=60).topics[COMMITS].partitions)
        producer = Producer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "client.id": WRITES_INTERNAL_TOPICS,
            }
        )
        number = coordinator_partition(group, partitions)
        producer.produce(COMMITS, value + at.to_bytes(8, "big"), key, number, timestamp=at)
        assert producer.flush(300) == 0

    def commits_on(self, offset: int) -> None:
        """Have the sink commit one record more before each look, from ``offset`` on."""
        offsets = count(offset)
        self.repeated.append(lambda: self.sink_had_committed(next(offsets), 0.0))

    def runs_since(self, ago: float) -> None:
        """Have the task run for ``ago`` seconds at each look: a rebalance, as other connectors cause,
        may have written a newer status.
        """

        def written_again() -> None:
            self.runs()
            self.had_status("RUNNING", ago)

        self.runs()
        self.repeated.append(written_again)

    def before_look(self) -> None:
        """Do what is done before each look."""
        for each in self.repeated:
            each()

    def had_status(self, state: str, *ago: float, trace: str | None = None) -> None:
        """Write statuses of the task, each so many seconds ago."""
        answer = self.rest.call("GET", f"/connectors/{self.name}/status")
        tasks = answer.json()["tasks"] if answer.status_code == 200 else []
        worker = tasks[0]["worker_id"] if tasks else self.cluster.rest_urls[0].partition("//")[2]
        status = {"state": state, "trace": trace, "worker_id": worker, "generation": 1}
        records = [(f"status-task-{self.name}-0", json.dumps(status), each) for each in ago]
        self.write(self.cluster.topics["status"], records)

    def writes_to_its_topic(self) -> None:
        """Write the record of the status topic that a worker writes with a task's first record."""
        value = {"name": self.name, "connector": self.name, "task": 0, "discoverTimestamp": 1}
        key = f"status-topic-{self.name}:connector-{self.name}"
        self.write(self.cluster.topics["status"], [(key, json.dumps({"topic": value}), DAY)])

    def write(
        self,
        topic: str,
        records: Sequence[tuple[str | None, str, float]],
        partition: int | None = None,
    ) -> None:
        """Write records with key, value and age in seconds, oldest first."""
        producer = Producer(
            {"bootstrap.servers": self.cluster.bootstrap_servers, "partitioner": "murmur2_random"}
        )
        where = {} if partition is None else {"partition": partition}
        for key, value, ago in sorted(records, key=lambda r: -r[2]):
            at = int((time.time() - ago) * 1000)
            producer.produce(topic, value, key, timestamp=at, **where)
        assert producer.flush(300) == 0

    def producer(self, id: str = "") -> Producer:
        """Return an initialised producer with the transactional id of the task, or with ``id``; what
        had it before is fenced.
        """
        config = {
            "bootstrap.servers": self.cluster.bootstrap_servers,
            "transactional.id": id or task_id(self.cluster.group_id, self.name, 0),
            "transaction.timeout.ms": LONGEST_TRANSACTION,
        }
        producer = Producer(config)
        producer.init_transactions(120)
        return producer

    def open_transaction(self, topic: str, id: str = "") -> Producer:
        """Write a record in a transaction that stays open until the situation is closed."""
        producer = self.producer(id)
        producer.begin_transaction()
        producer.produce(topic, "open", "key")
        assert producer.flush(300) == 0
        self.closing.append(lambda: producer.abort_transaction(120))
        return producer

    def close(self) -> None:
        """Undo what was done, the last first, and delete the connectors."""
        for close in reversed(self.closing):
            close()
        for name in self.connectors:
            self.rest.delete(name)


def _text(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


class Where(StrEnum):
    """The clusters on which situations are planted: side by side on one that is shared, and one after
    the other where they concern a group of workers, or three brokers.
    """

    CONNECTORS = "connectors"
    WORKERS = "workers"
    BROKERS = "brokers"


@dataclass(frozen=True)
class Situation:
    """What is planted, in words. ``finding`` is the id that names it and ``words`` are in the first
    line; a healthy one has neither. ``also`` are ids of what it causes besides.
    """

    title: str
    plant: Callable[[Bed], None]
    finding: str = ""
    words: str = ""
    where: Where = Where.CONNECTORS
    also: frozenset[str] = frozenset()


SITUATIONS: dict[str, Situation] = {}


def situation(
    title: str,
    finding: str = "",
    words: str = "",
    *,
    where: Where = Where.CONNECTORS,
    also: Sequence[str] = (),
) -> Callable[..., Any]:
    """Return a decorator that puts a planting function into the catalogue."""

    def put(plant: Callable[[Bed], None]) -> Callable[[Bed], None]:
        name = plant.__name__.replace("_", "-")
        assert name not in SITUATIONS
        SITUATIONS[name] = Situation(title, plant, finding, words, where, frozenset(also))
        return plant

    return put


def every(seconds: float, first: float, last: float) -> list[float]:
    """Return ages in seconds, from ``first`` down to ``last``."""
    return [first - n * seconds for n in range(int((first - last) / seconds) + 1)]
