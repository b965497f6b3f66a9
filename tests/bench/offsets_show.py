"""``offsets show -o json`` beside a bare consumer of the same topic, in the same run; prints
ratios.

    python tests/bench/offsets_show.py [--records 1000000] [--partitions 100000] [--runs 5]
        [--python PYTHON]

All are whole processes, start-up included. ``--python`` is the interpreter of another version,
whose command runs in the same minutes. The bare consumer is librdkafka's under Python,
read_committed, with its own defaults, in batches, and throws everything away. Runs alternate; the
medians are compared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from connectctl.ops.sandbox import cluster

BARE = """
import sys
from confluent_kafka import Consumer, TopicPartition, KafkaError
bootstrap, topic, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bare", "isolation.level": "read_committed",
                     "enable.auto.commit": False})
consumer.assign([TopicPartition(topic, p, 0) for p in range(25)])
seen = 0
while seen < wanted:
    seen += len(consumer.consume(10_000, 0.1))
"""


def fill(bootstrap: str, topic: str, records: int, partitions: int) -> None:
    """``records`` offsets of ``partitions`` source partitions, as an exactly-once task would leave
    them.
    """
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 25, 1, config={"cleanup.policy": "compact"})])[
        topic
    ].result()
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "partitioner": "murmur2_random",
            "linger.ms": 50,
            "queue.buffering.max.messages": 500_000,
        }
    )
    for n in range(records):
        if n % 10_000 == 0:
            producer.poll(0)
        key = f'["orders",{{"server":"db-1","table":"public.orders_{n % partitions}"}}]'
        while True:
            try:
                producer.produce(
                    topic, value=f'{{"lsn":{n},"txId":{n // 7},"snapshot":false}}', key=key
                )
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


class Measured(NamedTuple):
    """What one run of a command took; ``megabytes`` is the greatest resident size."""

    seconds: float
    cpu: float
    megabytes: float


def measure(command: list[str]) -> Measured:
    """What one run of ``command`` takes."""
    started = time.perf_counter()
    with Path(os.devnull).open("w") as nowhere:
        process = subprocess.Popen(command, stdout=nowhere)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    seconds = time.perf_counter() - started
    return Measured(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main() -> None:
    """Fill a topic on a sandbox of its own, and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--python", help="interpreter of another version, measured as well")
    wish = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        sandbox = cluster.up(cluster.SandboxSpec(name="bench", workers=1))
        try:
            fill(sandbox.bootstrap_servers, "bench-offsets", wish.records, wish.partitions)
            compare(sandbox, wish.records, wish.runs, wish.python)
        finally:
            cluster.down("bench")


def compare(sandbox: cluster.Sandbox, records: int, runs: int, python: str | None) -> None:
    """Alternate the commands and print medians and their ratios."""
    bare = [sys.executable, "-c", BARE, sandbox.bootstrap_servers, "bench-offsets", str(records)]
    options = ["--context", "sandbox-bench", "--offsets-topic", "bench-offsets"]
    show = ["-m", "connectctl.cli", *options, "offsets", "show", "-o", "json"]
    commands = {"bare": bare, "ours": [sys.executable, *show]}
    if python:
        commands["other"] = [python, *show]
    results: dict[str, list[Measured]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            results[name].append(measure(command))
    medians = {
        name: Measured(*map(statistics.median, zip(*found, strict=True)))
        for name, found in results.items()
    }
    print(f"records {records:,}, runs {runs}, load {os.getloadavg()[0]:.0f}")
    for name, found in medians.items():
        print(
            f"{name:5} {found.seconds:6.2f} s   cpu {found.cpu:6.2f} s   {found.megabytes:6.0f} MB"
            f"   {found.seconds / medians['bare'].seconds:5.2f} x"
        )


if __name__ == "__main__":
    main()
