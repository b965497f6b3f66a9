"""Another number of tasks for a connector that runs: for how long nothing is written, beside a real
worker.

    python tests/bench/reconfigure.py [--tasks 10,100]

Every task writes one record a second, exactly once, each in a transaction of its own; then
``tasks.max`` is one more. On a real worker (its VerifiableSource) that is a PUT of the
configuration: as it comes, and with the admin client that fences as an operator makes it quick
(``TUNED``). With ``connectctl run`` (a source in Python that counts, on Spark ``local[2]``) it is a
second run of the changed job, from which the first one hears that its time is over.

Printed is, by the broker's own times of committed records: the silence, the longest time around the
change without a record of any task; the longest gap of one task, of the median task and of the
worst; and when the task that is new had written, from the moment of the command. A connector that
fails is silent to the end, which is said.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from connectctl.ops.sandbox import cluster, launch

NAME = "reconfigure"
STEADY = 10.0
"""Seconds of work before the change, and after it."""
PATIENCE = 300.0
LOOK = 2.0
"""Seconds that a look takes at most: tasks that write without a pause have no end."""
JVM = (
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-Djava.awt.headless=true",
)
"""Those of Kafka's own start scripts, and not a sandbox's, which is made for a short life."""
COUNTING = """
import time

from connectctl.ops.task_runtime.spi.connector import SourceConnector, SourceRecord, SourceTask


class Task(SourceTask):
    def start(self, configs):
        self.task, self.topic = int(configs["task"]), configs["topic"]
        self.partition, self.due = {"task": self.task}, 0.0
        self.next = (self.context.offsets.offset(self.partition) or {}).get("next", 0)

    def poll(self):
        if time.monotonic() < self.due:
            return None
        self.due = time.monotonic() + 1.0
        number, self.next = self.next, self.next + 1
        return [SourceRecord(self.partition, {"next": self.next}, self.topic, str(number), str(self.task))]


class Counting(SourceConnector):
    task = Task

    def task_configs(self, max_tasks):
        return [{**self.configs, "task": str(n)} for n in range(max_tasks)]
"""
TUNED = {"admin.override.retry.backoff.ms": "1", "admin.override.retry.backoff.max.ms": "1"}
"""The admin client of a connector fences its tasks, and asks again after 100 ms where nothing is
said.
"""
Seen = list[tuple[float, int]]
"""When, in seconds since the epoch, and of which task."""


class Topic:
    """The records of one connector, as they are committed."""

    def __init__(self, bootstrap: str, name: str):
        admin = AdminClient({"bootstrap.servers": bootstrap})
        new = NewTopic(name, 1, 1, config={"message.timestamp.type": "LogAppendTime"})
        admin.create_topics([new])[name].result()
        client = {
            "bootstrap.servers": bootstrap,
            "group.id": NAME,
            "isolation.level": "read_committed",
        }
        self._consumer = Consumer(
            client | {"enable.partition.eof": True, "enable.auto.commit": False}
        )
        self._consumer.assign([TopicPartition(name, 0, 0)])
        self.name = name
        self.seen: Seen = []

    def look(self) -> Seen:
        """All records so far."""
        late = time.monotonic() + LOOK
        while time.monotonic() < late and (messages := self._consumer.consume(1000, timeout=0.2)):
            for message in messages:
                error = message.error()
                if error is None:
                    key = json.loads(message.key())  # both sides have the task's number there
                    self.seen.append(
                        (
                            message.timestamp()[1] / 1000,
                            int(key["payload"] if isinstance(key, dict) else key),
                        )
                    )
                else:
                    # The end, which is told again and again; behind it there may be more by now.
                    assert error.code() == KafkaError._PARTITION_EOF, error
        return self.seen

    def wait(self, tasks: int, since: float, failed: Callable[[], str | None]) -> str | None:
        """Until so many tasks have written after ``since``, and a while longer; why not, where that
        will never be.
        """
        late = time.monotonic() + PATIENCE
        while len({task for at, task in self.look() if at >= since}) < tasks:
            if why := failed():
                return why
            if time.monotonic() > late:
                return f"not all of {tasks} tasks have written after {PATIENCE:g} s"
            time.sleep(0.5)
        time.sleep(STEADY)
        self.look()
        return None


@dataclass(frozen=True)
class Change:
    """A change: asked for at ``at``, by which there were ``before`` tasks; watched until
    ``end``.
    """

    seen: Seen
    at: float
    before: int
    end: float
    failure: str | None = None

    def gap(self, times: list[float]) -> float:
        """The longest gap in ``times`` that touches the time since shortly before the change."""
        if self.failure:
            times = [*times, self.end]
        return max((b - a for a, b in pairwise(sorted(times)) if b >= self.at), default=0.0)

    def told(self) -> str:
        """The change in a line."""
        by_task: dict[int, list[float]] = defaultdict(list)
        for at, task in self.seen:
            by_task[task].append(at)
        own = [self.gap(by_task[task]) for task in range(self.before)]
        silence = self.gap([at for at, _ in self.seen])
        gaps = (
            f"silence {silence:6.1f} s   one task: median {statistics.median(own):6.1f} s, "
            f"worst {max(own):6.1f} s"
        )
        if self.failure:
            return f"{gaps}   to the end of the watch: {self.failure}"
        return f"{gaps}   the added task wrote after {min(by_task[self.before]) - self.at:6.1f} s"


def tuned(sandbox: cluster.Sandbox, directory: Path, tasks: int) -> Change:
    """A worker's connector, tuned."""
    return theirs(sandbox, directory, tasks, TUNED)


