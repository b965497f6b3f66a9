"""What benches of ``connectctl run`` have in common: a broker for the time of a bench, records with
numbers, runs in turns.

The broker has the JVM options of Kafka's own start scripts, and not those of a sandbox, which is
made for a short life. It is removed whatever ends the bench: its end, an error, ^C or SIGTERM.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from connectctl.ops.core.interrupts import put_in_order
from connectctl.ops.sandbox import cluster, launch

JVM = (
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-Djava.awt.headless=true",
)
DEADLINE = 900.0
LOOK = 0.05
QUIET = 3.0
"""Seconds without a change after which a run, or a worker's connector, is taken to be done."""
SIZE = 256
"""Bytes of a record."""
DIGITS = 10
"""The first of them, which are its number."""
VARIETY = 20_000
"""Different records, where they are to be compressed: more than a codec looks back over."""
T = TypeVar("T")


@contextmanager
def broker(name: str, *, workers: int = 0) -> Iterator[cluster.Sandbox]:
    """A broker and so many workers, in a sandbox's home of their own."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)  # which is ignored in what a script starts in its background
    with tempfile.TemporaryDirectory() as state, put_in_order(f"removing the sandbox {name}"):
        os.environ["XDG_STATE_HOME"] = state
        launch._HEAP, launch._JVM = "-Xmx2g", JVM
        try:
            yield cluster.up(
                cluster.SandboxSpec(
                    name=name, workers=workers, support="enabled" if workers else "disabled"
                )
            )
        finally:
            cluster.down(name)


def in_turns(
    sides: Iterable[str],
    runs: int,
    measure: Callable[[str, int], T],
    shown: Callable[[T], str],
    *,
    warm: bool = True,
) -> dict[str, list[T]]:
    """What ``measure`` gives for each side in each turn: the sides take turns, after a turn of each
    that is not counted, unless nothing has to get ``warm``.
    """
    found: dict[str, list[T]] = {side: [] for side in sides}
    width = max(map(len, found))
    for turn in range(0 if warm else 1, runs + 1):
        for side in found:
            one = measure(side, turn)
            counted = "" if turn else "   (not counted)"
            print(
                f"  {side:{width}} {shown(one)}, load {os.getloadavg()[0]:.1f}{counted}", flush=True
            )
            found[side] += [one] if turn else []
    return found


def medians(found: Mapping[str, Collection[float]]) -> dict[str, float]:
    """The median of each side."""
    return {side: statistics.median(those) for side, those in found.items()}


def create_topic(bootstrap: str, name: str, partitions: int) -> str:
    """A topic in which the broker sets the times of records."""
    # a name of its own, or it is gone before the answer comes
    admin = AdminClient({"bootstrap.servers": bootstrap})
    stamps = {"message.timestamp.type": "LogAppendTime"}
    admin.create_topics([NewTopic(name, partitions, 1, config=stamps)])[name].result()
    return name


def delete_topic(bootstrap: str, name: str) -> None:
    """Delete a topic, whose segments would fill the disk."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([name])[name].result()


