"""The directory of one `connectctl run`: its job file, its topics, and how it ended."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import psutil
import pytest
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.task_runtime.job.config_topic_records import (
    ConfigTopicState,
    config_topic_state,
)
from live.real import FILE_SOURCE, Ran, connectctl, create_topic, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox


KILLED = pytest.mark.drawn(matrix="a Python worker of Spark is killed")
"""One fault for tasks of each kind, on a Spark of their own."""
SCHEMAS = Path(__file__).parents[2] / "docs/schema"


STRING = "org.apache.kafka.connect.storage.StringConverter"


class Place:
    """A file, a topic and a group of their own, and the job that carries the one to the other.

    ``program`` is what a run in a process of its own is started with.
    """

    program: Sequence[str] = ("-m", "connectctl.cli")

    def __init__(self, cluster: Sandbox, directory: Path, **more: Any):
        self.cluster, self.directory = cluster, directory
        self.name = f"run-{secrets.token_hex(4)}"
        self.group = f"g-{self.name}"
        self.file = directory / "in.txt"
        self.topic = create_topic(cluster.bootstrap_servers, f"{self.name}-data", 1, "delete")
        self.kafka = Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
        self.config = {
            "connector.class": FILE_SOURCE,
            "file": str(self.file),
            "topic": self.topic,
            "value.converter": STRING,
        } | more
        self.written = 0
        self.plugins: list[str] = []

    def job(self, **until: Any) -> str:
        path = self.directory / "job.yaml"
        job = {
            "name": self.name,
            "config": self.config,
            "spark": {"master": "local[2]"},
            "until": until,
        }
        job["plugins"] = self.plugins
        path.write_text(json.dumps(job))  # which is YAML, too
        return str(path)

    def append(self, count: int) -> None:
        with self.file.open("a") as file:
            file.writelines(f"line {n}\n" for n in range(self.written, self.written + count))
        self.written += count

    def args(self, *args: str, own: bool = True) -> list[str]:
        group = ["--group-id", self.group] if own else []
        return ["--context", f"sandbox-{self.cluster.spec.name}", *group, "run", *args]

    def run(self, *args: str, own: bool = True, **until: Any) -> Ran:
        return connectctl(
            *self.args(self.job(**until or {"idle": "2s"}), "--yes", "-o", "json", *args, own=own)
        )

    @contextmanager
    def running(self, *more: str, own: bool = True) -> Iterator[subprocess.Popen[str]]:
        """A run without an end, in a process of its own."""
        args = self.args(self.job(forever=True), "--yes", "-o", "json", *more, own=own)
        command = [sys.executable, *self.program, *args]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def seen(self) -> list[str]:
        """What a reader with read_committed sees."""
        image = self.kafka.image([self.topic], patience=30, superseded=True)[self.topic]
        return [
            (r.value or b"").decode()
            for r in sorted((*image.latest, *image.superseded), key=lambda r: r.offset)
        ]

    def values(self) -> list[dict[str, int]]:
        """What is seen, as JSON."""
        return [json.loads(line) for line in self.seen()]

    def all_there(self) -> None:
        assert self.seen() == [f"line {n}" for n in range(self.written)]

    def sees(self, more: int) -> None:
        """Wait until so many more lines are there."""
        before = len(self.seen())
        eventually(lambda: len(self.seen()) >= before + more)

    def standing(self) -> ConfigTopicState:
        """What the group's config topic says of the connector."""
        topic = f"{self.group}-configs"
        kafka = Kafka(self.kafka.client, timeout=120)  # the other one may not know the topic
        return config_topic_state(kafka.image([topic], patience=30)[topic].latest, self.name)

    def status(self) -> Any:
        ran = connectctl(*self.args("status", self.name, "-o", "json"))
        assert ran.code == 0, ran.err
        jsonschema.validate(ran.json, json.loads((SCHEMAS / "run-status.json").read_text()))
        return ran.json["connectors"][0]


def well(ran: Ran) -> Any:
    assert ran.code == 0, ran.err
    jsonschema.validate(ran.json, json.loads((SCHEMAS / "run-result.json").read_text()))
    return ran.json


def python_workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Spark's Python workers below a run: the children of its daemon."""
    daemons = []
    for below in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.Error):  # one that has just ended
            daemons += [below] if "pyspark.daemon" in " ".join(below.cmdline()) else []
    return [p for p in daemons if p.parent() in daemons]
