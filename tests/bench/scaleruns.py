"""What runs on Spark at the sizes of real companies: how a copy of many partitions starts, and an
audit; see docs/scale.md.

    python tests/bench/scaleruns.py copy [--shapes 4:1000,100:1000]
    python tests/bench/scaleruns.py audit [--records 10000000] [--size 100] [--partitions 12] [--runs 1]

A copy's start is timed from the command to the moment at which every partition has a committed
record, seen by the end offsets that are asked for every second. Megabytes are the greatest sum of
resident sizes of a command, its JVM and its Python workers, which share pages: those are counted
for each.
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
from pathlib import Path

import psutil
from audit import HEADERS, measure  # type: ignore[import-not-found]  # beside this file
from confluent_kafka import IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

# beside this file
from scale import connectctl, resident, sandbox  # type: ignore[import-not-found]
from topiccopy import SOURCE, config  # type: ignore[import-not-found]  # beside this file

BARE = """
import sys
from confluent_kafka import Consumer, TopicPartition
# librdkafka's own settings leave a full queue alone for a second, in which it runs dry.
waiting = {} if "as-it-comes" in sys.argv else {"fetch.queue.backoff.ms": 10, "queued.max.messages.kbytes": 131072}
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "bare", "isolation.level": "read_committed",
                     "enable.auto.commit": False} | waiting)
consumer.assign([TopicPartition(sys.argv[2], p, 0) for p in range(int(sys.argv[4]))])
left = int(sys.argv[3])
while left > 0:
    left -= len(consumer.consume(10_000, 0.1))
"""
FILL = """
import sys
import numpy as np, pyarrow as pa, pyarrow.compute as pc
from connectctl.ops.clients.kafka_protocol.batch_producer import BatchProducer
from connectctl.ops.kafka.record_batch_encoder import RecordColumns, batches
from connectctl.ops.kafka.topic_partition import TopicPartition
bootstrap, topic, (records, size, partitions) = sys.argv[1], sys.argv[2], map(int, sys.argv[3:])
producer = BatchProducer({"bootstrap.servers": bootstrap}, topic, transaction_timeout_ms=60_000, timeout=60)
producer.initialise(60)
producer.partitions(topic, 60)
each, pad = records // partitions, "x" * max(0, size - 40)
for first in range(0, each, 10_000):
    numbers = pa.array(np.arange(first, min(first + 10_000, each))).cast(pa.string())
    producer.add([TopicPartition(topic, task) for task in range(partitions)])
    for task in range(partitions):
        head, tail = '{"task":%d,"seq":' % task, ',"pad":"%s"}' % pad
        values = pc.binary_join_element_wise(pa.scalar(head), numbers, pa.scalar(tail), pa.scalar(""))
        keys = pa.array([b"task-%d" % task]).take(pa.array(np.zeros(len(numbers), np.int32)))
        for batch in batches(RecordColumns(values.cast(pa.binary()), keys), 16_384):
            producer.send(TopicPartition(topic, task), len(batch), batch.encode)
    producer.flush()
    producer.end(commit=True, patience=60)
producer.close()
"""
"""Transactions of 10,000 records in each partition, batches of the size that Java's producers
have.
"""
EACH = 20
"""Records of each partition of a copy."""
PATIENCE = 280.0
"""Seconds that a copy may take to start; a row then says so."""


def written(admin: AdminClient, topic: str, partitions: int) -> int:
    """How many partitions of ``topic`` have a committed record."""
    places = {TopicPartition(topic, p): OffsetSpec.latest() for p in range(partitions)}
    try:
        futures = admin.list_offsets(places, isolation_level=IsolationLevel.READ_COMMITTED)
        return sum(future.result().offset > 0 for future in futures.values())
    except KafkaException:
        return 0


def fill(bootstrap: str, partitions: int) -> None:
    """A source topic of so many partitions."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for n in range(EACH * partitions):
        producer.produce(SOURCE, b"record %d" % n, partition=n % partitions)
        producer.poll(0)
    producer.flush()


