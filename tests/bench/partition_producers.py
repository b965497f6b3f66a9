"""KIP-447's own claim: one transactional producer for each task against one for each input partition, by input partitions.

    python tests/bench/partition_producers.py [--inputs 1,10,50,100] [--records 1000000] [--runs 3]

One broker, 256-byte records spread evenly over the input's partitions, two tasks on Spark ``local[2]``, a class whose
``process`` gives each record's value in capitals, ``commit.interval.ms`` 100, an output topic of one partition. The two take
turns, after a turn of each that is not counted. Medians of:

- records/s, from the broker's own time of the first output record to the last transaction that is seen committed;
- transactions/s in that time, by the run's own count;
- start: seconds from the generation in the config topic, when Spark is ready, to the first output record;
- memory: the most that Spark's Python workers had resident together, in MiB, with pages that they share counted for each.

Each run is checked with read_committed: every record is there once, and those of an input partition in order.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from benchbroker import (  # type: ignore[import-not-found]  # beside this file
    DEADLINE,
    QUIET,
    SIZE,
    Watch,
    begin,
    broker,
    committed,
    create_topic,
    delete_topic,
    fill,
    in_turns,
    result,
    running,
)
from transform import PLUGIN, PLUGIN_CLASS, PLUGIN_FILE  # type: ignore[import-not-found]  # beside this file

if TYPE_CHECKING:
    from connectctl.ops.sandbox import cluster

NAME = "partition-producers"
SIDES = ("exactly-once", "exactly-once-per-partition")
SAMPLED = 0.2
"""Seconds between two looks at the memory."""


@dataclass(frozen=True)
class Figures:
    """What one run came to."""

    rate: float
    transactions: float
    start: float
    memory: float

    def __str__(self) -> str:
        speed = f"{self.rate:9,.0f} records/s {self.transactions:7.1f} transactions/s"
        return f"{speed} {self.start:6.2f} s to start {self.memory:7.0f} MiB"


def resident(pid: int) -> float:
    """MiB of Spark's Python workers below ``pid``."""
    found = 0
    with suppress(psutil.Error):
        for below in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error):
                found += below.memory_info().rss if "pyspark.daemon" in " ".join(below.cmdline()) else 0
    return found / 2**20


def most_resident(process: subprocess.Popen[str]) -> float:
    """The most that it has until its end."""
    most, late = 0.0, time.monotonic() + DEADLINE
    while process.poll() is None and time.monotonic() < late:
        most = max(most, resident(process.pid))
        time.sleep(SAMPLED)
    return most


def timed(sandbox: cluster.Sandbox, source: str, inputs: int, records: int, side: str, turn: int) -> Figures:
    """One run."""
    bootstrap = sandbox.bootstrap_servers
    topic = create_topic(bootstrap, f"{source}-{side}-{turn}", 1)
    config = {"connector.class": PLUGIN_CLASS, "topics": source, "topic": topic, "tasks.max": "2", "guarantee": side}
    with tempfile.TemporaryDirectory() as directory, Watch(bootstrap, topic, 1).watching() as watch:
        (Path(directory) / PLUGIN_FILE).write_text(PLUGIN)
        with running(sandbox, Path(directory), topic, config, until={"idle": f"{QUIET:g}s"}) as process:
            memory = most_resident(process)
            done = sum(task["transactions"] for task in result(Path(directory), process)["tasks"])
        watch.wait(records)
    first = begin(bootstrap, topic, records, inputs, 1)
    began = max(each.timestamp()[1] for each in committed(bootstrap, f"g-{topic}-configs", 1)) / 1000
    delete_topic(bootstrap, topic)
    took = watch.changed - first
    return Figures(records / took, done / took, first - began, memory)


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
    lines = []
    with broker(NAME) as sandbox:
        for inputs in map(int, given.inputs.split(",")):
            source = f"in-{inputs}"
            fill(sandbox.bootstrap_servers, source, inputs, given.records)
            print(f"{inputs} input partitions", flush=True)

            def one(side: str, turn: int, source: str = source, inputs: int = inputs) -> Figures:
                return timed(sandbox, source, inputs, given.records, side, turn)

            found = {side: median(those) for side, those in in_turns(SIDES, given.runs, one, str).items()}
            delete_topic(sandbox.bootstrap_servers, source)
            lines += [f"{inputs:4} partitions  {side:27} {of}" for side, of in found.items()]
            slot, each = (found[side] for side in SIDES)
            lines.append(
                f"{inputs:4} partitions  per slot has {slot.rate / each.rate:.2f} of the records/s of per partition"
            )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
