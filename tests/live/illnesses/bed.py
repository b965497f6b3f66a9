"""The catalogue of ``doctor``: illnesses, each planted on a real cluster by a few lines, with the
finding that has to name it, and healthy situations that resemble them.

``docs/illnesses.md`` is made of it. The past is planted, too: records of the offsets and status
topics with the times at which workers would have written them.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer
from connectctl.ops.core.rule_docs import rule_doc
from live.real import FILE_SOURCE, Workers, create_topic, eventually, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
RUNNING = ["RUNNING", "RUNNING"]


@dataclass
class Bed:
    """Where a situation is planted: the cluster, the connector's ``name``, which is that of its
    topic as well, a directory of its own, what has to be closed in the end, and for how many seconds
    its task shall have run.
    """

    cluster: Sandbox
    name: str
    directory: Path
    closing: list[Callable[[], None]] = field(default_factory=list)
    ran_for: float = 0.0

    @property
    def rest(self) -> Workers:
        return workers(self.cluster)

    def source(self, text: str = "", **config: str) -> None:
        """Create a source of a file with ``text``."""
        file = self.directory / "in.txt"
        file.write_text(text)
        self._create(
            {"connector.class": FILE_SOURCE, "file": str(file), "topic": self.name}, config
        )

    def sink(self, file: str = "out.txt", **config: str) -> None:
        """Create a sink that writes the topic of its name to ``file``."""
        path = str(self.directory / file)
        strings = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
        sink = {"connector.class": FILE_SINK, "file": path, "topics": self.name, **strings}
        self._create(sink, config)

    def _create(self, config: dict[str, str], more: dict[str, str]) -> None:
        dotted = {key.replace("__", "."): value for key, value in more.items()}
        state = dotted.pop("state", "RUNNING")
        body = {"name": self.name, "config": config | dotted, "initial_state": state}
        assert self.rest.call("POST", "/connectors", body).status_code == 201
        path = f"/connectors/{self.name}/status"
        eventually(lambda: self.rest.call("GET", path).status_code == 200)

    def states(self, *states: str) -> None:
        """Wait until connector and tasks have ``states``."""
        eventually(lambda: self.rest.state(self.name) == list(states))

    def topic(self, *values: str, ago: float = 0.0, name: str = "") -> None:
        """Create a topic of one partition, with records that are ``ago`` seconds old."""
        topic = name or self.name
        create_topic(self.cluster.bootstrap_servers, topic, 1, "delete")
        self.write(topic, [(None, value, ago) for value in values])

    def committed(self, *ago: float) -> None:
        """Write offsets of the source, each so many seconds ago."""
        key = json.dumps([self.name, {"filename": str(self.directory / "in.txt")}])
        offsets = [(key, '{"position":0}', seconds) for seconds in ago]
        self.write(self.cluster.topics["offsets"], offsets)

    def runs_since(self, ago: float) -> None:
        """Have the task run for ``ago`` seconds, once ``age`` is called."""
        self.states(*RUNNING)
        self.ran_for = ago

    def age(self) -> None:
        """Write the task's status again with its time: a rebalance, as other connectors cause, may
        have written a newer one.
        """
        if not self.ran_for:
            return
        self.states(*RUNNING)
        task = self.rest.call("GET", f"/connectors/{self.name}/status").json()["tasks"][0]
        status = {
            "state": "RUNNING",
            "trace": None,
            "worker_id": task["worker_id"],
            "generation": 1,
        }
        record = (f"status-task-{self.name}-0", json.dumps(status), self.ran_for)
        self.write(self.cluster.topics["status"], [record])

    def writes_to_its_topic(self) -> None:
        """Write the record of the status topic that a worker writes with a task's first record."""
        value = {"name": self.name, "connector": self.name, "task": 0, "discoverTimestamp": 1}
        key = f"status-topic-{self.name}:connector-{self.name}"
        self.write(self.cluster.topics["status"], [(key, json.dumps({"topic": value}), DAY)])

    def write(self, topic: str, records: Sequence[tuple[str | None, str, float]]) -> None:
        """Write records with key, value and age in seconds, oldest first."""
        producer = Producer(
            {"bootstrap.servers": self.cluster.bootstrap_servers, "partitioner": "murmur2_random"}
        )
        for key, value, ago in sorted(records, key=lambda r: -r[2]):
            producer.produce(topic, value, key, timestamp=int((time.time() - ago) * 1000))
        assert producer.flush(300) == 0


@dataclass(frozen=True)
class Situation:
    """What is planted, in words. ``finding`` is the id that names it and ``words`` are in the first
    line; a healthy one has neither.
    """

    title: str
    plant: Callable[[Bed], None]
    finding: str = ""
    words: str = ""


