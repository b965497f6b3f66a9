"""A campaign of faults against ``connectctl run`` on a Spark cluster: workers, executors, drivers
and the broker.

The tasks count source partitions up, without end, in leases of some seconds. Whatever happens to
the processes that run them, a driver that ends is started again, as a supervisor would; the topics
are judged as those of tasks without Spark.
"""

from __future__ import annotations

import json
import random
import secrets
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.clients.librdkafka.client import Kafka
from live import campaignplugin
from live.campaign import BROKER_KILLED
from live.campaigndrivers import Driver, job_file, pack, start
from live.campaignkinds import whose
from live.campaignoperator import Operator
from live.campaigntable import Row, table
from live.oracle import Verdict, judge, markers, open_partitions
from live.real import create_topic
from live.sparkclusters import executors, python_workers, send

if TYPE_CHECKING:
    from live.campaignbroker import Broker
    from live.sparkclusters import SparkCluster

PATIENCE = 300.0
"""Seconds for whatever has to happen: a session of Spark alone may take a minute on a machine that
is busy.
"""
WORKER_STOPPED, EXECUTOR_STOPPED, DRIVER_STOPPED = (
    "Python worker stopped",
    "executor stopped",
    "driver stopped",
)
KINDS = (
    *("Python worker kill -9", "executor kill -9", "driver kill -9", BROKER_KILLED),
    *(WORKER_STOPPED, EXECUTOR_STOPPED, DRIVER_STOPPED, "another number of tasks"),
)


