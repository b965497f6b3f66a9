"""What the live tests of changes of offsets have in common: raw records, a file that grows, runs
that are killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
from confluent_kafka import Consumer, TopicPartition
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.config import paths
from connectctl.ops.core.journal import Journal, Run
from live.real import FILE_SOURCE, Ran, connectctl, eventually, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

SCHEMAS = {
    json.loads(path.read_text())["properties"]["kind"]["const"]: json.loads(path.read_text())
    for path in (Path(__file__).parents[2] / "docs/schema").glob("*.json")
}
VERIFIABLE = {
    "connector.class": "org.apache.kafka.connect.tools.VerifiableSourceConnector",
    "topic": "verifiable-offsets",
    "throughput": "1",
}
"""A connector that takes any source offset over REST."""


def ctl(cluster: Sandbox, *args: str, code: int = 0, stdin: str | None = None) -> Ran:
    """``connectctl offsets …``, which ends with ``code``."""
    ran = connectctl("--context", f"sandbox-{cluster.spec.name}", *args, stdin=stdin)
    assert ran.code == code, f"{args}: {ran.code}\n{ran.out}\n{ran.err}"
    return ran


def changed(cluster: Sandbox, *args: str, stdin: str | None = None) -> str:
    """Change offsets; the run that it took."""
    ran = ctl(cluster, "offsets", *args, "--yes", "-o", "json", stdin=stdin)
    jsonschema.validate(ran.json, SCHEMAS["OffsetsResult"])
    return str(ran.json["run"])


def kafka(cluster: Sandbox) -> Kafka:
    return Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)


def records(cluster: Sandbox, topic: str, connector: str) -> dict[tuple[int, bytes], bytes | None]:
    """The connector's newest records in a topic by partition and raw key, tombstones too."""
    image = kafka(cluster).image([topic], patience=10)[topic]
    start = json.dumps([connector])[:-1].encode()
    return {
        (r.partition, r.key): r.value
        for r in image.latest
        if r.key is not None and r.key.startswith(start)
    }


def live(cluster: Sandbox, topic: str, connector: str) -> dict[tuple[int, bytes], bytes]:
    """The same without tombstones."""
    return {
        place: value
        for place, value in records(cluster, topic, connector).items()
        if value is not None
    }


def read_all(cluster: Sandbox, topic: str) -> list[str]:
    """Every committed value of a topic of one partition, in order."""
    options = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": "x",
        "enable.partition.eof": True,
    }
    consumer = Consumer(
        options | {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    while True:
        for message in consumer.consume(1000, 1.0):
            if message.error() is not None:
                consumer.close()
                return found
            found.append(json.loads(message.value()))


class GrowingFile:
    """A file to which a line is added every few milliseconds, all lines numbered."""

    def __init__(self, path: Path):
        self.path = path
        self.lines = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._grow, daemon=True)

    def _grow(self) -> None:
        with self.path.open("a") as file:
            while not self._end.is_set():
                file.write(f"line {self.lines}\n")
                file.flush()
                self.lines += 1
                time.sleep(0.05)

    def stop(self) -> list[str]:
        """Every line that was written."""
        self._end.set()
        self._thread.join()
        return [f"line {n}" for n in range(self.lines)]

    @contextmanager
    def growing(self) -> Iterator[GrowingFile]:
        self.path.touch()
        self._thread.start()
        try:
            yield self
        finally:
            self.stop()


def file_source(path: Path, topic: str) -> dict[str, str]:
    return {
        "connector.class": FILE_SOURCE,
        "file": str(path),
        "topic": topic,
        "topic.creation.default.partitions": "1",
    } | {"topic.creation.default.replication.factor": "1"}


def journal() -> Journal:
    return Journal(paths.journal_directory())


def killed_when(cluster: Sandbox, reached: Callable[[Run], bool], *args: str) -> Run:
    """Run connectctl in a process of its own, and kill it when its run is as far as ``reached``
    says.
    """
    known = {run.id for run in journal().runs()}
    command = [
        sys.executable,
        "-m",
        "connectctl.cli",
        "--context",
        f"sandbox-{cluster.spec.name}",
        *args,
        "--yes",
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ
    )

    def new() -> Run | None:
        return next((run for run in journal().runs() if run.id not in known), None)

    end = time.monotonic() + 600
    try:
        while (run := new()) is None or not reached(run):
            assert process.poll() is None, process.communicate()[1].decode()
            assert time.monotonic() < end
            if run is None:  # its modules are loaded; from then on each moment counts
                time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    return journal().get(run.id)


def stopped(cluster: Sandbox, name: str) -> None:
    """Stop a connector and wait for it."""
    workers(cluster).call("PUT", f"/connectors/{name}/stop")
    eventually(lambda: workers(cluster).state(name) == ["STOPPED"])