def every(seconds: float, first: float, last: float) -> list[float]:
    """Return ages in seconds, from ``first`` down to ``last``."""
    return [first - n * seconds for n in range(int((first - last) / seconds) + 1)]


SITUATIONS: dict[str, Situation] = {}


def situation(title: str, finding: str = "", words: str = "") -> Callable[..., Any]:
    """Return a decorator that puts a planting function into the catalogue."""

    def put(plant: Callable[[Bed], None]) -> Callable[[Bed], None]:
        SITUATIONS[plant.__name__.replace("_", "-")] = Situation(title, plant, finding, words)
        return plant

    return put


# ---------------------------------------------------------------------------------------- sources


@situation(
    "A source committed an offset every minute for two days, and none for five hours",
    "FLOW001",
    "stands still",
)
def a_source_hangs(bed: Bed) -> None:
    bed.source()
    bed.runs_since(3 * DAY)
    bed.committed(*every(MINUTE, 2 * DAY + 5 * HOUR, 5 * HOUR))


@situation(
    "A source writes records, and its last offset is hours old",
    "FLOW002",
    "topics have new records",
)
def offsets_are_not_committed(bed: Bed) -> None:
    bed.source()
    bed.runs_since(3 * DAY)
    bed.writes_to_its_topic()
    bed.topic("one", "two")
    bed.committed(*every(MINUTE, 2 * DAY + 2 * HOUR, 2 * HOUR))


@situation("A nightly source rests by day")
def a_nightly_source(bed: Bed) -> None:
    bed.source()
    bed.runs_since(7 * DAY)
    nights = [every(MINUTE, n * DAY + 13 * HOUR, n * DAY + 12 * HOUR) for n in range(5)]
    bed.committed(*(ago for night in nights for ago in night))


@situation("A bursty source rests for hours between bursts")
def a_bursty_source(bed: Bed) -> None:
    bed.source()
    bed.runs_since(7 * DAY)
    bursts = [every(1, n * 3 * HOUR + 2 * HOUR + 9, n * 3 * HOUR + 2 * HOUR) for n in range(10)]
    bed.committed(*(ago for burst in bursts for ago in burst))


@situation("A source is paused, and committed an offset every minute before")
def a_paused_source(bed: Bed) -> None:
    bed.source(state="PAUSED")
    bed.committed(*every(MINUTE, 2 * DAY + 5 * HOUR, 5 * HOUR))
    bed.states("PAUSED")


@situation("A source is stopped, and committed an offset every minute before")
def a_stopped_source(bed: Bed) -> None:
    bed.source(state="STOPPED")
    bed.committed(*every(MINUTE, 2 * DAY + 5 * HOUR, 5 * HOUR))
    bed.states("STOPPED")


@situation("A source was resumed a moment ago, after hours of a pause")
def a_resumed_source(bed: Bed) -> None:
    bed.source()
    bed.committed(*every(MINUTE, 2 * DAY + 5 * HOUR, 5 * HOUR))
    bed.states(*RUNNING)


@situation("A source has read its file, and waits for more")
def an_idle_source(bed: Bed) -> None:
    bed.source("one\n")
    bed.states(*RUNNING)


@situation("A source committed offsets all the time, until a few minutes ago")
def a_source_between_two_commits(bed: Bed) -> None:
    bed.source()
    bed.runs_since(3 * DAY)
    bed.committed(*every(MINUTE, DAY, 4 * MINUTE))


# ------------------------------------------------------------------------------------------ sinks


@situation(
    "A sink is RUNNING, polls, and commits nothing of old records", "FLOW003", "stands still"
)
def a_sink_hangs(bed: Bed) -> None:
    bed.topic("one", "two", ago=3 * HOUR)
    bed.sink(**NEVER_FETCHES)
    bed.runs_since(2 * HOUR)


@situation("A task hangs in put, and its consumer has left the group", "FLOW006", "has 0 members")
def a_task_hangs_in_put(bed: Bed) -> None:
    pipe = bed.directory / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # opened, and never read
    bed.closing.append(lambda: os.close(reader))
    bed.topic(*["x" * 10_000] * 30)
    bed.sink(
        "pipe",
        consumer__override__max__poll__interval__ms="6000",
        consumer__override__session__timeout__ms="6000",
    )
    bed.runs_since(HOUR)
    name = bed.name

    def gone() -> bool:
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": bed.cluster.bootstrap_servers})
        future = admin.describe_consumer_groups([f"connect-{name}"])[f"connect-{name}"]
        return str(future.result().state.name) == "EMPTY"

    eventually(gone)


