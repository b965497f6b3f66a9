"""How long a transform is silent: from the SIGKILL of a Spark worker to its next record, and from
lease to lease.

    python tests/bench/recovery.py [--kills 5] [--leases 5] [--master 'local[2,4]']

One broker, an input topic of four partitions to which 100 records a second go for each, two tasks,
exactly once, all else by its defaults; ``local[2,4]`` has Spark retry a task, as a cluster does
(``local[2]`` does not: there connectctl begins a new round). Each record of the output names the
attempt that wrote it, and its process. A consumer with read_committed notes when each record of the
output comes; the times of Spark's attempts are those of its event log.

A kill: a Python worker is killed in the middle of a lease. Printed is the time to the first record
of each partition that it had, of which the latest counts; to Spark's next attempt of its task; and
the difference, which is connectctl's share. The longest silence of the other task's partitions,
until all partitions are back, is printed, too.

A lease change: the silence of a partition between the last record of one attempt and the first of
the next one, before the first kill; of each change the partition with the longest. Leases have 30
s here (``--lease``), and an hour by default. Not counted is the first change: the second task joins
a moment behind the first one, and gets its partitions by a rebalance. Changes behind a kill are
printed, too.

At the end all records are there once and in order. Fails where the median behind Spark's retry is 2
s or more, or that of the lease changes 1 s or more.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

# beside this file
from benchbroker import DEADLINE, broker, committed, create_topic, result, running  # type: ignore[import-not-found]
from confluent_kafka import Consumer, Producer, TopicPartition

NAME, PARTITIONS, TASKS = "recovery", 4, 2
PAUSE = 0.01
"""Seconds between two records of a partition."""
STEADY = 6.0
"""Seconds of work in a lease before something is killed in it."""
BEHIND_SPARK, LEASE_CHANGE = 2.0, 1.0
PLUGIN = """
import os
import secrets

from connectctl.transform import Record, Transform


class Signed(Transform):
    def start(self, configs):
        self.out = configs["out"]  # records keep their partitions only where they name their topic
        self.attempt = f" {secrets.token_hex(4)} {os.getpid()}".encode()

    def process(self, records):
        return [self.signed(r) for r in records]

    def signed(self, r):
        return Record(b"%d " % r.partition + r.value + self.attempt, topic=self.out, partition=r.partition)
