"""Records read, passed through Python and written again by ``connectctl run`` of a transform, one way beside another.

    python tests/bench/transform.py [--records 2000000] [--runs 3]     exactly once beside at least once
    python tests/bench/transform.py --quix /tmp/quix/bin/python        and Quix Streams, exactly once, beside both
    python tests/bench/transform.py --per-partition                    one producer per slot beside one per input partition,
                                   [--partitions 1,10,50,100]          for each of these numbers of input partitions

One broker, an input topic of 256-byte records in four partitions, two tasks on Spark ``local[2]``, a class whose ``process``
gives each record's value in capitals, the defaults of ``commit.interval.ms`` (100) and ``max.poll.records`` (500). The sides
take turns, after a turn of each that is not counted. The broker has the JVM options of Kafka's own start scripts.

Quix Streams is optional: ``python -m venv /tmp/quix && /tmp/quix/bin/pip install quixstreams`` makes a Python that has it.
Two processes of one application do the same to the same records, with ``processing_guarantee="exactly-once"`` and a
``commit_interval`` of 100 ms, all else by its defaults. They join at once.

What is timed: from the broker's own time of the first record in the output topic to the moment at which the last transaction
is seen committed, by read_committed end offsets that are asked for every 50 ms. The start of Spark and the first rebalance
are out. Each run is checked with read_committed: every record is there once, and in order where two of an input partition
are in one of the output. ``--per-partition`` tells besides: transactions/s in that time; the start, from the generation in
the config topic, when Spark is ready, to the first record of the output; and memory, the greatest sum of resident sizes of
the Python workers in which the tasks are, with pages that they share counted for each.

Fails where exactly once has less than 0.8 of the records/s of at least once.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import quixpeer  # type: ignore[import-not-found]  # beside this file
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
    medians,
    result,
    running,
)

if TYPE_CHECKING:
    from connectctl.ops.sandbox import cluster

GOAL = 0.8
NAME, TASKS, PARTITIONS = "transform", 2, 4
ONCE, EACH, LEAST, QUIX = "exactly-once", "exactly-once-per-partition", "at-least-once", "quix"
SAMPLED = 0.2
PLUGIN = """
from connectctl.ops.task_runtime.spi.transform import Record, Transform


class Capitals(Transform):
    def process(self, records):
        return [Record(r.value.upper(), r.key) for r in records]
