"""A real Kafka Streams application of two instances, each a JVM with a properties file of its
own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from connectctl.ops.clients.java import find_java
from connectctl.ops.config import paths
from connectctl.ops.sandbox.jars import ivy
from connectctl.ops.sandbox.jars.ivy import Dependency
from live.real import create_topic, eventually
from sparkjvm import SHORT_LIVED

VERSION = "3.9.1"
"""The last series that knows exactly_once besides exactly_once_v2."""
BEFORE = "2.5.1"
"""The last series whose producers and consumers know nothing of generations."""
SOURCE = Path(__file__).with_name("Pipe.java")
PARTITIONS = 4
RESTART = Path(__file__).with_name("restartpipe.py")


def class_path(version: str = VERSION) -> str:
    """The jars of Kafka Streams, without RocksDB, which a stateless application does without."""
    root = paths.cache_directory() / "tests" / f"streams-{version}"
    jars = sorted(root.glob("streams/*.jar"))
    modules = dict.fromkeys(("kafka-streams", "kafka-clients"), ("org.apache.kafka", version))
    modules["slf4j-api"] = ("org.slf4j", "1.7.36")
    if len(jars) < len(modules):
        wanted = [
            Dependency(org, name, rev, "streams", transitive=False)
            for name, (org, rev) in modules.items()
        ]
        ivy.retrieve(wanted, root, cache=paths.cache_directory() / "ivy", java=find_java().path)
        jars = sorted(root.glob("streams/*.jar"))
    return os.pathsep.join(map(str, jars))


def compiled(jars: str, directory: Path) -> str:
    """The class path with the application on it. Skips where Java has no compiler."""
    java = find_java().path
    modules = subprocess.run(
        [java, "--list-modules"], capture_output=True, text=True, check=True, timeout=600
    ).stdout
    if "jdk.compiler" not in modules:
        pytest.skip("the application is compiled here, and this Java has no compiler")
    compiler = [java, *SHORT_LIVED.split(), "-m", "jdk.compiler/com.sun.tools.javac.Main"]
    subprocess.run(
        [*compiler, "-cp", jars, "-d", str(directory), str(SOURCE)], check=True, timeout=600
    )
    return f"{directory}{os.pathsep}{jars}"


@dataclass
class Pipe:
    """Copies the topic ``<name>-in`` to ``<name>-out``. ``ports`` name its instances,
    ``127.0.0.1:<port>``.
    """

    name: str
    directory: Path
    bootstrap: str
    class_path: str
    ports: tuple[int, ...] = (7001, 7002)
    written: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    @property
    def instances(self) -> list[str]:
        return [f"127.0.0.1:{port}" for port in self.ports]

    def file(self, port: int) -> Path:
        return self.directory / f"{port}.properties"

    def guarantee(self, port: int) -> str:
        lines = dict(
            line.split("=", 1) for line in self.file(port).read_text().splitlines() if "=" in line
        )
        return lines["processing.guarantee"]

    @property
    def restart(self) -> str:
        """The shell line that restarts an instance."""
        java = find_java().path
        return f"{sys.executable} {RESTART} {self.directory} {{port}} {java} {self.class_path}"

    def begin(self) -> None:
        for port in self.ports:
            self.file(port).write_text(
                "# instance "
                f"{port}\nbootstrap.servers={self.bootstrap}\napplication.id={self.name}\n"
                f"processing.guarantee=exactly_once\nin={self.name}-in\nout={self.name}-out\n"
                f"application.server=127.0.0.1:{port}\nstate.dir={self.directory}/state-{port}\n"
                # A member that stops leaves at once; Streams would otherwise wait for its session
                # to time out.
                "main.consumer.internal.leave.group.on.close=true\ncommit.interval.ms=100\n"
                "consumer.session.timeout.ms=10000\nconsumer.heartbeat.interval.ms=1000\n"
                "consumer.metadata.max.age.ms=2000\n"
            )
            subprocess.run(self.restart.format(port=port), shell=True, check=True, timeout=600)

    def feed(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        while not self._stop.wait(0.02):
            producer.produce(f"{self.name}-in", key=str(self.written % 40), value=str(self.written))
            self.written += 1
        assert producer.flush(300) == 0

    def committed(self) -> list[int]:
        """Every number in the output, as read_committed readers see it."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "nobody",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(f"{self.name}-out", n, 0) for n in range(PARTITIONS)])
        found, ended = [], 0
        while ended < PARTITIONS:
            message = consumer.poll(30)
            assert message is not None
            if message.error():
                ended += 1
            else:
                found.append(int(message.value() or b"-1"))
        consumer.close()
        return found

    def end(self) -> None:
        for port in self.ports:
            pid = self.directory / f"{port}.pid"
            if pid.exists() and psutil.pid_exists(int(pid.read_text())):
                psutil.Process(int(pid.read_text())).kill()


@contextmanager
def pipe(name: str, directory: Path, bootstrap: str, version: str = VERSION) -> Iterator[Pipe]:
    """The application, running with per-partition producers, while somebody writes to its input.

    It began with ``version``; what a restart brings is ``VERSION``.
    """
    new = compiled(class_path(), directory)
    found = Pipe(name, directory, bootstrap, new.replace(class_path(), class_path(version)))
    for topic in (f"{name}-in", f"{name}-out"):
        create_topic(bootstrap, topic, PARTITIONS, "delete")
    feeding = threading.Thread(target=found.feed, daemon=True)
    try:
        found.begin()
        found.class_path = new
        feeding.start()
        yield found
        found._stop.set()
        feeding.join()
        eventually(lambda: len(found.committed()) >= found.written)
    finally:
        found._stop.set()
        found.end()
