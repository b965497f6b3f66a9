"""Records read, passed through Python and written again by ``connectctl run`` of a transform, one
way beside another.

    python tests/bench/transform.py [--records 2000000] [--runs 3]     exactly once beside at least once
    python tests/bench/transform.py --quix /tmp/quix/bin/python        and Quix Streams, exactly once, beside both

One broker, an input topic of 256-byte records in four partitions, two tasks on Spark ``local[2]``,
a class whose ``process`` gives each record's value in capitals, the defaults of
``commit.interval.ms`` (100) and ``max.poll.records`` (500). The sides take turns, after a turn of
each that is not counted. The broker has the JVM options of Kafka's own start scripts.

Quix Streams is optional: ``python -m venv /tmp/quix && /tmp/quix/bin/pip install quixstreams``
makes a Python that has it. Two processes of one application do the same to the same records, with
``processing_guarantee="exactly-once"`` and a ``commit_interval`` of 100 ms, all else by its
defaults. They join at once.

What is timed: from the broker's own time of the first record in the output topic to the moment at
which the last transaction is seen committed, by read_committed end offsets that are asked for every
50 ms. The start of Spark and the first rebalance are out. Each run is checked with read_committed:
exactly once every record is there once, and in order where two of an input partition are in one of
the output. At least once every record is there; some may be again, of the rebalance at the start.

Fails where exactly once has less than 0.8 of the records/s of at least once.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import quixpeer  # type: ignore[import-not-found]  # beside this file
from benchbroker import (  # type: ignore[import-not-found]  # beside this file
    QUIET,
    SIZE,
    Watch,
    begin,
    broker,
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
NAME, SOURCE, TASKS, PARTITIONS = "transform", "in", 2, 4
ONCE, LEAST, QUIX = "exactly-once", "at-least-once", "quix"
PLUGIN_FILE, PLUGIN_CLASS = "capitals.py", "capitals:Capitals"
PLUGIN = """
from connectctl.transform import Record, Transform


class Capitals(Transform):
    def process(self, records):
        return [Record(r.value.upper(), r.key) for r in records]
"""


@dataclass(frozen=True)
class Bench:
    """``records`` in the topic ``SOURCE``; ``quix`` is a Python that has Quix Streams."""

    sandbox: cluster.Sandbox
    records: int
    quix: str

    def measure(self, side: str, turn: int) -> float:
        """Records/s of one run of one side, into a topic of its own."""
        bootstrap, name = self.sandbox.bootstrap_servers, f"{side}-{turn}"
        create_topic(bootstrap, name, PARTITIONS)
        with Watch(bootstrap, name, PARTITIONS).watching() as watch:
            if side == QUIX:
                with quixpeer.processes(self.quix, bootstrap, name, SOURCE, name, TASKS):
                    watch.wait(self.records)
            else:
                self._run(name, side)
                watch.wait(self.records)
        first = begin(bootstrap, name, self.records, PARTITIONS, PARTITIONS, again=side == LEAST)
        took: float = watch.changed - first
        delete_topic(bootstrap, name)
        return self.records / took

    def _run(self, name: str, guarantee: str) -> None:
        """``connectctl run``, until nothing comes any more."""
        config = {
            "connector.class": PLUGIN_CLASS,
            "topics": SOURCE,
            "topic": name,
            "tasks.max": str(TASKS),
        }
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / PLUGIN_FILE).write_text(PLUGIN)
            wish, until = config | {"guarantee": guarantee}, {"idle": f"{QUIET:g}s"}
            with running(self.sandbox, Path(directory), name, wish, until=until) as process:
                result(Path(directory), process)


def compare(sandbox: cluster.Sandbox, given: argparse.Namespace) -> str | int:
    """Exactly once beside at least once and others; what is missed, or 0."""
    sides = given.sides.split(",")
    if given.quix:
        found = quixpeer.version(given.quix)
        print(
            f"Quix Streams {found}"
            if found
            else f"Quix Streams is not installed for {given.quix}: it is left out"
        )
        sides += [QUIX] if found else []
    else:
        print("Quix Streams is left out: --quix names a Python that has it")
    fill(sandbox.bootstrap_servers, SOURCE, PARTITIONS, given.records)
    bench = Bench(sandbox, given.records, given.quix)
    rates = medians(
        in_turns(sides, given.runs, bench.measure, lambda rate: f"{rate:9,.0f} records/s")
    )
    for side, rate in rates.items():
        beside = "".join(
            f", {rate / rates[other]:.2f} of {other}"
            for other in (LEAST, QUIX)
            if other in rates and other != side
        )
        print(f"{side:14} {rate:9,.0f} records/s{beside}")
    missed = {ONCE, LEAST} <= rates.keys() and rates[ONCE] / rates[LEAST] < GOAL
    return f"exactly once: at least {GOAL} of at least once is wanted" if missed else 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sides", default=f"{LEAST},{ONCE}")
    parser.add_argument("--quix", default="", metavar="PYTHON")
    given = parser.parse_args()
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs, {given.records:,} records of "
        f"{SIZE} bytes",
        flush=True,
    )
    with broker(NAME) as sandbox:
        ends = compare(sandbox, given)
    sys.exit(ends)


if __name__ == "__main__":
    main()
