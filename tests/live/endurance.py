"""A campaign of faults against all kinds of tasks at once: on three brokers, by a network of its
own, on a Spark cluster.

A run whose tasks are polled, one that copies its topic, one of a DataFrame's stream, and a stream
that goes through a ``StreamWriter``, each in a driver of its own. Brokers die, are suspended,
restarted and lose their leaders; connections are cut and delayed; Python workers, executors and
drivers are killed and suspended; a connector goes to and fro between the workers of Connect and a
run, while either dies (``enduranceturns``). A driver that we kill is started again, as a supervisor
would; one that ends by itself is a failure. In the end the topics are judged.
"""

from __future__ import annotations

import json
import random
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import ConnectctlError
from fakes.faultproxy import Network
from live import brokerfaults, endurancestream
from live.brokerfaults import BrokerFaults
from live.campaigndrivers import CONF, LEASE, TIMEOUT_MS, Driver, job_file, pack, start
from live.campaignkinds import whose
from live.campaignoperator import Operator
from live.endurancestream import SOURCES
from live.enduranceturns import RESTARTED, RUN_KILLED, WORKER_KILLED, Turns
from live.oracle import Verdict, in_order, judge, open_partitions
from live.real import create_topic
from live.sparkclusters import executors, python_workers, send

if TYPE_CHECKING:
    from live.campaignbroker import Broker
    from live.sparkclusters import SparkCluster

PATIENCE = 1800.0
"""Seconds for whatever has to happen: beside others, a killed driver took nine minutes to start."""
CUT, ALL_CUT, DELAYED = "connections cut", "all connections cut", "connections delayed"
WORKER, WORKER_STOPPED = "Python worker kill -9", "Python worker stopped"
EXECUTOR, EXECUTOR_STOPPED = "executor kill -9", "executor stopped"
DRIVER, DRIVER_STOPPED = "driver kill -9", "driver stopped"
WEIGHTS = {ALL_CUT: 8, CUT: 24, DELAYED: 24, WORKER: 4, WORKER_STOPPED: 2}
WEIGHTS |= {EXECUTOR: 2, EXECUTOR_STOPPED: 1, DRIVER: 2, DRIVER_STOPPED: 1}
"""How often each comes in a cycle. What costs a driver or an executor its life comes seldom, so
that all get to work.
"""
KINDS = (*WEIGHTS, WORKER_KILLED, RUN_KILLED, RESTARTED, *brokerfaults.KINDS)
BROKERS = 0.25
"""The share of faults that are the brokers' own."""
LOOKED_AT = 25
"""Faults between two looks whether all go on."""
POLLED, COPY, STREAM, FRAME = "polled", "copy", "stream", "frame"
ALL = (POLLED, COPY, STREAM, FRAME)
"""The subjects of a campaign; a copy has what is polled for its source."""


@dataclass
class Subject:
    """Something that runs in a driver: what it writes to, how it is started, and its drivers so
    far.
    """

    name: str
    topic: str
    offsets: str
    launch: Callable[[int], Driver]
    drivers: list[Driver] = field(default_factory=list)

    def start(self) -> None:
        self.drivers.append(self.launch(len(self.drivers)))

    @property
    def driver(self) -> Driver:
        return self.drivers[-1]


@dataclass(frozen=True)
class Pace:
    """How much goes on beside the faults, which is most of what a campaign costs.

    ``trigger`` is Spark's interval between two micro-batches, ``pause`` are the seconds that a
    polled task rests at most, ``program`` is what the runs of the turns are started with, ``lease``
    are the seconds after which Spark tasks are started anew, ``cores`` are those of each DataFrame:
    two are one executor, four are one on each of Spark's workers. ``turns`` are those of workers
    and runs at most: each is several starts of workers, of a run and of commands.
    """

    trigger: str = "500 milliseconds"
    pause: str = "0.3"
    program: Sequence[str] = ("-m", "connectctl.cli")
    lease: int = LEASE
    cores: int = 4
    turns: int = 1_000


