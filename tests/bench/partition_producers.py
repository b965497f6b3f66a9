"""KIP-447's own claim: one transactional producer for each task against one for each input partition, by input partitions.

    python tests/bench/partition_producers.py [--inputs 1,10,50,100] [--records 1000000] [--runs 3]

One broker, 256-byte records spread evenly over the input's partitions, two tasks on Spark ``local[2]``, a class whose
``process`` gives back each record, ``commit.interval.ms`` 100, an output topic of one partition. The two take
turns, after a turn of each that is not counted. Medians of:

- records/s, between the broker's own times of the first and the last output record;
- transactions/s in that time: the output's end less its records, which is one marker for each;
- start: seconds from the command to the first output record, Spark's start included;
- memory: the most that Spark's Python workers had resident together, in MiB.

Each run is checked with read_committed: every record is there once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import psutil
from benchbroker import (  # type: ignore[import-not-found]  # beside this file
    SIZE,
    broker,
    committed,
    create_topic,
    fill,
    in_turns,
)
from confluent_kafka import Consumer, TopicPartition
from transform import PLUGIN  # type: ignore[import-not-found]  # beside this file

NAME = "partition-producers"
SIDES = ("exactly-once", "exactly-once-per-partition")


@dataclass(frozen=True)
class Figures:
    """What one run came to."""

    rate: float
    transactions: float
    start: float
    memory: float

    def __str__(self) -> str:
        speed = f"{self.rate:9,.0f} records/s {self.transactions:7.1f} transactions/s"
        return f"{speed} {self.start:6.1f} s to start {self.memory:7.0f} MiB"


def output(bootstrap: str, topic: str, records: int) -> tuple[float, float, int]:
    """The broker's times of the first and the last record, and how many transactions wrote them."""
    seen, times = set[bytes](), list[int]()
    for message in committed(bootstrap, topic, 1):
        seen.add(message.value()[:10])
        times.append(message.timestamp()[1])
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": NAME})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    consumer.close()
    assert len(seen) == len(times) == records, f"{len(times)} records of {records}, {len(seen)} of them different"
    return times[0] / 1000, times[-1] / 1000, end - records


def resident(pid: int) -> float:
    """MiB of Spark's Python workers below ``pid``."""
    found = 0
    with suppress(psutil.Error):
        for below in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error):
                found += below.memory_info().rss if "pyspark.daemon" in " ".join(below.cmdline()) else 0
    return found / 2**20


def timed(bootstrap: str, source: str, guarantee: str, turn: str, records: int) -> Figures:
    """One run."""
    topic = f"{source}-{guarantee}-{turn}"
    create_topic(bootstrap, topic, 1)
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "same.py").write_text(PLUGIN)
        job, said = Path(directory) / "job.yaml", Path(directory) / "said"
        config = {"connector.class": "same:Same", "topics": source, "topic": topic, "tasks.max": "2"}
        wish = {"name": topic, "config": config | {"guarantee": guarantee}, "spark": {"master": "local[2]"}}
        job.write_text(json.dumps(wish | {"until": {"idle": "5s"}}))
        command = [sys.executable, "-m", "connectctl", "--context", f"sandbox-{NAME}", "--group-id", f"g-{topic}"]
        began, most = time.time(), 0.0
        command += ["run", str(job), "--yes"]
        with said.open("wb") as into, subprocess.Popen(command, stdout=into, stderr=into) as process:
            while process.poll() is None:
                most = max(most, resident(process.pid))
                time.sleep(0.5)
        assert process.returncode == 0, said.read_text()
    first, last, transactions = output(bootstrap, topic, records)
    took = last - first
    return Figures(records / took, transactions / took, first - began, most)


def measured(bootstrap: str, source: str, records: int, side: str, turn: int) -> Figures:
    """The same in the order that turns want."""
    return timed(bootstrap, source, side, str(turn), records)


def median(found: Sequence[Figures]) -> Figures:
    """Of each figure."""
    return Figures(*(statistics.median(getattr(each, f.name) for each in found) for f in fields(Figures)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", default="1,10,50,100")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs, {given.records:,} records of {SIZE} bytes", flush=True)
    with broker(NAME) as sandbox:
        bootstrap = sandbox.bootstrap_servers
        for partitions in map(int, given.inputs.split(",")):
            fill(bootstrap, source := f"in-{partitions}", partitions, given.records)
            print(f"{partitions} input partitions", flush=True)
            measure = partial(measured, bootstrap, source, given.records)
            for side, found in in_turns(SIDES, given.runs, measure, str).items():
                print(f"  median of {side}: {median(found)}", flush=True)


if __name__ == "__main__":
    main()
