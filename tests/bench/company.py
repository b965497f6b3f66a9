"""The topics of a company's Connect cluster as its workers would have written them, at any size.

What is written is what Kafka's own classes write (``KafkaConfigBackingStore``,
``KafkaStatusBackingStore``): the keys, the order of the fields, and JSON without blanks.
Configurations have the size of those of change data capture: some 25 properties, which each task
repeats.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

SOURCE, SINK = (
    "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "org.apache.kafka.connect.file.FileStreamSinkConnector",
)
GROUP = "connect-company"
TOPICS = {"config": f"{GROUP}-config", "offsets": f"{GROUP}-offsets", "status": f"{GROUP}-status"}
_PARTITIONS = {"config": 1, "offsets": 25, "status": 5}
Pair = tuple[str, str | None]


def spelled(value: Any) -> str:
    """JSON as Connect's converter writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@dataclass
class Company:
    """``connectors`` connectors with ``tasks`` tasks among them, on workers at ``addresses``; every
    fifth is a sink.
    """

    connectors: int
    tasks: int
    addresses: list[str] = field(default_factory=list)
    failed: int = 0
    """So many connectors have a task that failed, with a trace."""

    def names(self) -> Iterator[str]:
        """The connectors' names."""
        return (f"inventory-{n:05}" for n in range(self.connectors))

    def count(self, number: int) -> int:
        """How many tasks a connector has."""
        return self.tasks // self.connectors + (number < self.tasks % self.connectors)

    def config(self, number: int) -> dict[str, str]:
        """A connector's configuration."""
        name, sink = f"inventory-{number:05}", number % 5 == 4
        table = f"public.orders_{number:05}"
        common = {
            "connector.class": SINK if sink else SOURCE,
            "tasks.max": str(max(1, self.count(number))),
            "file": f"/data/{name}.txt",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
            "errors.tolerance": "none",
            "errors.log.enable": "true",
            "database.hostname": f"db-{number % 97}.internal",
            "database.port": "5432",
            "database.user": "connect",
            "database.password": "${file:/etc/connect/secrets.properties:db.password}",
            "database.dbname": f"orders{number % 97}",
            "table.include.list": f"{table},{table}_items,{table}_history",
            "slot.name": f"slot_{number:05}",
            "plugin.name": "pgoutput",
            "snapshot.mode": "initial",
            "heartbeat.interval.ms": "10000",
            "decimal.handling.mode": "string",
        }
        own = (
            {"topics": f"orders-{number - 1:05}"}
            if sink
            else {
                "topic": f"orders-{number:05}",
                "producer.override.linger.ms": "50",
                "topic.prefix": name,
            }
        )
        return common | own | {"name": name}

    def task_config(self, number: int, task: int) -> dict[str, str]:
        """The configuration of one of its tasks."""
        config = self.config(number)
        return config | {
            "task.class": config["connector.class"].replace("Connector", "Task"),
            "task.id": str(task),
        }

    def config_topic(self) -> Iterator[Pair]:
        """All records of the config topic, in an order in which a leader writes them."""
        yield (
            "session-key",
            spelled(
                {"key": "GSTK" * 11, "algorithm": "HmacSHA256", "creation-timestamp": 1795180458017}
            ),
        )
        for number, name in enumerate(self.names()):
            yield f"connector-{name}", spelled({"properties": self.config(number)})
            for task in range(self.count(number)):
                yield f"task-{name}-{task}", spelled({"properties": self.task_config(number, task)})
            yield f"commit-{name}", spelled({"tasks": self.count(number)})
            if number % 7 == 0:
                yield f"target-state-{name}", spelled({"state": "STARTED", "state.v2": "STARTED"})

    def part_of(self, number: int, task: int = -1) -> int:
        """The worker that has a connector, or a task of it."""
        return (number if task < 0 else number * 7 + task) % len(self.addresses)

    def status(self, number: int, task: int = -1) -> dict[str, Any]:
        """What the status topic says of a part."""
        broken = task == 0 and number < self.failed
        trace = (
            "org.apache.kafka.connect.errors.ConnectException: lost\n\tat X\nCaused by: "
            "java.io.IOException: disk\n"
        )
        return {
            "state": "FAILED" if broken else "RUNNING",
            "trace": trace if broken else None,
            "worker_id": self.addresses[self.part_of(number, task)],
            "generation": 6,
            "version": "4.3.1",
        }

    def status_topic(self) -> Iterator[Pair]:
        """All records of the status topic."""
        for number, name in enumerate(self.names()):
            yield f"status-connector-{name}", spelled(self.status(number))
            for task in range(self.count(number)):
                yield f"status-task-{name}-{task}", spelled(self.status(number, task))
            topic = f"orders-{number:05}"
            said = {"name": topic, "connector": name, "task": 0, "discoverTimestamp": 1795180575223}
            yield f"status-topic-{topic}:connector-{name}", spelled({"topic": said})

    def offsets_topic(self) -> Iterator[Pair]:
        """One source offset of each source connector."""
        for number, name in enumerate(self.names()):
            if number % 5 != 4:
                yield (
                    spelled([name, {"filename": f"/data/{name}.txt"}]),
                    spelled({"position": number}),
                )

    def expanded(self) -> dict[str, Any]:
        """The answer to ``GET /connectors?expand=status&expand=info``."""
        return {name: self._expanded(number, name) for number, name in enumerate(self.names())}

    def _expanded(self, number: int, name: str) -> dict[str, Any]:
        kind = "sink" if number % 5 == 4 else "source"
        tasks = range(self.count(number))
        said = [{"id": t, **_as_rest(self.status(number, t))} for t in tasks]
        return {
            "info": {
                "name": name,
                "config": self.config(number),
                "tasks": [{"connector": name, "task": t} for t in tasks],
                "type": kind,
            },
            "status": {
                "name": name,
                "connector": _as_rest(self.status(number)),
                "tasks": said,
                "type": kind,
            },
        }

    def assigned(self) -> list[dict[str, list[int]]]:
        """What the group's assignment gives to each worker: connectors with tasks, -1 for the
        Connector itself.
        """
        found: list[dict[str, list[int]]] = [{} for _ in self.addresses]
        for number, name in enumerate(self.names()):
            for task in range(-1, self.count(number)):
                found[self.part_of(number, task)].setdefault(name, []).append(task)
        return found

    def write(self, bootstrap: str) -> int:
        """Make the three topics and fill them; gives the end of the config topic."""
        made = {
            "config": self.config_topic(),
            "offsets": self.offsets_topic(),
            "status": self.status_topic(),
        }
        create(bootstrap, {TOPICS[role]: _PARTITIONS[role] for role in made})
        return sum([produce(bootstrap, TOPICS[role], pairs) for role, pairs in made.items()][:1])


