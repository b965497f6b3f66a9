"""A driver and its tasks on threads, with the real channel between them: nothing begins anew while
they work, and all that the driver does between two rounds it does while one lasts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.task_runtime.attempt import control_channel, task_attempt
from connectctl.ops.task_runtime.attempt.control_channel import DriverChannel
from connectctl.ops.task_runtime.attempt.task_attempt import TaskReport, TimeboxedSource
from connectctl.ops.task_runtime.job import early_ends, rounds, scheduler
from connectctl.ops.task_runtime.job.executor_monitor import ExecutorMonitor
from connectctl.ops.task_runtime.job.job_file import Until
from connectctl.ops.task_runtime.job.rounds import Rounds, StartedTasks
from connectctl.ops.task_runtime.job.scheduler import FinalStatus
from connectctl.ops.task_runtime.job.spark_round import side_by_side
from connectctl.ops.task_runtime.spi.transaction_batch import IDLE, EndReason, Event, TaskResult
from fakes.attemptwork import work
from live.real import eventually


class Busy:
    """A source that always has a record."""

    has_more, lag = True, 5

    def resume(self, stored: Any) -> None:
        pass

    def next(self) -> Event:
        time.sleep(0.01)
        return IDLE


class Driver:
    """A run of two tasks. ``events`` are what happens to a task, by its number; ``starts`` are the
    tasks that have begun, ``states`` what was written last of each.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, until: Until):
        self.events: dict[int, Any] = {}
        self.starts: list[int] = []
        self.written: list[tuple[int, str, float]] = []
        self.stale: str | None = None
        self.stopping = False
        self.job: Any = None
        self.until = until
        monkeypatch.setattr(task_attempt, "_run", self._task)
        for module in (rounds, scheduler):
            monkeypatch.setattr(module, "REPORT", 0.3)
        for module in (control_channel, task_attempt):
            monkeypatch.setattr(module, "HEARTBEAT", 0.1)
        monkeypatch.setattr(rounds, "SparkRound", Threads)
        monkeypatch.setattr(rounds, "executor_monitor", lambda *_: MONITOR)
        monkeypatch.setattr(Rounds, "_spec", lambda _: work("x:y"))
        monkeypatch.setattr(Rounds, "_reached", lambda _: {})
        monkeypatch.setattr(Rounds, "_stale_because", lambda _: self.stale)
        monkeypatch.setattr(scheduler, "PAUSE", 0.0)

    def _task(
        self, spec: Any, near: Any, task: int, config: Any, limits: Any, line: Any, stats: Any
    ) -> tuple[TaskResult, TimeboxedSource]:
        self.starts.append(task)
        leased = TimeboxedSource(Busy(), task, stats, limits, line)  # type: ignore[arg-type]
        leased.resume(None)  # type: ignore[arg-type]
        while not leased.should_stop():
            leased.next()
            stats.commit(1)
            event = self.events.pop(task, None)
            if isinstance(event, Exception):
                raise event
            if event is not None:
                return TaskResult(event, stats, "why"), leased
        return TaskResult(EndReason.STOPPED, stats), leased

    def totals(self, task: int) -> float:
        """Return the last number of records in the statuses of a task."""
        return max((n for number, _, n in self.written if number == task), default=0)

    def state(self, task: int) -> str:
        return next((state for n, state, _ in reversed(self.written) if n == task), "")

    @contextmanager
    def running(self) -> Iterator[list[FinalStatus]]:
        """Run it; its outcome is there in the end."""
        ready: Any = SimpleNamespace(
            connector=SimpleNamespace(refresh_seconds=lambda config: None),
            config={},
            changed_tasks=None,
            subscription=None,
            take_over=False,
            name="c",
            job=SimpleNamespace(until=self.until),
        )
        scene = SimpleNamespace(target=SimpleNamespace(silent=lambda: None))
        run: Any = SimpleNamespace(
            ready=ready,
            scene=scene,
            spark=None,
            note=lambda line: None,
            tell=lambda job, board: None,
            patience=30.0,
            outage=SimpleNamespace(seconds=0.0),
            lease=3600.0,
            signals=SimpleNamespace(count=0),
            overtaken=lambda: None,
            retries=lambda what, call: call(),
            members=None,
            presence=None,
        )
        statuses: Any = SimpleNamespace(
            connector=lambda state, why: None,
            task=self._status,
            flush=lambda: None,
            drop_other_tasks=lambda count: None,
        )
        outcome: list[FinalStatus] = []
        with closing(DriverChannel("127.0.0.1")) as board:
            made = Rounds(run, StartedTasks(None, [{}, {}], None), board, statuses, None)  # type: ignore[arg-type]
            self.job = made.job_run()

            def go() -> None:
                with made.watching(self.job):
                    outcome.append(self.job.run())

            thread = threading.Thread(target=go)
            thread.start()
            yield outcome
            run.signals.count = 1
            thread.join()

    def _status(self, task: int, state: str, trace: str | None, metrics: Mapping[str, Any]) -> None:
        self.written.append((task, state, metrics["source-record-write-total"] or 0))


