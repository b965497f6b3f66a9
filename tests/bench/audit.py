"""The audit's two layers on real topics: headers per process, records beside a bare Spark count,
memory as topics grow.

    python tests/bench/audit.py [--records 1000000 2000000 4000000] [--runs 3] [--master 'local[2]']

The broker is a sandbox's, on the same machine. Topics have four partitions, transactions of 10,000
records, values of JSON with a task and a number. Counts and audits alternate in one Spark session
that is warm; medians are compared. The count reads the topic as a frame of keys, values,
partitions, offsets and timestamps, by the audit's own reader, in as many tasks. Memory is the
greatest sum of resident sizes of a whole ``connectctl audit``, its JVM and its Python workers.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
from connectctl.ops.sandbox import cluster

PARTITIONS = 4
IN_TRANSACTION = 10_000

FILL = """
import sys
from confluent_kafka import Producer
bootstrap, topic, (records, size, partitions) = sys.argv[1], sys.argv[2], map(int, sys.argv[3:])
client = {"bootstrap.servers": bootstrap, "transactional.id": topic, "linger.ms": 5, "batch.size": 16384}
producer = Producer(client | {"queue.buffering.max.messages": 1_000_000})
producer.init_transactions(60)
pad = "x" * max(0, size - 40)
for first in range(0, records, 10_000):
    producer.begin_transaction()
    for n in range(first, min(first + 10_000, records)):
        task = n % partitions
        value = b'{"task":%d,"seq":%d,"pad":"%s"}' % (task, n // partitions, pad.encode())
        producer.produce(topic, key=b"task-%d" % task, value=value, partition=task)
        if n % 1000 == 0:
            producer.poll(0)
    producer.commit_transaction(60)
"""

HEADERS = """
import sys, time
from connectctl.ops.audit.scan import PartTotals, TransactionPart, PartitionRange
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.jobs.audit import Cluster, scanned
bootstrap, topic = sys.argv[1:]
client = {"bootstrap.servers": bootstrap}
extents = Kafka(client, timeout=60).extents([topic])[topic]
spans = [PartitionRange(topic, p, 0, e.end, e.stable, e.end, True) for p, e in extents.items()]
list(scanned(Cluster(client, 60), [spans[0]._replace(until=1, horizon=1)]))
began = time.perf_counter()
found = sum(each.records for each in scanned(Cluster(client, 60), spans) if isinstance(each, TransactionPart))
print(found / (time.perf_counter() - began))
"""


def fill(bootstrap: str, topic: str, records: int, size: int) -> None:
    """A topic as a transactional producer writes it."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    numbers = map(str, (records, size, PARTITIONS))
    subprocess.run([sys.executable, "-c", FILL, bootstrap, topic, *numbers], check=True)


def bare_count(spark: Any, bootstrap: str, topic: str) -> int:
    """The topic as a frame of records, counted."""
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.clients.librdkafka.consume import read_ranges
    from connectctl.ops.jobs.audit import pieces, split

    spans = spans_of(bootstrap, topic)
    tasks = int(spark.sparkContext.defaultParallelism)
    shares = split(pieces(spans, tasks), tasks)

    def records(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for number in batch.column(0).to_pylist():
                ranges = {s.topic_partition: (s.start, s.until) for s in shares[number]}
                for _, some in read_ranges(
                    Kafka({"bootstrap.servers": bootstrap}, timeout=60), ranges
                ):
                    columns = (
                        pa.array([m.key() for m in some], pa.binary()),
                        pa.array([m.value() for m in some], pa.binary()),
                        pa.array([m.partition() for m in some], pa.int32()),
                        pa.array([m.offset() for m in some], pa.int64()),
                        pa.array([m.timestamp()[1] for m in some], pa.int64()),
                    )
                    names = ["key", "value", "partition", "offset", "timestamp"]
                    yield pa.RecordBatch.from_arrays(list(columns), names)

    schema = "key binary, value binary, partition int, offset long, timestamp long"
    return int(spark.range(0, len(shares), 1, len(shares)).mapInArrow(records, schema).count())


def audited(spark: Any, bootstrap: str, topic: str) -> int:
    """The layer of records: read, runs, sweep, totals."""
    from connectctl.ops.audit.field_extractor import sequence_spec
    from connectctl.ops.jobs import audit
    from connectctl.ops.jobs.audit_sequences import Wanted

    client, tasks = (
        audit.Cluster({"bootstrap.servers": bootstrap}, 60),
        int(spark.sparkContext.defaultParallelism),
    )
    runs = audit.run_frame(
        spark, client, spans_of(bootstrap, topic), Wanted(sequence_spec("$.seq")), tasks
    )
    rows = audit.sweep_frame(runs, tasks, 0).where("what <> 'read'").collect()
    assert [row.weight for row in rows] == [0] * PARTITIONS, rows[:3]
    return len(rows)


def spans_of(bootstrap: str, topic: str) -> list[Any]:
    """The whole topic."""
    from connectctl.ops.audit.scan import PartitionRange
    from connectctl.ops.clients.librdkafka.client import Kafka

    extents = Kafka({"bootstrap.servers": bootstrap}, timeout=60).extents([topic])[topic]
    return [
        PartitionRange(topic, p, 0, e.end, e.stable, e.end, True)
        for p, e in sorted(extents.items())
    ]


def timed(work: Callable[[], Any]) -> float:
    """How long it takes, in seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(command: list[str]) -> tuple[float, float]:
    """Seconds, and the greatest megabytes of the process and its children together."""
    started, most = time.perf_counter(), 0.0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            most = max(most, _resident(watched))
            time.sleep(0.2)
    assert process.returncode == 0, command
    return time.perf_counter() - started, most


def _resident(process: psutil.Process) -> float:
    total = 0
    try:
        for one in (process, *process.children(recursive=True)):
            total += one.memory_info().rss
    except psutil.NoSuchProcess:
        pass
    return total / (1 << 20)


def headers(bootstrap: str, runs: int) -> None:
    """Records per second and process, by size."""
    print(f"{'headers, one process':32} {'records/s':>12}")
    for size, records in ((100, 1_000_000), (256, 1_000_000), (1000, 500_000)):
        topic = f"headers-{size}"
        fill(bootstrap, topic, records, size)
        command = [sys.executable, "-c", HEADERS, bootstrap, topic]
        rates = [float(subprocess.check_output(command, text=True)) for _ in range(runs)]
        print(f"  {size:5} bytes {'':18} {statistics.median(rates):12,.0f}", flush=True)


def records(bootstrap: str, counts: list[int], runs: int, master: str, log: Path) -> None:
    """The audit of records beside a bare count, in one warm session."""
    from connectctl.ops.clients.spark.session import open_session

    session = open_session(master, {}, log)
    try:
        print(
            f"{'records':>12} {'count, s':>9} {'audit, s':>9} {'count/s':>10} {'audit/s':>10} "
            f"{'ratio':>6}"
        )
        for count in counts:
            topic = f"records-{count}"
            bare_count(session, bootstrap, topic)
            audited(session, bootstrap, topic)
            bare, ours = [], []
            for _ in range(runs):
                bare.append(timed(lambda topic=topic: bare_count(session, bootstrap, topic)))  # type: ignore[misc]
                ours.append(timed(lambda topic=topic: audited(session, bootstrap, topic)))  # type: ignore[misc]
            b, o = statistics.median(bare), statistics.median(ours)
            print(
                f"{count:12,} {b:9.1f} {o:9.1f} {count / b:10,.0f} {count / o:10,.0f} {b / o:6.2f}",
                flush=True,
            )
    finally:
        session.stop()


def memory(bootstrap: str, counts: list[int], master: str, state: Path) -> None:
    """The whole command on topics of several sizes."""
    config = state / "config.yaml"
    config.write_text(
        f"current: b\ncontexts: {{b: {{bootstrap_servers: '{bootstrap}', spark: {{master: "
        f"'{master}'}}}}}}"
    )
    print(f"{'whole audit':>12} {'engine':8} {'seconds':>8} {'MB':>7}")
    for engine in ("local", "spark"):
        for count in counts:
            command = [
                sys.executable,
                "-m",
                "connectctl.cli",
                "--config",
                str(config),
                "audit",
                f"records-{count}",
            ]
            seconds, most = measure(
                [*command, "--sequence", "$.seq", "--first", "0", "--engine", engine]
            )
            print(f"{count:12,} {engine:8} {seconds:8.1f} {most:7.0f}", flush=True)


def main() -> None:
    """Fill topics on a sandbox of its own, and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, nargs="+", default=[1_000_000, 2_000_000, 4_000_000])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--only",
        choices=["headers", "records", "memory"],
        nargs="+",
        default=["headers", "records", "memory"],
    )
    parser.add_argument("--master", default="local[2]")
    wish = parser.parse_args()
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        sandbox = cluster.up(cluster.SandboxSpec(name="bench", workers=0))
        try:
            if "headers" in wish.only:
                headers(sandbox.bootstrap_servers, wish.runs)
            for count in wish.records:
                fill(sandbox.bootstrap_servers, f"records-{count}", count, 256)
            if "records" in wish.only:
                log = Path(state) / "spark.log"
                records(sandbox.bootstrap_servers, wish.records, wish.runs, wish.master, log)
            if "memory" in wish.only:
                memory(sandbox.bootstrap_servers, wish.records, wish.master, Path(state))
        finally:
            cluster.down("bench")


if __name__ == "__main__":
    main()
