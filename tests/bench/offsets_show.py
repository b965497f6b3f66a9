"""``offsets show -o json`` beside a bare consumer of the same topic, in the same run; prints a
ratio.

    python tests/bench/offsets_show.py [--records 1000000] [--partitions 100000] [--runs 5]

Both are whole processes, start-up included. The bare consumer is librdkafka's under Python,
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


def measure(command: list[str]) -> tuple[float, float]:
    """Seconds and megabytes (greatest resident size) of one run of ``command``."""
    started = time.perf_counter()
    with Path(os.devnull).open("w") as nowhere:
        process = subprocess.Popen(command, stdout=nowhere)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def main() -> None:
    """Fill a topic on a sandbox of its own, and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    wish = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        sandbox = cluster.up(cluster.SandboxSpec(name="bench", workers=1))
        try:
            fill(sandbox.bootstrap_servers, "bench-offsets", wish.records, wish.partitions)
            compare(sandbox, wish.records, wish.runs)
        finally:
            cluster.down("bench")


def compare(sandbox: cluster.Sandbox, records: int, runs: int) -> None:
    """Alternate the two and print medians and their ratio."""
    bare = [sys.executable, "-c", BARE, sandbox.bootstrap_servers, "bench-offsets", str(records)]
    ours = [
        sys.executable,
        "-m",
        "connectctl.cli",
        "--context",
        "sandbox-bench",
        "--offsets-topic",
        "bench-offsets",
    ]
    ours += ["offsets", "show", "-o", "json"]
    results: dict[str, list[tuple[float, float]]] = {"bare": [], "ours": []}
    for _ in range(runs):
        results["bare"].append(measure(bare))
        results["ours"].append(measure(ours))
    seconds = {name: statistics.median(s for s, _ in found) for name, found in results.items()}
    memory = {name: max(m for _, m in found) for name, found in results.items()}
    print(f"records {records:,}, runs {runs}")
    for name in results:
        print(
            f"{name:5} {seconds[name]:6.2f} s   {memory[name]:6.0f} MB   "
            f"{records / seconds[name]:12,.0f} records/s"
        )
    print(f"ratio {seconds['ours'] / seconds['bare']:.2f}")


if __name__ == "__main__":
    main()