MONITOR = ExecutorMonitor(lambda: 1, "local", lambda line: None)


class Threads:
    """In the place of a round on Spark."""

    lost = None

    def __init__(self, spark: Any, spec: Any, tasks: Any, limits: Any, address: Any, most: Any):
        self.tasks, self.width = tasks, 2
        self.reports: list[TaskReport] = []

        def run(number: int) -> TaskReport:
            report = task_attempt.run(spec, number, {}, limits, address, near)
            return TaskReport.parse(report.json)

        near: Any = object()
        self._thread = threading.Thread(
            target=lambda: self.reports.extend(side_by_side(list(tasks), run))
        )
        self.start = self._thread.start

    def wait(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    return Driver(monkeypatch, Until())


def test_statuses_come_while_tasks_work_and_nothing_begins_anew(driver: Driver) -> None:
    with driver.running() as outcome:
        for _ in range(4):
            before = driver.totals(0), driver.totals(1)
            eventually(lambda: driver.totals(0) > before[0] and driver.totals(1) > before[1])  # noqa: B023
    assert (outcome, sorted(driver.starts)) == ([FinalStatus.STOPPED], [0, 1])


def test_a_failed_task_is_failed_at_once_and_the_other_works_on(driver: Driver) -> None:
    with driver.running() as outcome:
        eventually(lambda: driver.totals(1))
        driver.events[1] = ValueError("bang")
        eventually(lambda: driver.state(1) == "FAILED")
        before = driver.totals(0)
        eventually(lambda: driver.totals(0) > before)
        assert driver.state(0) == "RUNNING"
    assert (outcome, sorted(driver.starts)) == ([FinalStatus.FAILED], [0, 1])
    assert driver.job.totals[1].failure == "ValueError: bang"


@pytest.mark.parametrize("reason", [EndReason.FENCED, EndReason.SLOW, EndReason.STOPPED])
def test_a_task_that_ended_begins_again_and_a_second_of_the_other_is_the_price(
    driver: Driver, reason: EndReason
) -> None:
    with driver.running() as outcome:
        eventually(lambda: driver.totals(0) and driver.totals(1))
        driver.events[0] = reason
        eventually(lambda: sorted(driver.starts) == [0, 0, 1, 1])
        before = driver.totals(0)
        eventually(lambda: driver.totals(0) > before)
    assert outcome == [FinalStatus.STOPPED]
    assert driver.job.totals[0].fenced == (reason is EndReason.FENCED)


def test_a_source_that_has_ended_leaves_the_other_alone(driver: Driver) -> None:
    with driver.running() as outcome:
        eventually(lambda: driver.totals(0))
        driver.events[0] = EndReason.ENDED
        eventually(lambda: driver.job.active == [1])
        before = driver.totals(1)
        eventually(lambda: driver.totals(1) > before)
    assert (outcome, sorted(driver.starts)) == ([FinalStatus.STOPPED], [0, 1])


def test_a_stale_task_ends_the_run_of_both(driver: Driver) -> None:
    with driver.running() as outcome:
        eventually(lambda: driver.totals(0))
        driver.events[0] = EndReason.STALE
        eventually(lambda: outcome)
    assert (outcome, driver.job.reason) == ([FinalStatus.TAKEN], "why")


def test_a_newer_generation_has_the_tasks_look_for_themselves(driver: Driver) -> None:
    with driver.running() as outcome:
        eventually(lambda: driver.totals(0))
        driver.stale = "newer configs"
        eventually(lambda: len(driver.starts) >= 4)
        driver.stale = None
    assert outcome == [FinalStatus.STOPPED]


def test_tasks_end_with_all_records_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(monkeypatch, Until(records=100))
    with driver.running() as outcome:
        eventually(lambda: outcome)
    assert (outcome, sorted(driver.starts)) == ([FinalStatus.ENDED], [0, 1])
    assert driver.job.records >= 100


def test_tasks_that_do_not_hear_their_driver_end_and_begin_again(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "SILENCE", 0.8)
    send = DriverChannel._send
    with driver.running() as outcome:
        eventually(lambda: driver.totals(0))
        monkeypatch.setattr(DriverChannel, "_send", lambda self, word: None)
        eventually(lambda: driver.starts.count(0) > 1)
        monkeypatch.setattr(DriverChannel, "_send", send)
    assert outcome == [FinalStatus.STOPPED]


def test_tasks_without_a_connection_are_lost_and_leases_end(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early_ends, "LOST_AFTER", 0.5)
    monkeypatch.setattr(rounds, "is_dynamic", lambda spark: True)
    with driver.running() as outcome:
        eventually(lambda: driver.totals(0))
        monkeypatch.setattr(DriverChannel, "connected", frozenset({0}))
        eventually(lambda: driver.starts.count(0) > 1)
    assert outcome == [FinalStatus.STOPPED]
