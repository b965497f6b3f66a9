"""The engines that read offsets topics beside a bare consumer of the same topics: one connector's
merge; prints a table.

    python tests/bench/offsets_engines.py [--partitions 100000 1000000 3000000 10000000] [--runs 3] [--engines local spark]
        [--master 'local[2]'] [--python PYTHON]

The global topic holds ten connectors, with a record for each source partition; the dedicated one
what the first of them last said, one in a hundred otherwise. All are whole processes, start-up and
Spark session included, that alternate; medians are compared. Memory is the greatest sum of resident
sizes of a process and its children. ``--python`` is the interpreter of another version, whose local
engine runs in the same minutes. ``bare`` is a consumer with librdkafka's defaults, ``bare, tuned``
one with the settings of our reader.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import psutil
from connectctl.ops.sandbox import cluster

LOOK = """
import gc
import sys
from pathlib import Path
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.spark.session import open_session
from connectctl.ops.jobs.offsets_engine import Spark
from connectctl.ops.operations.offsets.engine import Local, ReadRequest
from connectctl.ops.operations.offsets.observe import Sources
from connectctl.ops.operations.offsets.snapshot import WorkerFacts
from connectctl.ops.operations.offsets.changes import MergeOffsets
engine, bootstrap, topic, master, log = sys.argv[1:]
kafka = Kafka({"bootstrap.servers": bootstrap}, timeout=60)
sources = Sources(kafka, bootstrap, None, topic, lambda b, o: kafka, WorkerFacts, 5.0)
chosen = Spark(lambda: open_session(master, {}, Path(log)), Path(log)) if engine == "spark" else Local()
request = MergeOffsets("c0", "dedicated", "global")
gc.disable()  # as commands do
view = chosen.view(sources, [ReadRequest(request, topic + "-own")])
print(len(view.decide(request).writes), sum(len(at.records) for at in view.topic_states["c0"]))
"""

BARE = """
import sys
from confluent_kafka import OFFSET_END, Consumer, TopicPartition
tuned = {"queued.min.messages": 500_000, "fetch.wait.max.ms": 20} if sys.argv[1] == "bare, tuned" else {}
consumer = Consumer({"bootstrap.servers": sys.argv[2], "group.id": "bare", "isolation.level": "read_committed",
                     "enable.auto.commit": False, "auto.offset.reset": "earliest", **tuned})
places = [TopicPartition(topic, p, 0) for topic in (sys.argv[3], sys.argv[3] + "-own") for p in range(25)]
left = sum(consumer.get_watermark_offsets(place)[1] for place in places)
consumer.assign(places)
while left > 0:
    left -= len(consumer.consume(10_000, 0.1))
"""


def fill(bootstrap: str, topic: str, partitions: int) -> None:
    """Write the two topics as Connect would lay them out."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    names = [topic, f"{topic}-own"]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = admin.create_topics(
        [NewTopic(name, 25, 1, config={"cleanup.policy": "compact"}) for name in names]
    )
    for future in made.values():
        future.result()
    client = {"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", "linger.ms": 50}
    producer = Producer(client | {"queue.buffering.max.messages": 500_000})

    def write(to: str, n: int, value: int) -> None:
        key = f'["c{n % 10}",{{"server":"db-1","table":"public.orders_{n}"}}]'
        while True:
            try:
                producer.produce(
                    to, key=key, value=f'{{"lsn":{value},"txId":{value // 7},"snapshot":false}}'
                )
                return
            except BufferError:
                producer.poll(0.1)

    for n in range(partitions):
        if n % 10_000 == 0:
            producer.poll(0)
        write(topic, n, n)
        if n % 10 == 0:
            write(names[1], n, n + (n % 1000 == 0))
    producer.flush()


class Measured(NamedTuple):
    """What one process and its children took together."""

    seconds: float
    cpu: float
    megabytes: float
    output: str


def measure(command: list[str]) -> Measured:
    """Run ``command`` and wait for it. What its processes took in the last tenth of a second is not
    seen.
    """
    started, most, cpu = time.perf_counter(), 0.0, dict[int, float]()
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(command, stdout=output) as process,
    ):
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            resident = 0
            for one in _family(watched):
                with contextlib.suppress(psutil.NoSuchProcess):
                    resident += one.memory_info().rss
                    cpu[one.pid] = sum(one.cpu_times()[:2])
            most = max(most, resident / (1 << 20))
            time.sleep(0.1)
        seconds = time.perf_counter() - started
        assert process.returncode == 0, command
        output.seek(0)
        return Measured(seconds, sum(cpu.values()), most, output.read().strip())


def _family(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def main() -> None:
    """Fill topics of each size on a sandbox of its own, and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--partitions", type=int, nargs="+", default=[100_000, 1_000_000, 3_000_000, 10_000_000]
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--engines", nargs="+", default=["local", "spark"])
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--python", help="of another version")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        sandbox = cluster.up(cluster.SandboxSpec(name="bench", workers=0))
        try:
            for partitions in options.partitions:
                fill(sandbox.bootstrap_servers, f"bench-{partitions}", partitions)
                compare(sandbox.bootstrap_servers, partitions, options, f"{state}/spark.log")
        finally:
            cluster.down("bench")


def compare(bootstrap: str, partitions: int, options: argparse.Namespace, log: str) -> None:
    """Alternate all, and print their medians."""
    topic = f"bench-{partitions}"
    commands = {
        name: [sys.executable, "-c", BARE, name, bootstrap, topic]
        for name in ("bare", "bare, tuned")
    }
    for engine in options.engines:
        commands[engine] = [
            sys.executable,
            "-c",
            LOOK,
            engine,
            bootstrap,
            topic,
            options.master,
            log,
        ]
    if options.python:
        commands["local, other"] = [
            options.python,
            "-c",
            LOOK,
            "local",
            bootstrap,
            topic,
            options.master,
            log,
        ]
    results: dict[str, list[Measured]] = {name: [] for name in commands}
    for _ in range(options.runs):
        for name, command in commands.items():
            results[name].append(measure(command))
    bare = statistics.median(each.seconds for each in results["bare"])
    print(f"{partitions:,} source partitions, load {os.getloadavg()[0]:.1f}", flush=True)
    for name, found in results.items():
        seconds = statistics.median(each.seconds for each in found)
        cpu = statistics.median(each.cpu for each in found)
        memory = max(each.megabytes for each in found)
        row = f"{seconds:8.1f} s {seconds / bare:6.2f} x  cpu {cpu:6.1f} s {memory:6.0f} MB"
        print(f"  {name:14} {row}  {found[0].output}", flush=True)


if __name__ == "__main__":
    main()
