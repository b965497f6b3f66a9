"""What exactly-once costs: ``connectctl run`` of a file, exactly once beside at least once, by the
length of transactions.

    python tests/bench/guarantee.py [--sizes 100,1000] [--intervals 1000,100] [--runs 3]

One broker, one file of lines of so many bytes, one task on Spark ``local[1]``, FileStreamSource's
default of 20,000 lines for each poll. Exactly once a transaction takes what is polled in the
interval (``transaction.boundary.interval.ms``), or as much as the promised latency lets it
(``transaction.boundary.latency.ms``); at least once offsets are flushed every
``offset.flush.interval.ms`` of the same length. All take turns.

What is timed is the same for all: from the broker's own time of the first record in the topic to
that of the last one. Each run is checked with read_committed: every line is there once, and in
order. Fails where the median with transactions of 1 s is below 0.97 of that of at-least-once, or
with 100 ms below 0.90.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from benchbroker import broker, delete_topic, in_turns, medians, result, running  # type: ignore[import-not-found]

# beside this file
from filepoll import JAVA, STRING, seconds, topic  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from connectctl.ops.sandbox import cluster

NAME = "guarantee"
GOALS = {1000: 0.97, 100: 0.90}


def sides(interval: int) -> dict[str, dict[str, str]]:
    """Properties of each side."""
    return {
        "at-least-once": {
            "exactly.once.source.support": "disabled",
            "offset.flush.interval.ms": str(interval),
        },
        "interval": {
            "transaction.boundary": "interval",
            "transaction.boundary.interval.ms": str(interval),
        },
        "latency": {"transaction.boundary.latency.ms": str(interval)},
    }


def write_file(path: Path, size: int, lines: int) -> None:
    """Lines of so many bytes, each with its number."""
    pad = "x" * (size - 12)
    with path.open("w") as file:
        file.writelines(f"{n:010d} {pad}\n" for n in range(lines))


def rate(
    sandbox: cluster.Sandbox, file: Path, lines: int, side: str, interval: int, turn: int
) -> float:
    """Records per second of one run."""
    name = topic(sandbox.bootstrap_servers, f"{file.stem}-{side}-{interval}-{turn}")
    config = {
        "connector.class": JAVA,
        "file": str(file),
        "topic": name,
        "value.converter": STRING,
        "until.end": "true",
    }
    spark = {"master": "local[1]"}
    with tempfile.TemporaryDirectory() as directory:
        whole = config | sides(interval)[side]
        with running(
            sandbox, Path(directory), name, whole, until={"forever": True}, spark=spark
        ) as process:
            result(Path(directory), process)
    took: float = seconds(sandbox.bootstrap_servers, name, lines)
    delete_topic(sandbox.bootstrap_servers, name)
    return lines / took


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="100,1000")
    parser.add_argument("--intervals", default="1000,100")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--sides", default="at-least-once,interval,latency")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs, files of {given.megabytes} MB",
        flush=True,
    )
    lines, missed = [], []
    with broker(NAME) as sandbox:
        for size in map(int, given.sizes.split(",")):
            file, count = (
                Path(os.environ["XDG_STATE_HOME"]) / f"lines-{size}",
                given.megabytes * 1_000_000 // size,
            )
            write_file(file, size, count)
            for interval in map(int, given.intervals.split(",")):

                def one(
                    side: str,
                    turn: int,
                    file: Path = file,
                    count: int = count,
                    interval: int = interval,
                ) -> float:
                    return rate(sandbox, file, count, side, interval, turn)

                print(f"{size} bytes, {interval} ms", flush=True)
                found = medians(
                    in_turns(
                        given.sides.split(","),
                        given.runs,
                        one,
                        "{:9,.0f} records/s".format,
                        warm=False,
                    )
                )
                for side, of in found.items():
                    share = of / found["at-least-once"]
                    lines.append(
                        f"{size:5} bytes {interval:5} ms  {side:14} {of:9,.0f} records/s  "
                        f"{share:.2f}"
                    )
                    if share < GOALS.get(interval, 0):
                        missed.append(f"{share:.2f} of {side} with {size} bytes and {interval} ms")
    print("\n".join(lines))
    sys.exit(f"below the goal: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
