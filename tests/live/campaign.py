"""A campaign of faults against tasks that run: drawn from a seed, told in a table, judged on the
topics.

Tasks of one connector count source partitions up, without end, or copy a topic that is written
without end. At random moments one is killed, stopped past its transaction time-out and let go on
beside its successor, joined by a second attempt, or cut off from its coordinator; their number
changes; the broker is killed and comes back. What ran before a change is left running or killed, by
chance: it is the business of fencing.
"""

from __future__ import annotations

import random
import secrets
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.job.generation import fence
from fakes.faultproxy import Fault, FaultProxy
from live import campaignattempt
from live.campaignattempt import Attempt
from live.campaignkinds import GROUP, LEASE_ENDS, MEMBER_REMOVED, Kind, Sources
from live.campaignoperator import Operator
from live.campaignprocesses import PATIENCE, Processes, Running
from live.campaigntable import Row, table
from live.oracle import Verdict, markers

if TYPE_CHECKING:
    from live.campaignbroker import Broker

TIMEOUT_MS = 3_000
BROKER_KILLED = "broker kill -9"
MOST_TASKS = 4
ALONE = ("kill -9", "stopped and continued", "two attempts")


class Campaign:
    """Faults from ``seed`` against tasks of ``kind`` on ``broker``. With three brokers requests are
    not held back.

    ``silent``: every other question for ends is answered with none; ``believed``: by tasks that
    take that for ends.
    """

    def __init__(
        self,
        broker: Broker,
        seed: int,
        directory: Path,
        kind: Callable[[Kafka, str, str, int], Kind] = Sources,
        *,
        silent: bool = False,
        believed: bool = False,
    ):
        bootstrap, self._broker = broker.bootstrap, broker
        self._silent, self._believed = silent, believed
        self.seed, self.rows = seed, list[Row]()
        self._chance = random.Random(seed)
        self._cycle: list[str] = []
        self._connector = f"campaign-{secrets.token_hex(4)}"
        self._kafka = Kafka({"bootstrap.servers": bootstrap}, timeout=60)
        self._calls = TransactionClient({"bootstrap.servers": bootstrap}, timeout=30)
        self._kind = kind(self._kafka, bootstrap, self._connector, broker.count)
        self._operator = Operator(self._kafka, self._calls, self._kind.watched)
        self._generations = directory / "generation"
        self._generation, self._count = 0, 0
        self._current: list[Running] = []
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._held: list[Fault] = []
        self._proxy = FaultProxy(bootstrap)  # of the first broker alone
        self._bootstrap = self._proxy.bootstrap if broker.count == 1 else bootstrap
        held = self._kind.held if broker.count == 1 else ()
        self._kinds = (*ALONE, *held, "another number of tasks", *self._kind.faults)
        self._leases = 0
        self._processes = Processes()
        self._began = time.monotonic()

    def run(self, faults: int, broker_kills: int) -> Verdict:
        """So many faults, and an end in peace; the verdict is of the topics. ``broker_kills`` of
        them are the broker's.
        """
        self._regroup(2)
        killing = set(self._chance.sample(range(faults), broker_kills))
        for number in range(faults):
            self._let_run()
            if not self._cycle:
                self._cycle = self._chance.sample(self._kinds, len(self._kinds))
            self._do(BROKER_KILLED if number in killing else self._cycle.pop())
        self._end()
        return self._kind.judge()

    def close(self) -> None:
        self._processes.close()
        self._kind.close()
        self._proxy.close()
        self._calls.close()

    def table(self, verdict: Verdict) -> str:
        """What was done, and what was seen."""
        attempts = self._processes.attempts
        ends = Counter(running.over for running in attempts)
        doubts = [len(running.doubts) for running in attempts if running.doubts]
        more = [
            f"{len(attempts)} attempts: "
            + ", ".join(f"{n} {end}" for end, n in ends.most_common()),
            self._operator.words,
            f"{sum(doubts)} doubts of {len(doubts)} attempts, each with a new producer",
            f"{self._leases} times all leases ended, so that partitions that nobody had were "
            "assigned",
        ]
        return table(self.seed, self.rows, more, verdict, markers(self._kafka, self._kind.topic))

    def evidence(self) -> str:
        """What each attempt knew and doubted, for whoever has to find out why something is
        wrong.
        """
        return "\n".join(
            line for r in self._processes.attempts for line in (str(r), *r.doubts, *r.read)
        )

    def failures(self) -> list[str]:
        """Attempts that ended as none should."""
        return [f"{r}: {r.why}" for r in self._processes.attempts if r.over == "failed"]

    # ---------------------------------------------------------------------------------------- tasks

    def _start(self, task: int) -> Running:
        chance = self._chance
        attempt = Attempt(
            self._bootstrap,
            GROUP,
            self._connector,
            self._kind.topic,
            task,
            self._generation,
            str(self._generations),
            chance.randrange(1 << 30),
            TIMEOUT_MS,
            boundary=chance.choice(["poll", "poll", "interval"]),
            strict=chance.random() < 0.2,
            hesitation=chance.choice([0.0, 0.0, 0.4]),
            silent=self._silent,
            believes=self._believed,
            **self._kind.fields(task, self._count),
        )
        return self._processes.start(attempt)

    def _regroup(self, count: int) -> None:
        """Another generation of ``count`` tasks. What ran before runs on or dies; the round of
        fencing ends it.
        """
        self._generation += 1
        fresh = self._generations.with_suffix(".new")
        fresh.write_text(str(self._generation))
        fresh.replace(self._generations)
        for running in self._current:
            if self._chance.random() < 0.4:
                self._processes.killed(running)
        self._patiently(lambda: fence(self._calls, GROUP, self._connector, MOST_TASKS, PATIENCE))
        self._count = count
        self._begin()

    def _begin(self) -> None:
        """A round of leases, as the driver begins one."""
        self._kind.settle(range(self._count))
        self._current = [self._start(task) for task in range(self._count)]

    def _end_leases(self) -> None:
        """The tasks stop between two transactions, and begin again."""
        self._stop()
        self._begin()

    def _stop(self) -> None:
        for running in self._current:
            running.send(signal.SIGTERM)
        self._wait(lambda: all(r.over is not None for r in self._current), "the tasks stop")

    def _patiently(self, do: Callable[[], None]) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return do()
            except ConnectctlError:
                assert time.monotonic() < end
                time.sleep(0.5)

    def _let_run(self) -> None:
        """A random moment: mostly in the middle of work, now and then while tasks begin."""
        if self._chance.random() < 0.7:
            self._wait_for_leases(self._all_commit, "every task commits")
        end = time.monotonic() + self._chance.uniform(0.05, 0.6)
        self._wait(lambda: time.monotonic() > end, "time passes")
        self._restart()

    def _all_commit(self) -> bool:
        return all(r.commits or r.over is not None for r in self._current)

    def _restart(self) -> None:
        """Start again what ended by itself, such as one whose transaction timed out, as a driver
        would.
        """
        self._current = [
            r if r.over is None else self._start(r.attempt.task) for r in self._current
        ]

    def _wait(self, until: Callable[[], bool], what: str) -> None:
        """Until it is true, while what is due is done."""
        if not self._is_within(PATIENCE, until):
            pytest.fail(f"not within {PATIENCE:g} s: {what}\n{self._state()}")

    def _wait_for_leases(self, until: Callable[[], bool], what: str) -> None:
        """The same, through the ends of leases."""
        end = time.monotonic() + PATIENCE
        while not self._is_within(self._kind.lease, until):
            if time.monotonic() > end:
                pytest.fail(f"not within {PATIENCE:g} s: {what}\n{self._state()}")
            self._leases += 1
            self._end_leases()

    def _is_within(self, seconds: float, until: Callable[[], bool]) -> bool:
        end = time.monotonic() + seconds
        while not until():
            if time.monotonic() > end:
                return False
            self._due(time.monotonic())
            if self._broker.was_killed and self._broker.back:
                self._operator.look()
            time.sleep(0.02)
        return True

    def _state(self) -> str:
        """Who runs, what is open, and what they all do, by their tracebacks on stderr."""
        for running in self._processes.attempts:
            running.send(signal.SIGUSR1)
            time.sleep(0.2)  # so that no two tracebacks are mixed
        live = [str(r) for r in self._processes.attempts if r.over is None]
        rows = [f"{row.second:.1f} {row.kind} {row.target} {row.outcome}" for row in self.rows[-8:]]
        return "\n".join([*live, f"open: {', '.join(self._kind.is_open())}", *rows])

    def _due(self, now: float) -> None:
        for when, do in [each for each in self._later if each[0] <= now]:
            self._later.remove((when, do))
            do()

    # --------------------------------------------------------------------------------------- faults

    def _do(self, kind: str) -> None:
        place = self._chance.randrange(self._count)
        row = Row(time.monotonic() - self._began, kind, f"task {place}")
        self.rows.append(row)
        now = time.monotonic()
        if kind == "kill -9":
            self._processes.killed(self._current[place])
            self._current[place] = self._start(place)
        elif kind == "stopped and continued":
            row.whose = old = self._current[place]
            old.send(signal.SIGSTOP)
            self._current[place] = self._start(place)
            wake = now + TIMEOUT_MS / 1000 + self._chance.uniform(0.2, 1.5)
            self._later.append((wake, lambda: old.send(signal.SIGCONT)))
        elif kind == "two attempts":
            row.whose = self._current[place]
            self._current[place] = self._start(place)
        elif kind == "another number of tasks":
            count = self._chance.choice([n for n in range(1, MOST_TASKS + 1) if n != self._count])
            row.target = f"{self._count} -> {count}"
            self._regroup(count)
            row.followed(self._current)
        elif kind == LEASE_ENDS:
            self._end_leases()
            row.target = "all tasks"
            row.followed(self._current)
        elif kind == MEMBER_REMOVED:
            self._remove(self._current[place], row)
        elif kind == BROKER_KILLED:
            number = self._chance.randint(1, self._broker.count)
            row.target = (
                f"broker {number}" if self._broker.back else f"broker {number}, one on its way"
            )
            self._broker.kill(self._chance.uniform(0.0, 1.5), number)
            row.followed(self._current)
            if self._chance.random() < 0.6:
                # Mostly what comes next finds a broker; now and then it comes while there is none.
                self._wait(lambda: self._broker.back, "the broker is back")
        else:
            self._hold(kind, row)
        if kind in ALONE:
            row.followed([self._current[place]])

    def _remove(self, running: Running, row: Row) -> None:
        """The group gives the partitions of one to others; now and then it sleeps meanwhile, and
        wants to commit then.
        """
        if sleeps := self._chance.random() < 0.5:
            running.send(signal.SIGSTOP)
            wake = time.monotonic() + self._chance.uniform(0.5, TIMEOUT_MS / 1000 + 1.5)
            self._later.append((wake, lambda: running.send(signal.SIGCONT)))
        self._kind.remove(running.attempt.task)
        row.seen = "asleep" if sleeps else "awake"
        row.followed([each for each in self._current if not (sleeps and each is running)])

    def _alone(self) -> bool:
        """Whether nobody runs but the newest. An older one that initialises once more fences the
        newest, which ends.
        """
        self._restart()
        return all(r.over is not None for r in self._processes.attempts if r not in self._current)

    def _hold(self, kind: str, row: Row) -> None:
        """Hold the next request of the kind of whoever sends it, for less or for more than a
        request may take.
        """
        fault = self._proxy.hold(self._kind.held[kind])
        row.target = "any task"
        if not fault.caught.wait(20) and self._proxy.withdraw(fault):
            row.seen = "none was sent"
            return
        self._held.append(fault)
        seconds = self._chance.choice(
            [self._chance.uniform(0.1, 1.0), self._chance.uniform(1.8, 4.5)]
        )
        before = self._processes.doubts

        def look() -> None:
            late = "in time" if seconds < campaignattempt.SOCKET_TIMEOUT_MS / 1000 else "too late"
            row.seen = f"{late}: {'a doubt' if self._processes.doubts > before else 'no doubt'}"

        # librdkafka looks for requests without an answer once a second.
        delivery = time.monotonic() + seconds
        self._later += [(delivery, fault.go.set), (delivery + 1.5, look)]
        if self._chance.random() < 0.4:
            # Mostly the next fault comes upon its sender; now and then its sender is to find out by
            # itself.
            self._wait(lambda: bool(row.seen), "it is delivered")

    def _end(self) -> None:
        """Let all go on that was stopped or held, wait until what is older has ended, and stop the
        newest between transactions.
        """
        self._wait(lambda: not self._later and self._broker.back, "all goes on")
        for fault in self._held:
            assert fault.delivered.wait(PATIENCE)
        self._let_run()
        self._wait_for_leases(self._all_commit, "every task commits")
        self._wait(self._alone, "older attempts end")
        self._kind.finish()
        self._wait_for_leases(self._is_settled, "everything is carried over")
        self._stop()
        self._wait(lambda: not self._kind.is_open(), "no transaction is open")

    def _is_settled(self) -> bool:
        self._restart()
        return self._kind.is_settled()