@situation(
    "A sink's records are not JSON, and go to its dead letter queue", "FLOW007", "dead letter"
)
def dead_letters_fill(bed: Bed) -> None:
    bed.topic("{", "[")
    bed.sink(**JSON, **TOLERANT, **dead_letter_queue(bed))
    bed.states(*RUNNING)
    eventually(lambda: ends(bed, f"{bed.name}-dead") == 2)


@situation("A connector drops what it cannot convert, and logs nothing", "CONFIG018", "silently")
def records_are_dropped(bed: Bed) -> None:
    bed.topic("{", "[")
    bed.sink(**JSON, **TOLERANT)
    bed.states(*RUNNING)


@situation("A sink has processed everything")
def a_sink_without_lag(bed: Bed) -> None:
    bed.topic("one", "two")
    bed.sink()
    bed.states(*RUNNING)


@situation("Records arrived a moment ago, and the sink has not committed yet")
def a_sink_with_new_records(bed: Bed) -> None:
    bed.topic("one", "two")
    bed.sink(**NEVER_FETCHES)
    bed.runs_since(2 * HOUR)


@situation("A new sink begins with old records")
def a_sink_that_begins(bed: Bed) -> None:
    bed.topic("one", "two", ago=3 * HOUR)
    bed.sink(**NEVER_FETCHES)
    bed.states(*RUNNING)


@situation("A sink is paused, and records wait")
def a_paused_sink(bed: Bed) -> None:
    bed.topic("one", "two", ago=3 * HOUR)
    bed.sink(state="PAUSED")
    bed.states("PAUSED")


@situation("The newest dead letter is of yesterday")
def old_dead_letters(bed: Bed) -> None:
    bed.topic("one")
    bed.topic("{", ago=DAY, name=f"{bed.name}-dead")
    bed.sink(**TOLERANT, **dead_letter_queue(bed))
    bed.states(*RUNNING)


@situation("A connector logs the records that it cannot convert")
def dropped_records_are_logged(bed: Bed) -> None:
    bed.topic("one")
    bed.sink(**TOLERANT, errors__log__enable="true")
    bed.states(*RUNNING)


# -------------------------------------------------------------------------------------- and others


@situation("A task fails when it starts", "FAIL001", "no-such-directory")
def a_task_fails(bed: Bed) -> None:
    bed.topic("one")
    bed.sink("no-such-directory/out.txt")
    bed.states("RUNNING", "FAILED")


@situation(
    "Compaction will take the task configurations: the same configuration was put again",
    "TASK010",
    "no task configurations",
)
def task_configurations_precede_their_connector(bed: Bed) -> None:
    bed.source()
    bed.states(*RUNNING)
    path = f"/connectors/{bed.name}/config"
    bed.rest.call("PUT", path, bed.rest.call("GET", path).json())


NEVER_FETCHES = {
    "consumer__override__fetch__min__bytes": "50000000",
    "consumer__override__fetch__max__wait__ms": "600000",
}
JSON = {"value__converter": "org.apache.kafka.connect.json.JsonConverter"}
TOLERANT = {"errors__tolerance": "all"}


def dead_letter_queue(bed: Bed) -> dict[str, str]:
    prefix = "errors__deadletterqueue__topic"
    return {f"{prefix}__name": f"{bed.name}-dead", f"{prefix}__replication__factor": "1"}


def ends(bed: Bed, topic: str) -> int:
    """Return how many records the one partition of ``topic`` has had, 0 without the topic."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer({"bootstrap.servers": bed.cluster.bootstrap_servers, "group.id": bed.name})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)[1])
    except KafkaException:
        return 0
    finally:
        consumer.close()


def page() -> str:
    """Return ``docs/illnesses.md``."""
    ill = [
        f"| {s.title} | [{s.finding}]({_section(s.finding)}) | {s.words} |"
        for s in SITUATIONS.values()
        if s.finding
    ]
    well = [f"- {s.title}." for s in SITUATIONS.values() if not s.finding]
    return PAGE.format(ill="\n".join(ill), well="\n".join(well))


def _section(id: str) -> str:
    """Return the link to the section of a finding, with the anchor that GitHub gives its title."""
    doc = rule_doc(id)
    words = re.sub(r"[^\w -]", "", f"{doc.id} {doc.title}".lower()).replace(" ", "-")
    return f"findings/{doc.file}#{words}"


PAGE = """# Illnesses that doctor names

Each is planted on a real cluster by `tests/live/illnesses.py`, beside the healthy situations below, and `connectctl doctor`
has to name it in the first line of a finding.

| planted | finding | its line has |
| --- | --- | --- |
{ill}

## Healthy situations

Each resembles an illness, and `doctor` reports neither an error nor a warning about it:

{well}
"""
