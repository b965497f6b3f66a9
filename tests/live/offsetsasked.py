"""What the tasks of a connector ask a worker for, and what they are given: seen in what they do
with it.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from live import real
from live.offsetstable import FILE, MIRROR, VERIFIABLE
from live.real import create_topic, write

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

Asked = dict[str, Any]
"""Offsets that were given by source partitions, as JSON texts; None for none."""
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
LINES = 3


def text_of(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def committed(cluster: Sandbox, topic: str) -> list[tuple[Any, Any]]:
    """Every committed key and value of a topic of one partition, in order; none while the topic is
    not there.
    """
    if (
        topic
        not in AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        .list_topics(timeout=120)
        .topics
    ):
        return []
    options = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": "x",
        "enable.partition.eof": True,
    }
    consumer = Consumer(
        options | {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    )
    place = TopicPartition(topic, 0, 0)
    consumer.assign([place])
    _, end = consumer.get_watermark_offsets(place, timeout=120)
    found: list[tuple[Any, Any]] = []
    while True:
        for message in consumer.consume(1000, 0.2):
            # What never rests has no end.
            if message.error() is not None or message.offset() >= end:
                consumer.close()
                return found
            found.append((json.loads(message.key() or b"null"), json.loads(message.value())))


def values_of(cluster: Sandbox, topic: str) -> list[Any]:
    """Every committed value of a topic, in order."""
    return [value for _, value in committed(cluster, topic)]


class Asking:
    """The tasks of one connector. ``directory`` is for their files."""

    def __init__(self, cluster: Sandbox, directory: Path, word: str):
        self.cluster, self.directory, self.word, self.seen = cluster, directory, word, 0

    def config(self, name: str) -> dict[str, str]:
        """What a connector called ``name`` needs besides."""
        return {"topic": f"{name}-topic"}

    def asked(self, name: str, config: dict[str, str], before: Asked) -> Asked:
        """What its tasks were given when they were started last, which was after the last question;
        ``before`` is the answer to that.
        """
        raise NotImplementedError

    def before_undo(self) -> None:
        """Make what is to be read again as long as what was read last."""


class StandIns(Asking):
    """They write down what they are given."""

    def config(self, name: str) -> dict[str, str]:
        return super().config(name) | {
            "report": str(self._report(name)),
            "tables.of.the.database": "db.a,db.b,db.c",
        }

    def _report(self, name: str) -> Path:
        return self.directory / f"{name}.report"

    def asked(self, name: str, config: dict[str, str], before: Asked) -> Asked:
        path = self._report(name)

        def more() -> list[str]:
            lines = path.read_text().splitlines() if path.exists() else []
            return lines if len(lines) > self.seen else []

        lines = real.eventually(more)
        self.seen = len(lines)
        return {text_of(partition): offset for partition, offset in json.loads(lines[-1])}


class Files(Asking):
    """Lines of four bytes are numbered: the first one that comes tells from where its file is
    read.
    """

    def __init__(self, cluster: Sandbox, directory: Path, word: str):
        super().__init__(cluster, directory, word)
        self.lines = dict.fromkeys((str(directory / "a.txt"), str(directory / "b.txt")), 0)
        for path, count in zip(self.lines, (LINES, 2 * LINES), strict=True):
            self._more(path, count)

    def _more(self, path: str, count: int) -> None:
        numbers = range(self.lines[path], self.lines[path] + count)
        with Path(path).open("a") as file:
            file.write("".join(f"{Path(path).name[0]}{n:02}\n" for n in numbers))
        self.lines[path] = numbers.stop

    def before_undo(self) -> None:
        """An offset beyond the end of a file has Kafka's task ask for more without a pause, also
        after its deletion.
        """
        for path, count in self.lines.items():
            self._more(path, max(self.lines.values()) - count)

    def asked(self, name: str, config: dict[str, str], before: Asked) -> Asked:
        self._more(config["file"], 1)
        last = f"{Path(config['file']).name[0]}{self.lines[config['file']] - 1:02}"

        def came() -> list[str]:
            values = values_of(self.cluster, config["topic"])[self.seen :]
            return values if last in values else []

        values = real.eventually(came)
        self.seen += len(values)
        firsts = {value[0]: int(value[1:]) for value in reversed(values)}
        return {
            text_of({"filename": str(self.directory / f"{file}.txt")}): {"position": 4 * first}
            if first
            else None
            for file, first in firsts.items()
        }


class Mirrors(Asking):
    """Records are numbered: the first one that comes tells from where its topic is copied."""

    def __init__(self, cluster: Sandbox, directory: Path, word: str):
        super().__init__(cluster, directory, word)
        self.count = {
            create_topic(cluster.bootstrap_servers, f"{each}-{word}", 1, "delete"): 0
            for each in "xy"
        }
        self.copied: dict[str, int] = {}
        for topic in self.count:
            self._more(topic, LINES)

    def _more(self, topic: str, count: int) -> None:
        numbers = range(self.count[topic], self.count[topic] + count)
        write(self.cluster.bootstrap_servers, topic, *((None, n) for n in numbers))
        self.count[topic] = numbers.stop

    def config(self, name: str) -> dict[str, str]:
        off = (
            "heartbeats.replication",
            "emit.offset-syncs",
            "refresh.topics",
            "sync.topic.configs",
            "sync.topic.acls",
        )
        clusters = {
            f"{side}.cluster.{key}": value
            for side, alias in (("source", "eu"), ("target", "here"))
            for key, value in (
                ("alias", alias),
                ("bootstrap.servers", self.cluster.bootstrap_servers),
            )
        }
        converters = dict.fromkeys(("key.converter", "value.converter"), BYTES)
        return (
            clusters
            | converters
            | {f"{each}.enabled": "false" for each in off}
            | {"replication.factor": "1"}
        )

    def asked(self, name: str, config: dict[str, str], before: Asked) -> Asked:
        found: Asked = {}
        for topic in self.count:
            prefix = topic[0]
            if prefix not in config["topics"].replace(self.word, ""):
                continue
            self._more(topic, 1)
            remote = f"{config['source.cluster.alias']}.{topic}"
            seen, last = self.copied.get(remote, 0), self.count[topic] - 1

            def came(remote: str = remote, seen: int = seen, last: int = last) -> list[int]:
                values = values_of(self.cluster, remote)[seen:]
                return values if last in values else []

            values = real.eventually(came)
            self.copied[remote] = seen + len(values)
            partition = {"cluster": config["source.cluster.alias"], "topic": topic, "partition": 0}
            found[text_of(partition)] = {"offset": values[0] - 1} if values[0] else None
        return found


class Verifiables(Asking):
    """Each task numbers its records, and never rests: those that go on after a second are the ones
    that are there.
    """

    def config(self, name: str) -> dict[str, str]:
        return super().config(name) | {"throughput": "4"}

    def asked(self, name: str, config: dict[str, str], before: Asked) -> Asked:
        time.sleep(1)
        until = len(real.eventually(lambda: committed(self.cluster, config["topic"])))
        records = real.eventually(lambda: self._enough(config["topic"], until))
        here = {task for task, _ in records[until:]}
        firsts = {task: number for task, number in reversed(records[self.seen :]) if task in here}
        self.seen = len(records)
        return {
            text_of({"id": task}): {"seqno": first - 1} if first else None
            for task, first in firsts.items()
        }

    def _enough(self, topic: str, until: int) -> list[tuple[int, int]]:
        records = committed(self.cluster, topic)
        return records if len(records) > until + 10 else []


KINDS = {FILE: Files, MIRROR: Mirrors, VERIFIABLE: Verifiables}
RESTLESS = (VERIFIABLE,)
"""What they read goes on, and so do their offsets."""
