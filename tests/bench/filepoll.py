"""Lines of a file into a topic, exactly once: ``connectctl run`` beside Kafka's own
FileStreamSource on a real worker.

    python tests/bench/filepoll.py [--lines 1000000] [--runs 3] [--boundary poll,interval]

One broker, one file of lines of 100 bytes, one task on both sides (ours on Spark ``local[1]``), the
same boundary of transactions and the same 2000 lines for each poll, FileStreamSource's default. The
two take turns, after a turn of each that is not counted, so that the worker's JVM is warm. Broker
and worker have the JVM options of Kafka's own start scripts, and not those of a sandbox, which is
made for a short life: without its second compiler, Java would be slower than it is.

What is timed is the same for both: from the broker's own time of the first record in the topic to
that of the last one. So the start of Spark's session and of the worker is out, as is the way to the
first record; what a task does for each batch, transactions and offsets included, is in. Each run is
checked with read_committed: every line is there once.

Fails where the ratio of the medians is below 1.5.
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
from datetime import UTC, datetime
from pathlib import Path

import httpx
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from connectctl.ops.sandbox import cluster, launch

GOAL = 1.5
NAME = "filepoll"
JAVA = "org.apache.kafka.connect.file.FileStreamSourceConnector"
STRING = "org.apache.kafka.connect.storage.StringConverter"
INTERVAL_MS = 1000
DEADLINE = 600.0
JVM = (
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-Djava.awt.headless=true",
)


def write_file(path: Path, lines: int) -> None:
    """Lines of 100 bytes, each with its number."""
    with path.open("w") as file:
        file.writelines(f"{n:010d} {'x' * 88}\n" for n in range(lines))


def topic(bootstrap: str, name: str) -> str:
    """A new topic whose records have the broker's time."""
    config = {"message.timestamp.type": "LogAppendTime"}
    # a name of its own, or it is gone before the answer comes
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result()
    return name


def config(file: Path, name: str, boundary: str) -> dict[str, str]:
    """The connector's configuration, the same for both."""
    return {
        "connector.class": JAVA,
        "tasks.max": "1",
        "file": str(file),
        "topic": name,
        "value.converter": STRING,
        "transaction.boundary": boundary,
        "transaction.boundary.interval.ms": str(INTERVAL_MS),
    }


def end(bootstrap: str, name: str) -> int:
    """How far a reader with read_committed gets: records and markers."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": NAME, "isolation.level": "read_committed"}
    )
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=30)[1])
    finally:
        consumer.close()


def seconds(bootstrap: str, name: str, lines: int) -> float:
    """From the first record to the last, once it is seen that every line is there once and in its
    place.
    """
    client = {"bootstrap.servers": bootstrap, "group.id": NAME, "isolation.level": "read_committed"}
    consumer = Consumer(client | {"enable.partition.eof": True, "enable.auto.commit": False})
    consumer.assign([TopicPartition(name, 0, 0)])
    first = last = count = 0
    while True:
        for message in consumer.consume(10_000, timeout=5):
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                consumer.close()
                assert count == lines, f"{name} has {count} records of {lines}"
                return (last - first) / 1000
            assert int(message.value()[:10]) == count, (
                f"{name} has {message.value()!r} in place of line {count}"
            )
            last = message.timestamp()[1]
            first = first or last
            count += 1


def theirs(sandbox: cluster.Sandbox, file: Path, lines: int, boundary: str, turn: int) -> float:
    """One run of the worker's connector."""
    name = topic(sandbox.bootstrap_servers, f"theirs-{boundary}-{turn}")
    url = f"{sandbox.rest_urls[0]}/connectors/{name}"
    httpx.put(f"{url}/config", json=config(file, name, boundary), timeout=60).raise_for_status()
    late = time.monotonic() + DEADLINE
    while end(sandbox.bootstrap_servers, name) < lines:
        assert time.monotonic() < late, f"{name}: {httpx.get(f'{url}/status', timeout=60).text}"
        time.sleep(1)
    time.sleep(INTERVAL_MS / 1000 + 1)  # the last transaction of an interval
    httpx.delete(url, timeout=60).raise_for_status()
    return seconds(sandbox.bootstrap_servers, name, lines)


def ours(sandbox: cluster.Sandbox, file: Path, lines: int, boundary: str, turn: int) -> float:
    """One run of ours."""
    name = topic(sandbox.bootstrap_servers, f"ours-{boundary}-{turn}")
    job = file.with_name(f"{name}.yaml")
    wish = {"name": name, "config": config(file, name, boundary) | {"until.end": "true"}}
    job.write_text(json.dumps(wish | {"spark": {"master": "local[1]"}, "until": {"forever": True}}))
    command = [
        sys.executable,
        "-m",
        "connectctl.cli",
        "--context",
        f"sandbox-{NAME}",
        "--group-id",
        f"{NAME}-{turn}",
    ]
    done = subprocess.run(
        [*command, "run", str(job), "--yes"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return seconds(sandbox.bootstrap_servers, name, lines)


def compare(sandbox: cluster.Sandbox, file: Path, lines: int, boundary: str, runs: int) -> float:
    """Print what each took, and the ratio."""
    sides = {"FileStreamSource on a worker": theirs, "connectctl run": ours}
    rates: dict[str, list[float]] = {side: [] for side in sides}
    for turn in range(runs + 1):
        for side, run in sides.items():
            rate = lines / run(sandbox, file, lines, boundary, turn)
            print(
                f"  {boundary}, turn {turn}: {side} {rate:,.0f} records/s",
                file=sys.stderr,
                flush=True,
            )
            if turn:
                rates[side].append(rate)
    shown = boundary if boundary == "poll" else f"{boundary} {INTERVAL_MS} ms"
    medians = {side: statistics.median(found) for side, found in rates.items()}
    for side, median in medians.items():
        each = ", ".join(f"{rate:,.0f}" for rate in rates[side])
        print(f"{shown:17} {side:30} {median:9,.0f} records/s   ({each})")
    a, b = medians.values()
    print(f"{shown:17} ratio {b / a:.2f}, load {os.getloadavg()[0]:.1f}", flush=True)
    return b / a


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--boundary", default="poll,interval")
    given = parser.parse_args()
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs, {given.lines:,} lines of 100 bytes",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        launch._HEAP, launch._JVM = "-Xmx2g", JVM
        file = Path(state) / "lines.txt"
        write_file(file, given.lines)
        sandbox = cluster.up(cluster.SandboxSpec(name=NAME, workers=1, support="enabled"))
        try:
            ratios = [
                compare(sandbox, file, given.lines, each, given.runs)
                for each in given.boundary.split(",")
            ]
        finally:
            cluster.down(NAME)
    sys.exit(f"at least {GOAL} is wanted" if min(ratios) < GOAL else 0)


if __name__ == "__main__":
    main()
