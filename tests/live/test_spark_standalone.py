"""A standalone Spark cluster of two workers and a secured Kafka: a frame is written, audited and
backed up there.

The executors' Python finds connectctl in no place but what the session sends; one of them is lost,
and a worker joins.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.sandbox.security import SCRAM
from live import sparkframe
from live.real import Ran, connectctl, eventually
from live.securedcluster import as_admin, create_topic
from live.sparkclusters import PATIENCE, below, executors, python_without, send, standalone
from sparkjvm import java_options

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox
    from live.sparkclusters import SparkCluster

pytestmark = [pytest.mark.live, pytest.mark.slow]
ROWS = 1_500
AT_ONCE = 20
"""Rows of a transaction: so few that there is time to lose an executor."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with standalone(tmp_path_factory.mktemp("spark")) as cluster:
        yield cluster


class Place:
    """A topic on the secured cluster, a context with the Spark cluster, and what its executors are
    told.
    """

    def __init__(self, secured: Sandbox, spark: SparkCluster, directory: Path):
        self.spark, self.directory = spark, directory
        self.name = f"frame-{secrets.token_hex(4)}"
        self.client = as_admin(secured, SCRAM)
        self.topic = create_topic(secured, f"{self.name}-data", 2)
        self.offsets = create_topic(
            secured, f"{self.name}-offsets", 5, **{"cleanup.policy": "compact"}
        )
        self.conf = {
            "spark.executor.memory": "512m",
            "spark.pyspark.python": python_without(directory),
            "spark.driver.extraJavaOptions": java_options(),
            "spark.executor.extraJavaOptions": java_options(),
            "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{PATIENCE:g}s",
        }
        contexts = yaml.safe_load(secured.context_path.read_text())
        contexts["contexts"]["spark"] = contexts["contexts"]["sandbox-secured"] | {
            "spark": {"master": spark.master, "conf": self.conf}
        }
        self.file = directory / "contexts.yaml"
        self.file.write_text(yaml.safe_dump(contexts))

    def runs(self, *words: str) -> Ran:
        """A command in that context that has to end well."""
        given = (
            "--config",
            str(self.file),
            "--context",
            "spark",
            "--timeout",
            "60",
            "--offsets-topic",
            self.offsets,
        )
        ran = connectctl(*given, *words)
        assert ran.code == 0, ran.err
        return ran

    def wish(self) -> dict[str, Any]:
        """What ``sparkframe`` is to write."""
        target = {
            "client": self.client,
            "group_id": self.name,
            "connector": self.name,
            "topic": self.topic,
            "offsets_topic": self.offsets,
            "partition": ["shop"],
            "offset": "id",
            "key": "shop",
            "value": "number",
            "rows_per_transaction": AT_ONCE,
        }
        log = str(self.directory / "spark.log")
        return {
            "master": self.spark.master,
            "conf": self.conf,
            "log": log,
            "rows": ROWS,
            "target": target,
        }

    def seen(self) -> int:
        """How many records are committed."""
        image = Kafka(self.client, timeout=60).image([self.topic], patience=60, superseded=True)[
            self.topic
        ]
        return len(image.latest) + len(image.superseded)


def written(place: Place) -> dict[str, Any]:
    """Write the frame; an executor is killed in the middle of it, and a worker joins."""
    # The wish has a password in it, which is on no command line.
    wish = place.directory / "wish.json"
    wish.write_text(json.dumps(place.wish()))
    command = [sys.executable, sparkframe.__file__]
    with (
        wish.open() as given,
        subprocess.Popen(
            command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        try:

            def begun() -> bool:
                assert process.poll() is None, process.communicate()
                return place.seen() >= AT_ONCE

            eventually(begun, PATIENCE)
            send(executors(*place.spark.started)[:1])
            place.spark.start_worker()
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            send(below([process]))
            process.kill()
    assert process.returncode == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_a_frame_is_written_audited_and_backed_up_while_executors_come_and_go(
    secured: Sandbox, spark: SparkCluster, tmp_path: Path
) -> None:
    place = Place(secured, spark, tmp_path)
    assert written(place)["problems"] == []
    sequence = ("--sequence", r"text:(\d+)", "--first", "0")
    audit = place.runs("audit", place.topic, *sequence, "--engine", "spark", "-o", "json").json
    assert (audit["verdict"], audit["records"]["committed"]) == ("exactly-once", ROWS)
    assert (audit["duplicates"], audit["gaps"], audit["sourcePartitions"]) == (
        0,
        0,
        sparkframe.SHOPS,
    )
    saved = []
    for engine in ("local", "spark"):
        file = tmp_path / f"{engine}.jsonl"
        place.runs("offsets", "backup", place.name, "--engine", engine, "--out", str(file))
        saved.append(sorted(file.read_text().splitlines()[1:-1]))
    assert saved[0] == saved[1]
    assert len(saved[0]) >= sparkframe.SHOPS