def _as_rest(status: dict[str, Any]) -> dict[str, Any]:
    shown = {
        "state": status["state"],
        "worker_id": status["worker_id"],
        "version": status["version"],
    }
    return shown | ({"trace": status["trace"]} if status["trace"] else {})


def create(bootstrap: str, topics: dict[str, int], **config: str) -> None:
    """Make topics, by name with their partitions; compacted, where nothing else is said."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    settings = {"cleanup.policy": "compact"} | {
        name.replace("_", "."): value for name, value in config.items()
    }
    made = admin.create_topics(
        [NewTopic(name, n, -1, config=settings) for name, n in topics.items()]
    )
    for future in made.values():
        future.result()


def produce(bootstrap: str, topic: str, pairs: Iterable[Pair]) -> int:
    """Write records where Java's partitioner puts them; gives how many."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "partitioner": "murmur2_random",
            "linger.ms": 50,
            "queue.buffering.max.messages": 500_000,
        }
    )
    count = 0
    for key, value in pairs:
        if count % 10_000 == 0:
            producer.poll(0)
        while True:
            try:
                producer.produce(topic, key=key, value=value)
                break
            except BufferError:
                producer.poll(0.1)
        count += 1
    left = producer.flush()
    assert not left, f"{left} records were not written"
    return count