def compile_imports(bootstrap: str, config: Path) -> None:
    """Have Python compile what commands and Python workers import, as it is compiled where they are
    installed.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("nothing", 1, 1)])["nothing"].result()
    contexts = {"b": {"bootstrap_servers": bootstrap, "spark": {"master": "local[2]"}}}
    config.write_text(json.dumps({"current": "b", "contexts": contexts}))
    row = connectctl("--config", str(config), "audit", "nothing", "--engine", "spark")
    subprocess.run(row, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    runtime = "connectctl.ops.task_runtime"
    tasks = (
        f"import connectctl.cli.commands.run.execution, {runtime}.job.runner, "
        f"{runtime}.connectors.topic_copy.connector"
    )
    subprocess.run([sys.executable, "-c", tasks], check=True)


def copy_rows(wish: argparse.Namespace) -> None:
    """How long a copy takes to start."""
    for shape in wish.shapes.split(","):
        tasks, partitions = map(int, shape.split(":"))
        with (
            sandbox(workers=1, support="enabled") as up,
            tempfile.TemporaryDirectory() as directory,
        ):
            bootstrap, alias = up.bootstrap_servers, "ours"
            admin = AdminClient({"bootstrap.servers": bootstrap})
            topic = f"{alias}.{SOURCE}"
            for future in admin.create_topics(
                [NewTopic(t, partitions, 1) for t in (SOURCE, topic)]
            ).values():
                future.result()
            fill(bootstrap, partitions)
            compile_imports(bootstrap, Path(directory) / "config.yaml")
            job = Path(directory) / "job.yaml"
            properties = config(bootstrap, alias) | {"tasks.max": str(tasks)}
            job.write_text(
                json.dumps(
                    {
                        "name": alias,
                        "config": properties,
                        "spark": {"master": "local[2]"},
                        "until": {"idle": "5s"},
                    }
                )
            )
            command = connectctl(
                "--context", "sandbox-scale", "--group-id", "g", "run", str(job), "--yes"
            )
            copied(command, admin, topic, tasks, partitions)


def copied(command: list[str], admin: AdminClient, topic: str, tasks: int, partitions: int) -> None:
    """Run a copy to its end, and print how it started and what it took."""
    began, there, started = time.perf_counter(), 0, 0.0
    most: list[float] = []
    with (
        tempfile.TemporaryFile() as out,
        subprocess.Popen(command, stdout=out, stderr=out) as process,
    ):
        while process.poll() is None and time.perf_counter() - began < PATIENCE:
            if there < partitions and (there := written(admin, topic, partitions)) == partitions:
                started = time.perf_counter() - began
            most = max(most, resident(psutil.Process(process.pid)), key=sum)
            time.sleep(1)
        took, code = time.perf_counter() - began, process.poll()
        if code is None:
            process.terminate()
            process.wait(60)
        out.seek(0)
        said = out.read().decode().strip().splitlines()
    start = (
        f"{started:.1f} s" if started else f"not within {took:.0f} s, {there} partitions written"
    )
    print(
        f"copy of {partitions:,} partitions in {tasks} tasks: starts {start}, ends {took:.1f} s "
        f"(exit {code}), {sum(most):.0f} MB: {len(most)} processes of "
        f"{', '.join(f'{mb:.0f}' for mb in most[:6])}; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    if code:
        print("\n".join(said[-5:]), flush=True)


def audit_rows(wish: argparse.Namespace) -> None:
    """An audit on Spark beside a bare consumer, and headers."""
    wish.records -= wish.records % wish.partitions  # as many in each
    with sandbox(workers=0) as up, tempfile.TemporaryDirectory() as directory:
        bootstrap, topic = up.bootstrap_servers, "records"
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(topic, wish.partitions, 1)])[topic].result()
        began = time.perf_counter()
        program = [sys.executable, "-c", FILL, bootstrap, topic]
        subprocess.run(
            [*program, str(wish.records), str(wish.size), str(wish.partitions)], check=True
        )
        print(
            f"{wish.records:,} records are written after {time.perf_counter() - began:.0f} s",
            flush=True,
        )
        file = Path(directory) / "config.yaml"
        compile_imports(bootstrap, file)
        bare = [
            sys.executable,
            "-c",
            BARE,
            bootstrap,
            topic,
            str(wish.records),
            str(wish.partitions),
        ]
        ours = connectctl("--config", str(file), "audit", topic, "--engine", "spark")
        rows = {
            "a bare consumer": bare,
            "the same as it comes": [*bare, "as-it-comes"],
            "audit --sequence, spark": [*ours, "--sequence", "$.seq", "--first", "0"],
            "audit of headers, spark": [*ours, "--headers-only"],
        }
        for name, row in rows.items():
            if not any(part in name for part in wish.only.split(",")):
                continue
            found = [measure(row) for _ in range(wish.runs)]
            seconds = statistics.median(s for s, _ in found)
            rate, most = wish.records / seconds, max(megabytes for _, megabytes in found)
            print(
                f"{name:26} {seconds:7.1f} s  {rate:12,.0f} records/s  {most:6.0f} MB  load "
                f"{os.getloadavg()[0]:.1f}",
                flush=True,
            )
        rate = float(
            subprocess.check_output([sys.executable, "-c", HEADERS, bootstrap, topic], text=True)
        )
        print(
            f"headers, one process: {rate:,.0f} records/s, load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    rows = parser.add_subparsers(required=True)
    one = rows.add_parser("copy")
    one.set_defaults(run=copy_rows)
    one.add_argument("--shapes", default="4:1000,100:1000", help="tasks and partitions, a list")
    one = rows.add_parser("audit")
    one.set_defaults(run=audit_rows)
    one.add_argument("--records", type=int, default=10_000_000)
    one.add_argument("--size", type=int, default=100)
    one.add_argument("--partitions", type=int, default=12)
    one.add_argument("--runs", type=int, default=1)
    one.add_argument(
        "--only", default="bare,same,sequence,headers", help="parts of the names of rows, a list"
    )
    wish = parser.parse_args()
    wish.run(wish)


if __name__ == "__main__":
    main()
