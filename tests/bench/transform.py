"""Records read, passed through Python and written again: ``connectctl run`` of a transform, exactly once and at least once.

    python tests/bench/transform.py [--records 2000000] [--runs 3] [--sides at-least-once,exactly-once]

One broker, an input topic of 256-byte records in four partitions, two tasks on Spark ``local[2]``, a class whose ``process``
gives back each record, the defaults of ``commit.interval.ms`` (100) and ``max.poll.records`` (500). The sides take turns,
after a turn of each that is not counted. The broker has the JVM options of Kafka's own start scripts.

What is timed: from the broker's own time of the first record in the output topic to the moment at which the last transaction
is seen committed, by read_committed end offsets that are asked for every 50 ms. The start of Spark and the first rebalance
are out. Each run is checked with read_committed: every record is there once.

Fails where exactly once has less than 0.8 of the records/s of at least once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from connectctl.ops.sandbox import cluster, launch
from topiccopy import (  # type: ignore[import-not-found]  # beside this file
    JVM,
    PARTITIONS,
    QUIET,
    SIZE,
    SOURCE,
    Watch,
    fill,
)

GOAL = 0.8
NAME = "transform"
PLUGIN = """
from connectctl.ops.task_runtime.spi.transform import Transform


class Same(Transform):
    def process(self, records):
        return list(records)
"""


def begin(bootstrap: str, topic: str, records: int) -> float:
    """The broker's time of the first record, once it is seen that every record is there once."""
    client = {"bootstrap.servers": bootstrap, "group.id": NAME, "isolation.level": "read_committed"}
    consumer = Consumer(client | {"enable.partition.eof": True, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
    seen: Counter[bytes] = Counter()
    first, ends = float("inf"), 0
    while ends < PARTITIONS:
        for message in consumer.consume(10_000, timeout=5):
            if message.error() is not None:
                ends += 1
                continue
            first = min(first, message.timestamp()[1])
            seen[message.value()[:10]] += 1
    consumer.close()
    assert seen.total() == records, f"{topic} has {seen.total()} records of {records}"
    assert set(seen.values()) == {PARTITIONS}, "a record is there twice"
    return first / 1000


def timed(sandbox: cluster.Sandbox, guarantee: str, turn: int, records: int) -> float:
    """Seconds of one run."""
    bootstrap, name = sandbox.bootstrap_servers, f"{guarantee}-{turn}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    stamps = {"message.timestamp.type": "LogAppendTime"}
    admin.create_topics([NewTopic(name, PARTITIONS, 1, config=stamps)])[name].result()
    with Watch(bootstrap, name).watching() as watch:
        run(name, guarantee)
        watch.wait(records)
    took: float = watch.changed - begin(bootstrap, name, records)
    admin.delete_topics([name])[name].result()
    return took


def run(name: str, guarantee: str) -> None:
    """``connectctl run``, until nothing comes any more."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "same.py").write_text(PLUGIN)
        job = Path(directory) / "job.yaml"
        config = {"connector.class": "same:Same", "topics": SOURCE, "topic": name, "tasks.max": "2"}
        wish = {"name": name, "config": config | {"guarantee": guarantee}, "spark": {"master": "local[2]"}}
        job.write_text(json.dumps(wish | {"until": {"idle": f"{QUIET:g}s"}}))
        command = [sys.executable, "-m", "connectctl", "--context", f"sandbox-{NAME}", "--group-id", f"g-{name}"]
        done = subprocess.run([*command, "run", str(job), "--yes"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sides", default="at-least-once,exactly-once")
    given = parser.parse_args()
    rates: dict[str, list[float]] = {side: [] for side in given.sides.split(",")}
    print(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs, {given.records:,} records of {SIZE} bytes", flush=True)
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        launch._HEAP, launch._JVM = "-Xmx2g", JVM
        sandbox = cluster.up(cluster.SandboxSpec(name=NAME, workers=0))
        try:
            fill(sandbox.bootstrap_servers, given.records)
            for turn in range(given.runs + 1):
                for side in rates:
                    rate = given.records / timed(sandbox, side, turn, given.records)
                    counted = "" if turn else "   (not counted)"
                    print(f"  {side:14} {rate:9,.0f} records/s, load {os.getloadavg()[0]:.1f}{counted}", flush=True)
                    rates[side] += [rate] if turn else []
        finally:
            cluster.down(NAME)
    medians = {side: statistics.median(found) for side, found in rates.items()}
    ratio = medians["exactly-once"] / medians["at-least-once"]
    print(", ".join(f"{side} {median:,.0f} records/s" for side, median in medians.items()), f"ratio {ratio:.2f}")
    sys.exit(0 if ratio >= GOAL else f"exactly once: at least {GOAL} of at least once is wanted")


if __name__ == "__main__":
    main()