def theirs(
    sandbox: cluster.Sandbox,
    directory: Path,
    tasks: int,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Change:
    """A worker's connector."""
    topic = Topic(sandbox.bootstrap_servers, f"theirs-{tasks}")
    url = f"{sandbox.rest_urls[0]}/connectors/{topic.name}"
    config = {
        "connector.class": "org.apache.kafka.connect.tools.VerifiableSourceConnector",
        "topic": topic.name,
        "throughput": "1",
        **more,
    }

    def put(count: int) -> None:
        httpx.put(
            f"{url}/config", json=config | {"tasks.max": str(count)}, timeout=100
        ).raise_for_status()

    def failed() -> str | None:
        answer = httpx.get(f"{url}/status", timeout=100)
        states = (
            [task for task in answer.json()["tasks"] if task["state"] == "FAILED"]
            if answer.is_success
            else []
        )
        if not states:
            return None
        return (
            f"{len(states)} tasks FAILED {time.time() - began:.0f} s after it: "
            f"{cause(states[0]['trace'])}"
        )

    began = time.time()
    put(tasks)
    assert (why := topic.wait(tasks, 0.0, failed)) is None, why
    began = time.time()
    put(tasks + 1)
    why = topic.wait(tasks + 1, began, failed)
    change = Change(topic.look(), began, tasks, time.time(), why)
    httpx.delete(url, timeout=100).raise_for_status()
    return change


def cause(trace: str) -> str:
    """The first line of a Java trace, without the class."""
    return trace.splitlines()[0].rpartition("Exception: ")[2]


def ours(sandbox: cluster.Sandbox, directory: Path, tasks: int) -> Change:
    """A run, and a second one of the changed job."""
    topic = Topic(sandbox.bootstrap_servers, f"ours-{tasks}")
    with zipfile.ZipFile(directory / "counting.zip", "w") as archive:
        archive.writestr("reconfigure_counting.py", COUNTING)

    def run(count: int) -> subprocess.Popen[str]:
        job = directory / f"{topic.name}-{count}.yaml"
        config = {
            "connector.class": "reconfigure_counting:Counting",
            "topic": topic.name,
            "tasks.max": str(count),
        }
        wish: dict[str, Any] = {"name": topic.name, "config": config, "plugins": ["counting.zip"]}
        job.write_text(
            json.dumps(wish | {"spark": {"master": "local[2]"}, "until": {"forever": True}})
        )
        command = [
            sys.executable,
            "-m",
            "connectctl.cli",
            "--context",
            f"sandbox-{NAME}",
            "--group-id",
            topic.name,
        ]
        log = job.with_suffix(".log").open("w")
        return subprocess.Popen(
            [*command, "run", str(job), "--yes"], stdout=log, stderr=log, text=True
        )

    first = run(tasks)
    assert (why := topic.wait(tasks, 0.0, lambda: ended(first, directory))) is None, why
    began = time.time()
    second = run(tasks + 1)
    # The first run writes on while the second one's session opens: what counts is the number that
    # only the second has.
    why = topic.wait(tasks + 1, began, lambda: ended(second, directory))
    change = Change(topic.look(), began, tasks, time.time(), why)
    for process in (first, second):
        process.send_signal(signal.SIGTERM)
    for process in (first, second):
        process.wait(PATIENCE)
    return change


def ended(process: subprocess.Popen[str], directory: Path) -> str | None:
    """What a run said that should go on, if it does not."""
    if process.poll() is None:
        return None
    return "\n".join(log.read_text()[-2000:] for log in directory.glob("*.log"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", default="10,100")
    given = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs", flush=True)
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        launch._JVM = JVM
        for tasks in map(int, given.tasks.split(",")):
            for side, change in {
                "connectctl run": ours,
                "a worker": theirs,
                "a tuned worker": tuned,
            }.items():
                sandbox = cluster.up(cluster.SandboxSpec(name=NAME, workers=1, support="enabled"))
                try:
                    told = change(sandbox, Path(state), tasks).told()
                finally:
                    cluster.down(NAME)
                print(
                    f"{tasks:4} tasks  {side:15} {told}   load {os.getloadavg()[0]:.1f}", flush=True
                )


if __name__ == "__main__":
    main()
