"""A topic copied to another, exactly once: ``connectctl run`` beside Kafka's own MirrorSourceConnector on a real worker.

    python tests/bench/topiccopy.py [--records 2000000] [--runs 3] [--sides worker,run,strict]

One broker, which is source and target, one source topic of 256-byte records in four partitions, two tasks on every side
(ours on Spark ``local[2]``), transactions of the boundary poll, no compression. The sides take turns, after a turn of each
that is not counted, so that the worker's JVM is warm. Broker and worker have the JVM options of Kafka's own start scripts,
and not those of a sandbox, which is made for a short life. MirrorSourceConnector emits no offset syncs and syncs nothing
here, as ours never does. ``strict`` is ours with ``epoch.per.transaction``: a new epoch for each transaction.

What is timed is the same for all: from the broker's own time of the first record in the remote topic to the moment at which
the last transaction is seen committed, by read_committed end offsets that are asked for every 50 ms. So the start of
Spark's session and of the worker's tasks is out, as is the way to the first record; all that tasks do from there on is in.
Each run is checked with read_committed: every record is there once and in its place.

Fails where the ratio of medians is below 1.5, strict below 1.0.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from connectctl.ops.sandbox import cluster, launch

GOALS = {"run": 1.5, "strict": 1.0}
NAME, SOURCE, PARTITIONS, SIZE = "bench", "source", 4, 256
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
DEADLINE = 900.0
LOOK = 0.05
QUIET = 3.0
"""Seconds without a change after which a worker's connector is taken to be done."""
JVM = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35", "-Djava.awt.headless=true")