class SparkCampaign:
    """Faults from ``seed`` against runs on ``cluster`` that write to ``broker``."""

    def __init__(self, broker: Broker, cluster: SparkCluster, seed: int, directory: Path):
        self.seed, self.rows = seed, list[Row]()
        self.drivers: list[Driver] = []
        self._broker, self._cluster, self._directory = broker, cluster, directory
        self._chance = random.Random(seed)
        self._name = f"campaign-{secrets.token_hex(4)}"
        self._group = f"g-{self._name}"
        self._kafka = Kafka({"bootstrap.servers": broker.bootstrap}, timeout=60)
        self._topic = create_topic(broker.bootstrap, f"{self._name}-data", 4, "delete")
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._suspended: list[psutil.Process] = []
        self._calls = TransactionClient({"bootstrap.servers": broker.bootstrap}, timeout=30)
        self._operator = Operator(
            self._kafka,
            self._calls,
            [self._topic, f"{self._group}-offsets", f"{self._group}-configs"],
        )
        self._told = directory / "told"
        self._told.touch()
        self._heard = 0
        self._begun: list[dict[str, Any]] = []
        self._commits: dict[int, list[float]] = {n: [] for n in range(campaignplugin.SOURCES)}
        self._count, self._stopping = 2, False
        self._began = time.monotonic()
        pack(directory)

    def run(self, faults: int) -> Verdict:
        """So many faults, and an end in peace; the verdict is of the topics."""
        self._start()
        self._goes_on()
        cycle: list[str] = []
        for _ in range(faults):
            cycle = cycle or self._chance.sample(KINDS, len(KINDS))
            self._let_run()
            self._do(cycle.pop())
        self._end()
        return judge(self._kafka, self._topic, f"{self._group}-offsets", self._name, whose)

    def close(self) -> None:
        self._calls.close()
        send([*self._living(), *self._suspended])
        for driver in self.drivers:
            driver.process.kill()
            driver.process.wait()

    def table(self, verdict: Verdict) -> str:
        """What was done, and what was seen."""
        ends = Counter(driver.over for driver in self.drivers)
        more = [
            f"{len(self.drivers)} drivers: "
            + ", ".join(f"{n} {end}" for end, n in ends.most_common()),
            f"{len(self._begun)} beginnings of tasks in {len({b['pid'] for b in self._begun})} "
            f"Python workers, {sum(b['attempt'] > 0 for b in self._begun)} of them in later "
            "attempts of Spark tasks",
            self._operator.words,
        ]
        return table(self.seed, self.rows, more, verdict, markers(self._kafka, self._topic))

    def evidence(self) -> str:
        """Which tasks began where and when, and how runs went, for whoever has to find out why
        something is wrong.
        """
        return "\n".join(
            [*(f"{b['at'] - self._began:.1f} {b}" for b in self._begun), self._state()]
        )

    def failures(self) -> list[str]:
        """Runs in which a task failed."""
        return [
            f"{d.log}: {d.log.read_text()[-500:]}"
            for d in self.drivers
            if str(d.over).startswith("failed")
        ]

    # ----------------------------------------------------------------------------------------- runs

    @property
    def _driver(self) -> Driver:
        return self.drivers[-1]

    def _start(self) -> None:
        """A run of the job as it is now, beside whatever runs of it."""
        config = {"tasks.max": str(self._count), "topic": self._topic, "told": str(self._told)}
        job = job_file(self._directory, len(self.drivers), self._name, self._cluster.master, config)
        self.drivers.append(start(job, self._broker.bootstrap, self._group))

    def _let_run(self) -> None:
        """A random moment, mostly when all have recovered."""
        if self._chance.random() < 0.7:
            self._goes_on()
        end = time.monotonic() + self._chance.uniform(0.1, 2.0)
        self._wait(lambda: time.monotonic() > end, "time passes")

    def _goes_on(self) -> None:
        now = time.monotonic()
        self._wait(
            lambda: all(commits and commits[-1] > now for commits in self._commits.values()),
            "all sources go on",
        )

    def _wait(self, until: Callable[[], bool], what: str) -> None:
        """Until it is true, while what is due is done, and a driver that ended is started again."""
        end = time.monotonic() + PATIENCE
        while not until():
            now = time.monotonic()
            if now > end:
                pytest.fail(f"not within {PATIENCE:g} s: {what}\n{self._state()}")
            for when, do in [each for each in self._later if each[0] <= now]:
                self._later.remove((when, do))
                do()
            if self._driver.over is not None and not self._stopping:
                self._start()
            if self._broker.was_killed and self._broker.back:
                self._operator.look()
            self._hear()
            time.sleep(0.1)

    def _state(self) -> str:
        logs = [f"{d.log}: {d.over or 'runs'} {d.log.read_text()[-300:]}" for d in self.drivers]
        last = [
            f"source {n}: {commits[-1] - self._began:.1f}"
            for n, commits in self._commits.items()
            if commits
        ]
        rows = [f"{row.second:.1f} {row.kind} {row.target} {row.seen}" for row in self.rows[-8:]]
        return "\n".join([*logs, ", ".join(last), *rows])

    def _hear(self) -> None:
        with self._told.open() as file:
            file.seek(self._heard)
            for line in file:
                if not line.endswith("\n"):
                    break
                self._heard += len(line)
                said = json.loads(line)
                if said["what"] == "begins":
                    self._begun.append(said)
                else:
                    for source in said["sources"]:
                        self._commits[source].append(said["at"])

    def _living(self) -> list[psutil.Process]:
        """The Python workers in which tasks have begun and that are still there, by their parents:
        a number may be another process's by now.
        """
        self._hear()
        begun = {said["pid"] for said in self._begun}
        found = [p for e in executors(*self._cluster.started) for p in python_workers(e)]
        return sorted((p for p in found if p.pid in begun), key=lambda p: p.pid)

    # --------------------------------------------------------------------------------------- faults

    def _do(self, kind: str) -> None:
        row = Row(time.monotonic() - self._began, kind, "")
        self.rows.append(row)
        if kind == BROKER_KILLED:
            row.target = "broker"
            self._broker.kill(self._chance.uniform(0.0, 1.5))
        elif kind.startswith("Python worker"):
            self._worker(kind, row)
        elif kind.startswith("executor"):
            found = executors(*self._cluster.started)
            victim = self._chance.choice(sorted(found, key=lambda p: p.pid)) if found else None
            row.target = "one of " + str(len(found))
            self._signal([victim] if victim else [], kind == EXECUTOR_STOPPED, (10, 25))
        else:
            self._another(kind, row)

    def _signal(
        self, victims: list[psutil.Process], stopped: bool, seconds: tuple[float, float]
    ) -> None:
        send(victims, signal.SIGSTOP if stopped else signal.SIGKILL)
        if stopped:
            self._suspended += victims
            wake = time.monotonic() + self._chance.uniform(*seconds)
            self._later.append((wake, lambda: send(victims, signal.SIGCONT)))

    def _worker(self, kind: str, row: Row) -> None:
        living = self._living()
        row.target = f"one of {len(living)}"
        if not living:
            return
        victim, now = self._chance.choice(living), time.monotonic()
        pid = victim.pid
        self._signal([victim], kind == WORKER_STOPPED, (4, 10))
        sources = {n for b in self._begun if b["pid"] == pid for n in b["sources"]}

        def look() -> None:
            others = [
                b
                for b in self._begun
                if b["at"] > now and b["pid"] != pid and sources & set(b["sources"])
            ]
            row.seen = "another attempt ran" if others else "no other attempt ran"

        if kind == WORKER_STOPPED:
            self._later.append((self._later[-1][0], look))

    def _another(self, kind: str, row: Row) -> None:
        """Another run, while the one before is killed, stopped, or left alone."""
        older = self._driver
        row.target = f"run {len(self.drivers)}"
        if kind == "another number of tasks":
            count = self._chance.choice([n for n in range(1, 5) if n != self._count])
            row.target, self._count = f"{self._count} -> {count}", count
        elif kind == DRIVER_STOPPED:
            self._signal(processes([older.process.pid]), True, (10, 20))
        else:
            older.killed = True
            older.process.kill()
        self._start()
        if not older.killed:
            self._wait(lambda: older.over is not None, "the older run ends")
            row.seen = f"the older ended {older.over}"

    def _end(self) -> None:
        """Let all go on, and stop the newest run between transactions."""
        self._wait(lambda: not self._later and self._broker.back, "all goes on")
        self._goes_on()
        for row, after in zip(self.rows, [*(r.second for r in self.rows[1:]), None], strict=True):
            row.seen = ", ".join(filter(None, [row.seen, self._after(row.second, after)]))
        self._stopping = True
        self._driver.process.send_signal(signal.SIGTERM)
        self._wait(lambda: all(d.over is not None for d in self.drivers), "the runs end")
        self._wait(
            lambda: not open_partitions(self._kafka, self._topic, f"{self._group}-offsets"),
            "nothing is open",
        )

    def _after(self, fault: float, following: float | None) -> str:
        """Whether each source was committed again between two faults."""
        first, last = (
            fault + self._began,
            float("inf") if following is None else following + self._began,
        )
        well = all(any(first < at < last for at in commits) for commits in self._commits.values())
        return "all sources go on" if well else "the next came upon it"


def processes(pids: Iterable[int]) -> list[psutil.Process]:
    """Those of them that are there."""
    found = []
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return found