"""


@dataclass(frozen=True)
class Measured:
    """One run. ``start`` is in s, ``memory`` in MB; None where nobody can tell."""

    rate: float
    transactions: float | None = None
    start: float | None = None
    memory: float | None = None

    def __str__(self) -> str:
        more = "" if self.memory is None else f", start {self.start:.2f} s, {self.memory:.0f} MB"
        return (
            f"{self.rate:9,.0f} records/s"
            + (f", {self.transactions:.0f} transactions/s" if self.transactions else "")
            + more
        )


@dataclass(frozen=True)
class Bench:
    """``records`` in ``source``, of so many ``partitions``; ``quix`` is a Python that has Quix Streams."""

    sandbox: cluster.Sandbox
    source: str
    partitions: int
    records: int
    quix: str = ""

    def measure(self, side: str, turn: int) -> Measured:
        """One run of one side, into a topic of its own."""
        bootstrap, name = self.sandbox.bootstrap_servers, f"{self.source}-{side}-{turn}"
        create_topic(bootstrap, name, PARTITIONS)
        ran, memory = None, None
        with Watch(bootstrap, name, PARTITIONS).watching() as watch:
            if side == QUIX:
                with quixpeer.processes(self.quix, bootstrap, name, self.source, name, TASKS):
                    watch.wait(self.records)
            else:
                ran, memory = self._run(name, side)
                watch.wait(self.records)
        first = begin(bootstrap, name, self.records, self.partitions, PARTITIONS)
        took: float = watch.changed - first
        delete_topic(bootstrap, name)
        if ran is None:
            return Measured(self.records / took)
        configs = f"g-{name}-configs"
        start = first - max(each.timestamp()[1] for each in committed(bootstrap, configs, 1)) / 1000
        return Measured(self.records / took, sum(t["transactions"] for t in ran["tasks"]) / took, start, memory)

    def _run(self, name: str, guarantee: str) -> tuple[Any, float]:
        """``connectctl run`` until nothing comes any more: its result, and the memory of its Python workers."""
        config = {"connector.class": "capitals:Capitals", "topics": self.source, "topic": name, "tasks.max": str(TASKS)}
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "capitals.py").write_text(PLUGIN)
            until, memory = {"idle": f"{QUIET:g}s"}, 0.0
            wish = config | {"guarantee": guarantee}
            with running(self.sandbox, Path(directory), name, wish, until=until) as process:
                late = time.monotonic() + DEADLINE
                while process.poll() is None and time.monotonic() < late:
                    memory = max(memory, workers_memory(process))
                    time.sleep(SAMPLED)
                return result(Path(directory), process), memory


def workers_memory(process: subprocess.Popen[str]) -> float:
    """The resident size of the Python workers of a run, in MB."""
    size = 0
    with suppress(psutil.Error):
        for below in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.Error):  # one that has just ended
                size += below.memory_info().rss if "pyspark.daemon" in " ".join(below.cmdline()) else 0
    return size / 1e6


def by_guarantee(sandbox: cluster.Sandbox, given: argparse.Namespace) -> str | int:
    """Exactly once beside at least once and others; what is missed, or 0."""
    sides = given.sides.split(",")
    if given.quix:
        found = quixpeer.version(given.quix)
        print(f"Quix Streams {found}" if found else f"Quix Streams is not installed for {given.quix}: it is left out")
        sides += [QUIX] if found else []
    else:
        print("Quix Streams is left out: --quix names a Python that has it")
    fill(sandbox.bootstrap_servers, "in", PARTITIONS, given.records)
    bench = Bench(sandbox, "in", PARTITIONS, given.records, given.quix)
    rates = medians(figures(in_turns(sides, given.runs, bench.measure, str), lambda one: one.rate))
    for side, rate in rates.items():
        beside = "".join(
            f", {rate / rates[other]:.2f} of {other}" for other in (LEAST, QUIX) if other in rates and other != side
        )
        print(f"{side:14} {rate:9,.0f} records/s{beside}")
    missed = {ONCE, LEAST} <= rates.keys() and rates[ONCE] / rates[LEAST] < GOAL
    return f"exactly once: at least {GOAL} of at least once is wanted" if missed else 0


def by_producers(sandbox: cluster.Sandbox, given: argparse.Namespace) -> int:
    """One producer per slot beside one per input partition."""
    lines = ["input partitions  producers      records/s  transactions/s  start, s  MB"]
    for partitions in map(int, given.partitions.split(",")):
        source = f"in-{partitions}"
        fill(sandbox.bootstrap_servers, source, partitions, given.records)
        print(f"{partitions} input partitions", flush=True)
        found = in_turns((ONCE, EACH), given.runs, Bench(sandbox, source, partitions, given.records).measure, str)
        delete_topic(sandbox.bootstrap_servers, source)
        rate = medians(figures(found, lambda one: one.rate))
        rest = [
            medians(figures(found, pick)) for pick in (lambda o: o.transactions, lambda o: o.start, lambda o: o.memory)
        ]
        for side, what in ((ONCE, "per slot"), (EACH, "per partition")):
            transactions, start, memory = (each[side] for each in rest)
            lines.append(
                f"{partitions:16}  {what:13} {rate[side]:10,.0f} {transactions:15,.0f} {start:9.2f} {memory:4.0f}"
            )
        lines.append(f"{'':16}  ratio         {rate[ONCE] / rate[EACH]:10.2f}")
    print("\n".join(lines))
    return 0


def figures(found: dict[str, list[Measured]], pick: Callable[[Measured], Any]) -> dict[str, list[float]]:
    """One figure of each run."""
    return {side: [pick(one) for one in those] for side, those in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sides", default=f"{LEAST},{ONCE}")
    parser.add_argument("--quix", default="", metavar="PYTHON")
    parser.add_argument("--per-partition", action="store_true")
    parser.add_argument("--partitions", default="1,10,50,100")
    given = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs, {given.records:,} records of {SIZE} bytes", flush=True)
    with broker(NAME) as sandbox:
        ends = (by_producers if given.per_partition else by_guarantee)(sandbox, given)
    sys.exit(ends)


if __name__ == "__main__":
    main()