class Endurance:
    """Faults from ``seed`` against what runs on ``cluster`` and writes to ``broker``, which are
    three: the subjects of ``kinds``, beside the turns of workers and runs.
    """

    def __init__(
        self,
        broker: Broker,
        cluster: SparkCluster,
        seed: int,
        directory: Path,
        pace: Pace,
        kinds: Sequence[str] = ALL,
    ):
        self.seed, self.rows = seed, list[str]()
        self._pace = pace
        self._broker, self._cluster, self._directory = broker, cluster, directory
        self._chance = random.Random(seed)
        self._name = f"endures-{secrets.token_hex(4)}"
        self._network = Network(broker.bootstrap)
        self._kafka = Kafka({"bootstrap.servers": broker.bootstrap}, timeout=60)
        self._calls = TransactionClient({"bootstrap.servers": broker.bootstrap}, timeout=30)
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._began = time.monotonic()
        pack(directory)
        made = {
            POLLED: self._polling,
            COPY: self._copying,
            STREAM: self._streaming,
            FRAME: self._framing,
        }
        self._named = {kind: make() for kind, make in made.items() if kind in kinds}
        self.subjects = tuple(self._named.values())
        self._running = list(self.subjects)
        topics = [each for subject in self.subjects for each in (subject.topic, subject.offsets)]
        name = f"{self._name}-turns"
        self.turns = Turns(
            broker.sandbox,
            self._network.bootstrap,
            name,
            seed + 2,
            directory,
            pace.program,
            pace.turns,
        )
        self._operator = Operator(self._kafka, self._calls, [*topics, self.turns.topic])

    def close(self) -> None:
        self._calls.close()
        for subject in self.subjects:
            for driver in subject.drivers:
                send(_alive([driver.process.pid]), signal.SIGCONT)
                driver.process.kill()
                driver.process.wait()
        self._network.close()

    # ------------------------------------------------------------------------------------- subjects

    def _polling(self) -> Subject:
        name = f"{self._name}-polled"
        topic = self._topic(name, 4)
        (self._directory / "told").touch()
        config = {
            "tasks.max": "2",
            "topic": topic,
            "told": str(self._directory / "told"),
            "pause": self._pace.pause,
        }
        return Subject(POLLED, topic, f"g-{name}-offsets", self._run(name, config))

    def _copying(self) -> Subject:
        name, source = f"{self._name}-copy", f"{self._name}-polled-data"
        create_topic(self._broker.bootstrap, f"east.{source}", 4, "delete", self._broker.count)
        config = {
            "connector.class": "TopicCopy",
            "tasks.max": "2",
            "source.cluster.alias": "east",
            "target.cluster.alias": "west",
            "source.cluster.bootstrap.servers": self._network.bootstrap,
            "topics": source,
            "heartbeats.replication.enabled": "false",
        }
        return Subject(COPY, f"east.{source}", f"g-{name}-offsets", self._run(name, config))

    def _framing(self) -> Subject:
        name = f"{self._name}-frame"
        topic = self._topic(name, 4)
        config = {
            "connector.class": "DataFrameSource",
            "tasks.max": "2",
            "topic": topic,
            "streaming": "true",
            "format": "rate-micro-batch",
            "option.rowsPerBatch": str(endurancestream.ROWS),
            "query": f"SELECT CAST(value % {SOURCES} AS STRING) AS source, CAST(floor(value / "
            f"{SOURCES}) AS STRING) AS value, floor(value / {SOURCES}) + 1 AS next FROM "
            "source",
            "partition.columns": "source",
            "offset.column": "next",
            "key.column": "source",
            "checkpoint": str(self._directory / "frame-checkpoint"),
            "trigger.interval": self._pace.trigger,
        }
        return Subject(
            FRAME, topic, f"g-{name}-offsets", self._run(name, config, self._conf_of_frames)
        )

    @property
    def _conf_of_frames(self) -> dict[str, str]:
        return CONF | {"spark.cores.max": str(self._pace.cores)}

    def _run(
        self, name: str, config: Mapping[str, str], conf: Mapping[str, str] = CONF
    ) -> Callable[[int], Driver]:
        def launch(number: int) -> Driver:
            directory = self._directory / name
            directory.mkdir(exist_ok=True)
            (directory / "plugin.zip").write_bytes((self._directory / "plugin.zip").read_bytes())
            job = job_file(directory, number, name, self._cluster.master, config, conf)
            return start(job, self._network.bootstrap, f"g-{name}", self._pace.lease)

        return launch

    def _streaming(self) -> Subject:
        name = f"{self._name}-stream"
        topic, offsets = self._topic(name, 4), f"g-{name}-offsets"
        create_topic(self._broker.bootstrap, offsets, 5, "compact", self._broker.count)
        target = {
            "client": {"bootstrap.servers": self._network.bootstrap},
            "group_id": f"g-{name}",
            "connector": name,
            "topic": topic,
            "offsets_topic": offsets,
            "partition": "source",
            "offset": "next",
            "key": "source",
            "transaction_timeout_ms": TIMEOUT_MS,
            "patience": PATIENCE,
        }

        def launch(number: int) -> Driver:
            file = self._directory / f"stream-{number}.wish"
            checkpoint = str(self._directory / "checkpoint")
            wish = {
                "master": self._cluster.master,
                "conf": self._conf_of_frames,
                "target": target,
                "checkpoint": checkpoint,
            }
            wish["trigger"] = self._pace.trigger
            file.write_text(json.dumps(wish | {"log": str(file.with_suffix(".spark"))}))
            log = file.with_suffix(".log")
            with log.open("wb") as err, log.with_suffix(".json").open("wb") as out:
                command = [sys.executable, endurancestream.__file__, str(file)]
                return Driver(subprocess.Popen(command, stdout=out, stderr=err), log)

        return Subject(STREAM, topic, offsets, launch)

    def _topic(self, name: str, partitions: int) -> str:
        return create_topic(
            self._broker.bootstrap, f"{name}-data", partitions, "delete", self._broker.count
        )

    # ----------------------------------------------------------------------------------- the course

    def run(self, faults: int) -> None:
        """So many faults, and an end in peace."""
        for subject in self.subjects:
            subject.start()
        self._all_go_on()
        brokers = BrokerFaults(self._broker, self.seed + 1, round(faults * BROKERS))
        others = faults - round(faults * BROKERS)
        cycle = self._one_of_each(others) if others < sum(WEIGHTS.values()) else []
        looked_at = min(LOOKED_AT, others // 2)
        with self.turns.going_on(), brokers.going_on() as thread:
            for number in range(1, others + 1):
                cycle = cycle or self._chance.sample(
                    list(WEIGHTS), sum(WEIGHTS.values()), counts=WEIGHTS.values()
                )
                self._do(cycle.pop())
                self._pass(self._chance.uniform(0.2, 2.5))
                if number % looked_at == 0:
                    self._all_go_on()
            self._wait(lambda: not thread.is_alive(), "the brokers' faults are over")
            self._end()
        self.rows += [*brokers.rows, *self.turns.rows]

    def _one_of_each(self, count: int) -> list[str]:
        """A cycle of ``count``, which is shorter than one by ``WEIGHTS``: no kind is left out."""
        more = self._chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=count - len(WEIGHTS))
        return self._chance.sample([*WEIGHTS, *more], count)

    def _pass(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        self._wait(lambda: time.monotonic() > end, "time passes")

    def _all_go_on(self) -> None:
        """Each has committed more than it had."""
        before = self._committed()

        def on() -> bool:
            now = self._committed()
            return all(now[name] > before[name] + 100 for name in before)

        self._wait(on, "all go on", 1.0)

    def _committed(self) -> dict[str, int]:
        """How far committed records reach, by subject; asked of the brokers without a proxy."""
        names = [subject.topic for subject in self._running]
        end = time.monotonic() + PATIENCE
        while True:
            try:
                found = self._kafka.extents(names)
                return {
                    s.name: sum(e.stable for e in found[s.topic].values()) for s in self._running
                }
            except ConnectctlError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.5)  # brokers are on their way

    def _wait(self, until: Callable[[], bool], what: str, pause: float = 0.1) -> None:
        """Until it is true, while what is due is done. A driver that ended by itself ends the
        campaign.
        """
        end = time.monotonic() + PATIENCE
        while not until():
            for when, do in [each for each in self._later if each[0] <= time.monotonic()]:
                self._later.remove((when, do))
                do()
            for subject in self._running:
                if (over := subject.driver.over) is not None:
                    pytest.fail(
                        f"the driver of {subject.name} ended by itself ({over})\n{self.state()}"
                    )
            if self.turns.problem:
                pytest.fail(self.turns.problem)
            if time.monotonic() > end:
                pytest.fail(f"not within {PATIENCE:g} s: {what}\n{self.state()}")
            if self._broker.back:
                self._operator.look()
            time.sleep(pause)

    def state(self) -> str:
        """How the drivers are, for whoever has to find out why something is wrong."""
        logs = [
            f"{s.name} {n}: {d.over or 'runs'} {d.log}\n{d.log.read_text()[-1500:]}"
            for s in self.subjects
            for n, d in enumerate(s.drivers)
        ]
        return "\n".join([*logs, *self.rows[-12:], self._operator.words])

    def _end(self) -> None:
        """Let all go on, stop those that write, and the copy when it has all."""
        self._wait(lambda: not self._later and self._broker.back, "all goes on")
        self._all_go_on()
        self._stop(*self._writing())
        self._wait(lambda: not self.still_open(), "no transaction is open")
        if COPY in self._named:
            self._wait(self._copied, "the copy has all", 2.0)
            self._stop(self._named[COPY])
            assert self._copied()

    def _writing(self) -> list[Subject]:
        """The subjects that write numbers of their own."""
        return [subject for subject in self.subjects if subject.name != COPY]

    def _stop(self, *subjects: Subject) -> None:
        for subject in subjects:
            subject.driver.process.send_signal(signal.SIGTERM)
            self._running.remove(subject)
        self._wait(lambda: all(s.driver.over is not None for s in subjects), "they stop")
        assert all(s.driver.over == "stopped, exit code 0" for s in subjects), self.state()

    def _copied(self) -> bool:
        """Whether the copy has the committed records of each partition, in their order, and no
        other.
        """
        copied, source = self._named[COPY].topic, self._named[POLLED].topic
        return self._values(copied) == self._values(source)

    # --------------------------------------------------------------------------------------- faults

    def _do(self, kind: str) -> None:
        target = ""
        if kind in (CUT, ALL_CUT):
            proxies = (
                self._network.proxies
                if kind == ALL_CUT
                else [self._chance.choice(self._network.proxies)]
            )
            target = f"{sum(proxy.cut() for proxy in proxies)} of {len(proxies)} brokers"
        elif kind == DELAYED:
            number, seconds = (
                self._chance.randrange(self._broker.count),
                self._chance.uniform(0.3, 8.0),
            )
            self._network.proxies[number].delay(seconds)
            target = f"{seconds:.1f} s to broker {number + 1}"
        elif kind in (DRIVER, DRIVER_STOPPED):
            target = self._driver_fault(kind)
        else:
            target = self._executor_fault(kind)
        self.rows.append(f"{time.monotonic() - self._began:6.1f} {kind} {target}")

    def _driver_fault(self, kind: str) -> str:
        subject = self._chance.choice(self.subjects)
        if kind == DRIVER:
            subject.driver.killed = True
            subject.driver.process.kill()
            subject.start()
        else:
            self._suspend(_alive([subject.driver.process.pid]), self._chance.uniform(2.0, 15.0))
        return f"of {subject.name}"

    def _executor_fault(self, kind: str) -> str:
        found = sorted(executors(*self._cluster.started), key=lambda process: process.pid)
        if kind in (WORKER, WORKER_STOPPED):
            found = [worker for executor in found for worker in python_workers(executor)]
        if not found:
            return "(there was none)"
        victim = self._chance.choice(found)
        if kind in (WORKER_STOPPED, EXECUTOR_STOPPED):
            self._suspend([victim], self._chance.uniform(2.0, 20.0))
        else:
            send([victim])
        return f"one of {len(found)}"

    def _suspend(self, victims: list[psutil.Process], seconds: float) -> None:
        send(victims, signal.SIGSTOP)
        self._later.append((time.monotonic() + seconds, lambda: send(victims, signal.SIGCONT)))

    # ------------------------------------------------------------------------------------- verdicts

    def verdicts(self) -> dict[str, Verdict]:
        """What the topics say; the copy has no numbers of its own, see ``_end``."""
        return {
            s.name: judge(self._kafka, s.topic, s.offsets, f"{self._name}-{s.name}", whose)
            for s in self._writing()
        }

    def still_open(self) -> list[str]:
        """Partitions with an open transaction."""
        topics = [each for subject in self.subjects for each in (subject.topic, subject.offsets)]
        return [str(place) for place in open_partitions(self._kafka, *topics)]

    def _values(self, topic: str) -> list[list[tuple[bytes | None, bytes | None]]]:
        """Committed keys and values of each partition, in their order."""
        found: list[list[tuple[bytes | None, bytes | None]]] = [[] for _ in range(4)]
        for record in in_order(
            self._kafka.image([topic], patience=PATIENCE, superseded=True)[topic]
        ):
            found[record.partition].append((record.key, record.value))
        return found

    def table(self) -> str:
        """How often each fault came, and how many drivers there were."""
        kinds = Counter(next(kind for kind in KINDS if kind in row) for row in self.rows)
        drivers = ", ".join(f"{len(s.drivers)} of {s.name}" for s in self.subjects)
        counted = [f"{n:5} {kind}" for kind, n in kinds.most_common()]
        head = (
            f"seed {self.seed}: {len(self.rows)} faults in {time.monotonic() - self._began:.0f} s"
        )
        return "\n".join(
            [
                head,
                *counted,
                f"drivers: {drivers}",
                f"{self.turns.turns} take-overs and returns",
                self._operator.words,
            ]
        )


def _alive(pids: list[int]) -> list[psutil.Process]:
    return [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