"""


@dataclass(frozen=True)
class Seen:
    """A record of the output. ``came`` is when the consumer had it, in s since the epoch."""

    partition: int
    number: int
    attempt: str
    process: int
    came: float

    @classmethod
    def of(cls, value: bytes, came: float) -> Seen:
        partition, number, attempt, process = value.decode().split()
        return cls(int(partition), int(number), attempt, int(process), came)


@dataclass(frozen=True)
class Kill:
    """A SIGKILL at ``at``; ``partitions`` had all their next records at ``back``. Both in s since
    the epoch.
    """

    at: float
    partitions: frozenset[int]
    back: float


class Scene:
    """Records go in and come out, on a thread each; ``seen`` are those that came, by partition."""

    def __init__(self, bootstrap: str, source: str, target: str):
        self._bootstrap, self._source, self._target = bootstrap, source, target
        self._fed, self._read = threading.Event(), threading.Event()
        self.written = 0
        self.seen: list[list[Seen]] = [[] for _ in range(PARTITIONS)]
        self._begun = [0.0] * PARTITIONS

    @contextmanager
    def playing(self) -> Iterator[Scene]:
        threads = [threading.Thread(target=each) for each in (self._feed, self._look)]
        for each in threads:
            each.start()
        try:
            yield self
        finally:
            self._fed.set()
            self._read.set()
            for each in threads:
                each.join()

    def _feed(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self._bootstrap, "enable.idempotence": True, "linger.ms": 0}
        )
        while not self._fed.wait(PAUSE):
            for partition in range(PARTITIONS):
                producer.produce(self._source, b"%d" % self.written, partition=partition)
            producer.poll(0)
            self.written += 1
        producer.flush()

    def _look(self) -> None:
        client = {
            "bootstrap.servers": self._bootstrap,
            "group.id": NAME,
            "isolation.level": "read_committed",
        }
        consumer = Consumer(client | {"fetch.wait.max.ms": 20, "enable.auto.commit": False})
        consumer.assign([TopicPartition(self._target, p, 0) for p in range(PARTITIONS)])
        while not self._read.is_set():
            for message in consumer.consume(1000, timeout=0.02):
                assert message.error() is None, message.error()
                one = Seen.of(message.value(), time.time())
                those = self.seen[one.partition]
                if not those or those[-1].attempt != one.attempt:
                    self._begun[one.partition] = one.came
                those.append(one)
        consumer.close()

    def stop_feeding(self) -> None:
        """Nothing more goes in."""
        self._fed.set()

    def latest(self) -> list[Seen]:
        """The last record of each partition; fewer where one has none yet."""
        return [those[-1] for those in self.seen if those]

    def settled(self) -> bool:
        """Whether every partition has had the same attempt for a while, and none is silent."""
        now = time.time()
        return len(self.latest()) == PARTITIONS and all(
            now - those[-1].came < 1 and now - begun > STEADY
            for those, begun in zip(self.seen, self._begun, strict=True)
        )

    def changes(self, partition: int) -> list[tuple[Seen, Seen]]:
        """The last record of an attempt and the first of the next one."""
        return [(a, b) for a, b in pairwise(self.seen[partition]) if a.attempt != b.attempt]

    def first_after(self, partition: int, moment: float, process: int) -> Seen | None:
        """The first record after ``moment`` that is not of ``process``."""
        return next(
            (one for one in self.seen[partition] if one.came > moment and one.process != process),
            None,
        )

    def longest(self, partitions: frozenset[int], begin: float, end: float) -> float:
        """The longest silence of one of ``partitions`` that is at least in part between two
        times.
        """
        gaps = [
            b.came - a.came
            for p in partitions
            for a, b in pairwise(self.seen[p])
            if b.came >= begin and a.came <= end
        ]
        return max(gaps, default=0.0)


def until(what: Callable[[], object], run: subprocess.Popen[str]) -> None:
    """Wait until ``what()`` is true."""
    late = time.monotonic() + DEADLINE
    while not what():
        assert run.poll() is None, "the run ended"
        assert time.monotonic() < late, f"still waiting after {DEADLINE:g} s"
        time.sleep(0.05)


def kill(scene: Scene, run: subprocess.Popen[str], turn: int) -> Kill:
    """Kill a Python worker in which a task is, and wait until its partitions have records again."""
    until(scene.settled, run)
    process = scene.latest()[turn % PARTITIONS].process
    partitions = frozenset(one.partition for one in scene.latest() if one.process == process)
    at = time.time()
    os.kill(process, signal.SIGKILL)
    until(lambda: all(scene.first_after(p, at, process) for p in partitions), run)
    return Kill(
        at,
        partitions,
        max(one.came for p in partitions if (one := scene.first_after(p, at, process))),
    )


def launches(directory: Path) -> list[float]:
    """When Spark began attempts of tasks, in s since the epoch, by its event log."""
    (log,) = (
        path for path in directory.rglob("*") if path.is_file() and not path.name.startswith(".")
    )
    events = [json.loads(line) for line in log.read_text().splitlines()]
    return sorted(
        e["Task Info"]["Launch Time"] / 1000
        for e in events
        if e["Event"] == "SparkListenerTaskStart"
    )


def lease_changes(scene: Scene, kills: Sequence[Kill]) -> list[tuple[float, float]]:
    """Lease changes: the moment, and the silence of the partition with the longest. Changes within
    5 s are one.
    """
    found = sorted(
        (b.came, b.came - a.came)
        for p in range(PARTITIONS)
        for a, b in scene.changes(p)
        if not any(p in k.partitions and a.came - 1 <= k.at < b.came for k in kills)
    )
    changes: list[list[tuple[float, float]]] = []
    for each in found:
        if changes and each[0] - changes[-1][-1][0] < 5:
            changes[-1].append(each)
        else:
            changes.append([each])
    return [max(those, key=lambda each: each[1]) for those in changes]


def check(bootstrap: str, topic: str, records: int) -> None:
    """Every record is there once and in order."""
    found: list[list[Seen]] = [[] for _ in range(PARTITIONS)]
    for message in committed(bootstrap, topic, PARTITIONS):
        one = Seen.of(message.value(), message.timestamp()[1] / 1000)
        found[one.partition].append(one)
    for partition, those in enumerate(found):
        wrong = [at for at, one in enumerate(those) if one.number != at]
        around = those[max(0, wrong[0] - 2) : wrong[0] + 3] if wrong else []
        assert not wrong, (
            f"{topic}-{partition} is not in order at {wrong[0]}, of {len(wrong)}: {around}"
        )
        assert len(those) == records, f"{topic}-{partition} has {len(those)} records of {records}"


def report(scene: Scene, kills: Sequence[Kill], spark: Sequence[float]) -> str | int:
    """Print the figures; what is missed, or 0."""
    behind = []
    for each in kills:
        retry = next(at for at in spark if at > each.at)
        behind.append(each.back - retry)
        others = scene.longest(
            frozenset(range(PARTITIONS)) - each.partitions, each.at, each.back + 30
        )
        print(
            f"  kill: next record after {each.back - each.at:5.2f} s, Spark's retry after "
            f"{retry - each.at:5.2f} s, behind it {behind[-1]:5.2f} s; longest silence of others "
            f"{others:5.2f} s"
        )
    changes, first = (
        lease_changes(scene, kills),
        min((each.at for each in kills), default=float("inf")),
    )
    joined, *silences = [silence for at, silence in changes if at < first] or [0.0]
    print(f"  the second task's joining: {joined:.2f} s")
    for what, those in (
        ("lease changes", silences),
        ("after kills", [silence for at, silence in changes if at > first]),
    ):
        print(f"  {what}:", ", ".join(f"{each:.2f} s" for each in those) or "none")
    missed = []
    for what, those, goal in (
        ("behind Spark's retry", behind, BEHIND_SPARK),
        ("lease change", silences, LEASE_CHANGE),
    ):
        if those:
            print(
                f"{what}: median {statistics.median(those):.2f} s, longest {max(those):.2f} s, of "
                f"{len(those)}"
            )
            missed += (
                [f"{what}: less than {goal:g} s is wanted"]
                if statistics.median(those) >= goal
                else []
            )
    return "; ".join(missed) or 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument(
        "--leases", type=int, default=5, help="changes of leases before the first kill"
    )
    parser.add_argument("--master", default="local[2,4]")
    given = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs, {given.master}", flush=True)
    with broker(NAME) as sandbox, tempfile.TemporaryDirectory() as directory:
        home, bootstrap = Path(directory), sandbox.bootstrap_servers
        source, target = (create_topic(bootstrap, name, PARTITIONS) for name in ("in", "out"))
        (home / "signed.py").write_text(PLUGIN)
        (home / "events").mkdir()
        config = {
            "connector.class": "signed:Signed",
            "topics": source,
            "out": target,
            "tasks.max": str(TASKS),
        }
        events = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{home}/events"}
        events |= {"spark.eventLog.rolling.enabled": "false", "spark.eventLog.compress": "false"}
        spark = {"master": given.master, "conf": events}
        scene = Scene(bootstrap, source, target)
        options = ("--lease", "30")
        with running(sandbox, home, NAME, config, options, spark=spark) as run, scene.playing():
            until(scene.settled, run)
            until(lambda: max(len(scene.changes(p)) for p in range(PARTITIONS)) > given.leases, run)
            kills = [kill(scene, run, turn) for turn in range(given.kills)]
            until(scene.settled, run)
            scene.stop_feeding()
            until(lambda: all(one.number == scene.written - 1 for one in scene.latest()), run)
            run.send_signal(signal.SIGTERM)
            result(home, run)
        check(bootstrap, target, scene.written)
        print(f"load {os.getloadavg()[0]:.1f}")
        ends = report(scene, kills, launches(home / "events"))
    sys.exit(ends)


if __name__ == "__main__":
    main()