def fill(bootstrap: str, records: int) -> None:
    """The source: each partition's records with their numbers."""
    admin = AdminClient({"bootstrap.servers": bootstrap})  # a name of its own, or it is gone before the answer comes
    admin.create_topics([NewTopic(SOURCE, PARTITIONS, 1)])[SOURCE].result()
    client = {"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 500_000, "linger.ms": 20}
    producer = Producer(client | {"enable.idempotence": True})
    pad = b"x" * (SIZE - 10)
    for n in range(records):
        while True:
            try:
                producer.produce(SOURCE, b"%010d" % (n // PARTITIONS) + pad, partition=n % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def config(bootstrap: str, alias: str, *, strict: bool = False) -> dict[str, str]:
    """The connector's configuration, the same for all but for what is strict."""
    off = (
        "emit.offset-syncs.enabled",
        "sync.topic.acls.enabled",
        "sync.topic.configs.enabled",
        "refresh.topics.enabled",
    )
    return {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "tasks.max": "2",
        "source.cluster.alias": alias,
        "target.cluster.alias": "target",
        "source.cluster.bootstrap.servers": bootstrap,
        "target.cluster.bootstrap.servers": bootstrap,
        "source.consumer.isolation.level": "read_committed",
        "topics": SOURCE,
        "heartbeats.replication.enabled": "false",
        "replication.factor": "1",
        "transaction.boundary": "poll",
        "exactly.once.support": "required",
        **dict.fromkeys(("key.converter", "value.converter", "header.converter"), BYTES),
        **dict.fromkeys(off, "false"),
        **({"epoch.per.transaction": "true"} if strict else {}),
    }


class Watch:
    """The remote topic's committed end over time."""

    def __init__(self, bootstrap: str, topic: str):
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._places = {TopicPartition(topic, p): OffsetSpec.latest() for p in range(PARTITIONS)}
        self._over = threading.Event()
        self.end, self.changed = 0, time.time()

    def _look(self) -> int:
        """The sum of the ends; as before where one is not told, as of a new partition. If that stays so, a wait fails."""
        futures = self._admin.list_offsets(self._places, isolation_level=IsolationLevel.READ_COMMITTED)
        try:
            return sum(future.result().offset for future in futures.values())
        except KafkaException:
            return self.end

    def _run(self) -> None:
        while not self._over.wait(LOOK):
            end, now = self._look(), time.time()
            if end != self.end:
                self.end, self.changed = end, now

    @contextmanager
    def watching(self) -> Iterator[Watch]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()

    def wait(self, records: int) -> None:
        """Until so many are there, and nothing has come for a while."""
        late = time.time() + DEADLINE
        while self.end < records or time.time() - self.changed < QUIET:
            assert time.time() < late, f"{self.end} after {DEADLINE:g} s"
            time.sleep(LOOK)


def begin(bootstrap: str, topic: str, records: int) -> float:
    """The broker's time of the first record, once it is seen that every record is there once and in its place."""
    client = {"bootstrap.servers": bootstrap, "group.id": NAME, "isolation.level": "read_committed"}
    consumer = Consumer(client | {"enable.partition.eof": True, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
    following, firsts, ends = [0] * PARTITIONS, [], 0
    while ends < PARTITIONS:
        for message in consumer.consume(10_000, timeout=5):
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ends += 1
                continue
            partition = message.partition()
            if following[partition] == 0:
                firsts.append(message.timestamp()[1])
            number, wanted = int(message.value()[:10]), following[partition]
            assert number == wanted, f"{topic}-{partition} has {number} in place of {wanted} at {message.offset()}"
            following[partition] += 1
    consumer.close()
    assert sum(following) == records, f"{topic} has {sum(following)} records of {records}"
    return float(min(firsts)) / 1000


def timed(sandbox: cluster.Sandbox, side: str, turn: int, records: int) -> float:
    """Seconds of one run."""
    bootstrap, alias = sandbox.bootstrap_servers, f"{side}{turn}"
    topic = f"{alias}.{SOURCE}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    stamps = {"message.timestamp.type": "LogAppendTime"}
    admin.create_topics([NewTopic(topic, PARTITIONS, 1, config=stamps)])[topic].result()
    with Watch(bootstrap, topic).watching() as watch:
        if side == "worker":
            theirs(sandbox, alias, watch, records)
        else:
            ours(sandbox, alias, strict=side == "strict")
            watch.wait(records)
    took = watch.changed - begin(bootstrap, topic, records)
    admin.delete_topics([topic])[topic].result()
    return took


def theirs(sandbox: cluster.Sandbox, alias: str, watch: Watch, records: int) -> None:
    """The worker's connector, until nothing comes any more."""
    url = f"{sandbox.rest_urls[0]}/connectors/{alias}"
    httpx.put(f"{url}/config", json=config(sandbox.bootstrap_servers, alias), timeout=60).raise_for_status()
    watch.wait(records)
    httpx.delete(url, timeout=60).raise_for_status()


def ours(sandbox: cluster.Sandbox, alias: str, *, strict: bool) -> None:
    """``connectctl run``, until nothing comes any more."""
    with tempfile.TemporaryDirectory() as directory:
        job = Path(directory) / "job.yaml"
        wish = {"name": alias, "config": config(sandbox.bootstrap_servers, alias, strict=strict)}
        job.write_text(json.dumps(wish | {"spark": {"master": "local[2]"}, "until": {"idle": f"{QUIET:g}s"}}))
        command = [sys.executable, "-m", "connectctl.cli", "--context", f"sandbox-{NAME}", "--group-id", f"g-{alias}"]
        done = subprocess.run([*command, "run", str(job), "--yes"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sides", default="worker,run,strict")
    given = parser.parse_args()
    sides = given.sides.split(",")
    print(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs, {given.records:,} records of {SIZE} bytes", flush=True)
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        launch._HEAP, launch._JVM = "-Xmx2g", JVM
        sandbox = cluster.up(cluster.SandboxSpec(name=NAME, workers=1, support="enabled"))
        try:
            fill(sandbox.bootstrap_servers, given.records)
            rates: dict[str, list[float]] = {side: [] for side in sides}
            for turn in range(given.runs + 1):
                for side in sides:
                    rate = given.records / timed(sandbox, side, turn, given.records)
                    counted = "" if turn else "   (not counted)"
                    print(f"  {side:8} {rate:9,.0f} records/s, load {os.getloadavg()[0]:.1f}{counted}", flush=True)
                    rates[side] += [rate] if turn else []
        finally:
            cluster.down(NAME)
    sys.exit(verdict(rates))


def verdict(rates: dict[str, list[float]]) -> str | int:
    """Print medians and ratios; what is missed, or 0."""
    medians = {side: statistics.median(found) for side, found in rates.items()}
    missed = []
    for side, median in medians.items():
        ratio = median / medians["worker"] if "worker" in medians else float("nan")
        print(f"{side:8} {median:9,.0f} records/s, {ratio:.2f} of the worker's")
        if ratio < GOALS.get(side, 0):
            missed.append(f"{side}: at least {GOALS[side]} is wanted")
    return "; ".join(missed) or 0


if __name__ == "__main__":
    main()
