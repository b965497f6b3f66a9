"""A run of a connector that counts, in a process of its own."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.librdkafka.client import Kafka
from live import countingplugin, oracle
from live.real import create_topic, eventually
from live.sparkclusters import PATIENCE, below, send
from sparkjvm import java_options

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox


class Counted:
    """A counting connector in an archive of its own, its topic, and what Spark is told."""

    def __init__(self, cluster: Sandbox, directory: Path, plugin: tuple[str, str], **config: Any):
        self.cluster, self.directory = cluster, directory
        self.name = f"count-{secrets.token_hex(4)}"
        self.plugin, kind = plugin
        self.topic = create_topic(cluster.bootstrap_servers, f"{self.name}-data", 2, "delete")
        self.kafka = Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
        self.config = countingplugin.CONFIG | {
            "connector.class": kind,
            "topic": self.topic,
            "tasks.max": "2",
        }
        self.config |= {name.replace("_", "."): str(value) for name, value in config.items()}
        self.events = directory / "events"
        self.events.mkdir()
        self.conf = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": self.events.as_uri(),
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.compress": "false",
            "spark.executor.memory": "512m",
            "spark.driver.extraJavaOptions": java_options(),
            "spark.executor.extraJavaOptions": java_options(),
            "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{PATIENCE:g}s",
        }

    def job(self) -> str:
        job = {
            "name": self.name,
            "config": self.config,
            "plugins": [self.plugin],
            "spark": {"conf": self.conf},
            "until": {"idle": "3s"},
        }
        path = self.directory / "job.yaml"
        path.write_text(json.dumps(job))  # which is YAML, too
        return str(path)

    @contextmanager
    def running(self, master: str, context: Sequence[str] = ()) -> Iterator[subprocess.Popen[str]]:
        """A run of the job in a process of its own, in the sandbox's context where no other is
        named.
        """
        given = context or [
            "--context",
            f"sandbox-{self.cluster.spec.name}",
            "--group-id",
            self.name,
        ]
        command = [sys.executable, "-m", "connectctl.cli", *given]
        command += ["run", self.job(), "--master", master, "--yes", "-o", "json"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                yield process
            finally:
                send(below([process]))
                process.kill()

    def seen(self) -> int:
        """How many records are there for a reader with read_committed."""
        image = self.kafka.image([self.topic], patience=60, superseded=True)[self.topic]
        return len(image.latest) + len(image.superseded)

    def sees(self, process: subprocess.Popen[str], more: int) -> None:
        """Wait until so many more records are there."""
        goal = self.seen() + more

        def there() -> bool:
            assert process.poll() is None, process.communicate()
            return self.seen() >= goal

        eventually(there, PATIENCE)

    def judged(self) -> dict[bytes | None, int]:
        """The records of each source once nothing is wrong with any."""
        topic = f"{self.name}-offsets"
        kafka = Kafka(self.kafka.client, timeout=120)  # the other one may not know the topic
        verdict = oracle.judge(kafka, self.topic, topic, self.name, countingplugin.whose)
        assert not verdict.findings
        return verdict.records


def ended(process: subprocess.Popen[str]) -> Any:
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return json.loads(out)
