"""MirrorMaker 2 in dedicated mode: a real process, source and target on one broker."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from connectctl.ops.clients.java import find_java
from connectctl.ops.sandbox.jars.cache import CONNECT, cached
from connectctl.ops.sandbox.jars.versions import LATEST, parse_version

MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


def class_path() -> str:
    """The jars of MirrorMaker; those of the broker have the parser of its command line."""
    jars = cached(parse_version(LATEST))
    assert jars is not None
    mirror = jars.plugins / "connect-mirror"
    if not mirror.is_dir():
        pytest.skip("the repository does not have MirrorMaker's jars")
    return os.pathsep.join(
        f"{directory}/*" for directory in (jars.root / CONNECT, mirror, jars.root / "broker")
    )


@dataclass
class MirrorMaker:
    """Copies the topic ``topic`` of the cluster ``source`` to the cluster ``target``, which are
    aliases of one broker.
    """

    directory: Path
    bootstrap: str
    source: str
    target: str
    topic: str
    more: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def group(self) -> str:
        return f"{self.source}-mm2"

    @property
    def topics(self) -> dict[str, str]:
        """Its internal topics by role."""
        return {
            role: f"mm2-{role}.{self.source}.internal" for role in ("configs", "offsets", "status")
        }

    def start(self) -> None:
        flow, back = f"{self.source}->{self.target}", f"{self.target}->{self.source}"
        one = ("", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic.")
        lines = {
            "clusters": f"{self.source}, {self.target}",
            f"{self.source}.bootstrap.servers": self.bootstrap,
            f"{self.target}.bootstrap.servers": self.bootstrap,
            f"{flow}.enabled": "true",
            f"{flow}.topics": self.topic,
            f"{back}.enabled": "false",
            "emit.heartbeats.enabled": "false",
            "offset.storage.partitions": "3",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "1500",
            "offset.flush.interval.ms": "1000",
            **{f"{topic}replication.factor": "1" for topic in one},
            **{
                f"{topic}.storage.replication.factor": "1"
                for topic in ("config", "offset", "status")
            },
            **self.more,
        }
        file = self.directory / "mm2.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        command = [find_java().path, *OPTIONS, "-cp", class_path(), MAIN, str(file)]
        with (self.directory / "mm2.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def stop(self) -> None:
        """Stop the process in order, so that it leaves its group."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(60)
            self.process = None
