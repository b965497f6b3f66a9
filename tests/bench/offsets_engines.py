"""The local engine beside Spark on the same topics: looking at one connector for a merge; prints a table.

    python tests/bench/offsets_engines.py [--records 100000 1000000 5000000] [--runs 3] [--master 'local[2]']

The global topic holds ten connectors with a source partition for every ten records; the dedicated one what the first of
them last said, one in a hundred otherwise. Both are whole processes, start-up and Spark session included, that alternate;
medians are compared. Memory is the greatest sum of resident sizes of a process and its children.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import psutil
from connectctl.ops.sandbox import cluster

LOOK = """
import sys
from pathlib import Path
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.spark.session import open_session
from connectctl.ops.jobs.offsets_engine import Spark
from connectctl.ops.operations.offsets.engine import Asked, Local
from connectctl.ops.operations.offsets.observe import Sources
from connectctl.ops.operations.offsets.snapshot import WorkerFacts
from connectctl.ops.operations.offsets.changes import MergeOffsets
engine, bootstrap, topic, master, log = sys.argv[1:]
kafka = Kafka({"bootstrap.servers": bootstrap}, timeout=60)
sources = Sources(kafka, bootstrap, None, topic, lambda b, o: kafka, WorkerFacts, 5.0)
chosen = Local() if engine == "local" else Spark(lambda: open_session(master, {}, Path(log)), Path(log))
wish = MergeOffsets("c0", "dedicated", "global")
view = chosen.view(sources, [Asked(wish, topic + "-own")])
print(len(view.decide(wish).writes), sum(len(at.records) for at in view.places["c0"]))
"""


def fill(bootstrap: str, topic: str, records: int) -> None:
    """The two topics, written as Connect would lay them out."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    names = [topic, f"{topic}-own"]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = admin.create_topics([NewTopic(name, 25, 1, config={"cleanup.policy": "compact"}) for name in names])
    for future in made.values():
        future.result()
    client = {"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", "linger.ms": 50}
    producer = Producer(client | {"queue.buffering.max.messages": 500_000})
    partitions = max(records // 10, 10)

    def write(to: str, n: int, value: int) -> None:
        key = f'["c{n % 10}",{{"server":"db-1","table":"public.orders_{n}"}}]'
        while True:
            try:
                producer.produce(to, key=key, value=f'{{"lsn":{value},"txId":{value // 7},"snapshot":false}}')
                return
            except BufferError:
                producer.poll(0.1)

    for n in range(records):
        if n % 10_000 == 0:
            producer.poll(0)
        write(topic, n % partitions, n)
    for n in range(0, partitions, 10):
        last = n + (records - 1 - n) // partitions * partitions
        write(names[1], n, last + (n % 1000 == 0))
    producer.flush()


def measure(command: list[str]) -> tuple[float, float, str]:
    """Seconds, the greatest megabytes of the process and its children together, and what it printed."""
    started, most = time.perf_counter(), 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            most = max(most, _resident(watched))
            time.sleep(0.2)
        assert process.stdout is not None
        output = process.stdout.read()
    assert process.returncode == 0, command
    return time.perf_counter() - started, most, output.strip()


def _resident(process: psutil.Process) -> float:
    total = 0
    try:
        for one in (process, *process.children(recursive=True)):
            total += one.memory_info().rss
    except psutil.NoSuchProcess:
        pass
    return total / (1 << 20)


def main() -> None:
    """Fill topics of each size on a sandbox of its own, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="+", default=[100_000, 1_000_000, 5_000_000])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    wish = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        sandbox = cluster.up(cluster.SandboxSpec(name="bench", workers=0))
        try:
            print(f"{'records':>12} {'engine':8} {'seconds':>8} {'MB':>6}  writes, records kept", flush=True)
            for records in wish.records:
                fill(sandbox.bootstrap_servers, f"bench-{records}", records)
                compare(sandbox.bootstrap_servers, records, wish.runs, wish.master, f"{state}/spark.log")
        finally:
            cluster.down("bench")


def compare(bootstrap: str, records: int, runs: int, master: str, log: str) -> None:
    """Alternate the two and print their medians."""
    results: dict[str, list[tuple[float, float, str]]] = {"local": [], "spark": []}
    for _ in range(runs):
        for engine, found in results.items():
            found.append(measure([sys.executable, "-c", LOOK, engine, bootstrap, f"bench-{records}", master, log]))
    for engine, found in results.items():
        seconds, memory = (statistics.median(values) for values in list(zip(*found, strict=True))[:2])
        print(f"{records:12,} {engine:8} {seconds:8.1f} {memory:6.0f}  {found[0][2]}", flush=True)


if __name__ == "__main__":
    main()