def fill(
    bootstrap: str,
    topic: str,
    partitions: int,
    records: int,
    *,
    size: int = SIZE,
    codec: str = "none",
    batch: int = 10_000,
) -> None:
    """A new topic with ``records`` of ``size`` bytes: number n is in partition n modulo
    ``partitions``, in the order of the numbers, at most ``batch`` of them in one. With a ``codec``
    their bytes are digits at random, which become half as many.
    """
    create_topic(bootstrap, topic, partitions)
    client = {
        "bootstrap.servers": bootstrap,
        "queue.buffering.max.messages": 500_000,
        "linger.ms": 20,
    }
    client |= {"batch.num.messages": batch}
    producer = Producer(client | {"enable.idempotence": True, "compression.type": codec})
    plain, rest = codec == "none", size - DIGITS
    pads = (
        [b"x" * rest] if plain else [os.urandom(rest).hex().encode()[:rest] for _ in range(VARIETY)]
    )
    for n in range(records):
        while True:
            try:
                producer.produce(
                    topic, b"%010d" % n + pads[n % len(pads)], partition=n % partitions
                )
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def committed(bootstrap: str, topic: str, partitions: int) -> Iterator[Any]:
    """The messages of ``topic`` up to its end, as readers with read_committed see them."""
    client = {
        "bootstrap.servers": bootstrap,
        "group.id": "bench",
        "isolation.level": "read_committed",
    }
    consumer = Consumer(client | {"enable.partition.eof": True, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
    ends = 0
    while ends < partitions:
        for message in consumer.consume(10_000, timeout=5):
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ends += 1
                continue
            yield message
    consumer.close()


def begin(
    bootstrap: str,
    topic: str,
    records: int,
    inputs: int,
    outputs: int,
    *,
    in_place: bool = False,
    again: bool = False,
    size: int = SIZE,
) -> float:
    """The broker's time of the first record, in s, once it is seen that each of ``records`` is
    there once, and those of one of ``inputs`` partitions in order, as far as they are in one of
    ``outputs``. ``in_place``: in the partition of the input. ``again``: some may be there again, as
    at-least-once has it behind a rebalance, and so not in order; how many is printed.
    """
    seen, first, repeated = bytearray(records), float("inf"), 0
    last = [[-1] * outputs for _ in range(inputs)]
    for message in committed(bootstrap, topic, outputs):
        number, partition = int(message.value()[:DIGITS]), message.partition()
        source = number % inputs
        if again and seen[number]:
            repeated += 1
            continue
        assert not seen[number], (
            f"{topic} has record {number} twice, again at {partition}:{message.offset()}"
        )
        assert again or last[source][partition] < number, (
            f"{topic}-{partition} has {number} too late, at {message.offset()}"
        )
        assert not in_place or source == partition, (
            f"{topic}-{partition} has {number} of partition {source}"
        )
        assert len(message.value()) == size, f"record {number} has {len(message.value())} bytes"
        seen[number], last[source][partition] = 1, number
        first = min(first, message.timestamp()[1])
    assert all(seen), f"{topic} has {sum(seen)} records of {records}"
    if repeated:
        print(f"  {topic}: {repeated:,} records are there again")
    return first / 1000


class Watch:
    """A topic's committed end over time. ``changed`` is when it was seen to grow last, in s since
    the epoch.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int):
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._places = {TopicPartition(topic, p): OffsetSpec.latest() for p in range(partitions)}
        self._over = threading.Event()
        self.end, self.changed = 0, time.time()

    def _look(self) -> int:
        """The sum of the ends; as before where one is not told, as of a new partition. If that
        stays so, a wait fails.
        """
        futures = self._admin.list_offsets(
            self._places, isolation_level=IsolationLevel.READ_COMMITTED
        )
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


@contextmanager
def running(
    sandbox: cluster.Sandbox,
    directory: Path,
    name: str,
    config: Mapping[str, str],
    options: Sequence[str] = (),
    **job: Any,
) -> Iterator[subprocess.Popen[str]]:
    """``connectctl run`` in a process of its own, with ``job.yaml`` in ``directory`` and more
    ``options``. It is killed if it is left before its end; its result is in ``result.json``, what
    it said in ``run.log``.
    """
    path = directory / "job.yaml"
    path.write_text(
        json.dumps({"name": name, "config": dict(config), "spark": {"master": "local[2]"}} | job)
    )
    where = ["--context", f"sandbox-{sandbox.spec.name}", "--group-id", f"g-{name}"]
    command = [
        sys.executable,
        "-m",
        "connectctl.cli",
        *where,
        "run",
        str(path),
        "--yes",
        "-o",
        "json",
        *options,
    ]
    with (directory / "result.json").open("w") as out, (directory / "run.log").open("w") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, text=True)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def result(directory: Path, process: subprocess.Popen[str], seconds: float = 0.0) -> Any:
    """The result of what is ``running`` for ``seconds``, at its end."""
    code = process.wait(seconds + DEADLINE)
    assert code == 0, (directory / "run.log").read_text()
    return json.loads((directory / "result.json").read_text())
