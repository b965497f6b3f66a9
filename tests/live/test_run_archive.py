"""``ParquetArchive`` on Spark and a real broker: whatever is killed, the archive has each record
once.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import psutil
import pytest
from confluent_kafka import Consumer, Producer
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.operations.cluster.internal_topic_discovery import those_that_exist
from connectctl.ops.task_runtime.connectors.parquet_archive.manifest import (
    ArchivedFile,
    read_manifest,
)
from connectctl.ops.task_runtime.connectors.parquet_archive.reader import archived, sweep
from live.piped import FourPartitions
from live.real import connectctl, eventually
from live.rundirectory import KILLED, SCHEMAS, python_workers, well
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.drawn(matrix="archives"),
]
NOT_TEXT = b"\xff\x00\xfe"


class Archived(FourPartitions):
    """A topic of four partitions that two tasks archive."""

    def __init__(self, cluster: Sandbox, directory: Path):
        super().__init__(cluster, directory)
        self.out = directory / "archive"
        self.config = {
            "connector.class": "ParquetArchive",
            "topics": self.source,
            "directory": str(self.out),
            "tasks.max": "2",
            "offset.flush.interval.ms": "500",
        }

    def append(self, count: int) -> None:
        """Write ``count`` lines, each with a header that is not UTF-8."""
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap_servers})
        for n in range(self.written, self.written + count):
            producer.produce(self.source, f"line {n}", f"{n}", n % 4, headers=[("h", NOT_TEXT)])
        assert producer.flush(60) == 0
        self.written += count

    @property
    def manifest(self) -> tuple[ArchivedFile, ...]:
        return read_manifest(self.kafka.client, f"{self.name}-archive")

    @property
    def rows(self) -> int:
        if not those_that_exist(Kafka(self.kafka.client, timeout=120), f"{self.name}-archive"):
            return 0
        return sum(each.rows for each in self.manifest)

    def each_once(self) -> None:
        spark = (
            SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .getOrCreate()
        )
        try:
            frame = archived(spark, str(self.out), f"{self.name}-archive", self.kafka.client)
            rows = frame.collect()
            found = sorted((row.partition, row.offset, bytes(row.value).decode()) for row in rows)
            assert {(name, bytes(value)) for row in rows for name, value in row.headers} == {
                ("h", NOT_TEXT)
            }
        finally:
            spark.stop()
        assert found == [
            (p, n // 4, f"line {n}") for p in range(4) for n in range(p, self.written, 4)
        ]


def test_a_second_run_archives_what_came_behind_the_first(cluster: Sandbox, tmp_path: Path) -> None:
    place = Archived(cluster, tmp_path)
    place.append(400)
    first = well(place.run(idle="3s"))
    assert (first["outcome"], first["records"]) == ("ended", 400)
    place.append(100)
    assert well(place.run(idle="3s"))["records"] == 100
    place.each_once()
    audited(place)


def audited(place: Archived) -> None:
    """``audit --archive`` proves it, and names what a file that is gone and the group's offsets
    amount to.
    """
    command = [
        "--context",
        f"sandbox-{place.cluster.spec.name}",
        "audit",
        "--archive",
        str(place.out),
    ]
    command += ["--manifest", f"{place.name}-archive", "-o", "json"]
    good = connectctl(*command)
    assert (good.code, good.json["verdict"], good.json["rows"]) == (0, "exactly-once", 500), (
        good.err
    )
    jsonschema.validate(good.json, json.loads((SCHEMAS / "archive-audit.json").read_text()))
    lost = place.manifest[0]
    (place.out / lost.name).rename(place.out / "aside")
    bad = connectctl(*command)
    assert (bad.code, bad.json["verdict"], bad.json["missing"]) == (1, "gaps", lost.rows)
    assert {each["id"] for each in bad.json["findings"]} == {"AUDIT028", "AUDIT031"}
    (place.out / "aside").rename(place.out / lost.name)


@KILLED
def test_a_worker_of_spark_that_is_killed_costs_no_record_and_archives_none_twice(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Archived(cluster, tmp_path)
    place.append(400)
    with place.running() as process:
        eventually(lambda: place.rows >= 400)
        for _ in range(2):
            place.append(400)  # not waited for
            for worker in python_workers(process)[:1]:
                worker.kill()
            place.append(400)
            eventually(lambda: place.rows >= place.written)
        process.send_signal(signal.SIGTERM)
        assert process.wait(900) == 0
    place.each_once()
    refused_and_swept(place)


@pytest.mark.usefixtures("without_spark")
def test_members_that_a_killed_driver_left_are_shown_and_removed(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Archived(cluster, tmp_path)
    place.config["consumer.override.session.timeout.ms"] = "300000"
    place.append(40)
    status = (*place.args("status", place.name), "-o", "json")
    with place.running() as process:
        eventually(lambda: place.rows >= 40)
        assert place.status()["leftMembers"]["instanceIds"] == []
        alive = connectctl(*status, "--remove-members", "--yes")
        assert (alive.code, "belong to its run" in alive.err) == (4, True)
        for below in psutil.Process(process.pid).children(recursive=True):
            below.kill()
        process.kill()
    left = [f"{place.group}-{place.name}-{task}" for task in range(2)]
    eventually(lambda: place.status()["leftMembers"]["instanceIds"] == left)
    assert connectctl(*status, "--remove-members", "--yes").code == 0
    assert place.status()["leftMembers"]["instanceIds"] == []


def refused_and_swept(place: Archived) -> None:
    """``run --sweep`` is refused while the archive has a member, then removes what the manifest
    does not name.
    """
    named = {each.name for each in place.manifest}
    (place.out / place.source / "0" / f"0-9-{'0' * 32}.parquet").write_text(
        "of an attempt that was killed"
    )
    orphans = {str(path.relative_to(place.out)) for path in place.out.rglob("*.parquet*")} - named
    assert {each.name for each in sweep(str(place.out), place.manifest, older_than=0)} == orphans
    for name in orphans:
        os.utime(place.out / name, (0, 0))
    group = {
        "group.id": f"connect-{place.name}",
        "group.instance.id": "other",
        "session.timeout.ms": 6_000,
    }
    with closing(Consumer(place.kafka.client | group)) as member:
        member.subscribe([place.source])
        eventually(lambda: member.poll(0.1) is None and member.assignment())
        refused = connectctl(*place.args(place.job(forever=True), "--sweep", "--yes"))
        assert (refused.code, f"members of the group connect-{place.name}" in refused.err) == (
            4,
            True,
        )
    command = place.args(place.job(forever=True), "--sweep", "--yes", "-o", "json")
    eventually(lambda: connectctl(*command).code == 0)  # once the static member's session is over
    left = {str(path.relative_to(place.out)) for path in place.out.rglob("*.parquet*")}
    assert left == named
    place.each_once()
