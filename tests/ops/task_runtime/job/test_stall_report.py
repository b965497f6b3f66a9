"""While no task gets through to Kafka a run says once what is waited for, and once that it goes
on.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import TimedOut
from connectctl.ops.task_runtime.attempt.control_channel import HEARTBEAT
from connectctl.ops.task_runtime.attempt.task_attempt import TaskLimits, TaskReport, TimeboxedSource
from connectctl.ops.task_runtime.job.scheduler import JobRun
from connectctl.ops.task_runtime.job.stall_report import StallReport, waiting
from connectctl.ops.task_runtime.spi.transaction_batch import IDLE, EndReason, Event, TaskStats
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.progress import SLOW, TaskProgress
from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome
from fakes.numberskernel import FakeHandle, Log, Numbers, kernel

NOON = datetime(2026, 1, 1, 12, 0, 0)
AWAY = "1 of 3 brokers do not accept connections: 2 (b:9092)"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def waits(seconds: float, why: str = "") -> dict[str, Any]:
    return {"waiting": {"seconds": seconds, "what": "commit a transaction", "why": why}}


def test_it_is_told_once_what_is_waited_for_since_when_and_until_when_and_once_that_it_goes_on(
    clock: Clock,
) -> None:
    said: list[str] = []
    still = StallReport("lines", 300, lambda: AWAY, said.append, clock, lambda: NOON)
    still.update({0: waits(6)}, [0, 1])
    still.update({0: waits(6), 1: {}}, [0, 1])
    assert not said
    for _ in range(5):
        still.update({0: waits(6, "it could not commit"), 1: waits(10, "no answer")}, [0, 1])
        clock.now += 5
    still.update({}, [0, 1])  # a round is over, and nobody has said anything in the next one
    assert said == [
        "waiting: no task of lines could commit a transaction since 11:59:50; all tasks retry "
        "until 12:04:50 (--patience): 1 of 3 brokers do not accept connections: 2 (b:9092); no "
        "answer"
    ]
    still.update({0: {}, 1: waits(30)}, [0, 1])
    still.update({0: {}, 1: waits(30)}, [0, 1])
    assert said[1:] == ["continuing after 35 s: Kafka responds to lines again"]
    still.update({1: waits(30)}, [1])  # the other one is over
    assert len(said) == 3


def test_brokers_that_take_connections_and_do_not_answer_are_told_so(clock: Clock) -> None:
    said: list[str] = []
    StallReport("lines", 300, lambda: None, said.append, clock).update({0: waits(6)}, [0])
    assert said[0].endswith("(--patience): brokers accept connections but do not respond")
    # it has never seen one
    assert Kafka({"bootstrap.servers": "127.0.0.1:1"}, timeout=1).silent() is None


@pytest.mark.parametrize(
    ("endless", "until"),
    [(False, "12:04:50 (--patience)"), (True, "it ends (--patience SECONDS limits it)")],
)
def test_an_open_transaction_that_is_waited_for_is_not_told_as_brokers_that_do_not_respond(
    clock: Clock, endless: bool, until: str
) -> None:
    """Pending offsets of a group (KIP-447): its coordinator responds, and says to wait."""
    task = TaskProgress(now=clock)
    said: list[str] = []
    still = StallReport("lines", 300, lambda: AWAY, said.append, clock, lambda: NOON)
    why = (
        "offsets of connect-lines on in-0 are pending (KIP-447), and wait for the transaction "
        "of jobs-lines-1"
    )
    with task.asking("join its consumer group"):
        task.waits(why, endless)
        clock.now += 10
        still.update({0: {"waiting": task.message}}, [0])
        told = waiting({0: {"waiting": task.message}, 1: waits(6), 2: {}})
        assert told == ["1 waiting for Kafka", f"1 waiting: {why}"]
    assert said == [
        "waiting: no task of lines could join its consumer group since 11:59:50; all tasks retry "
        f"until {until}: {why}"
    ]
    task.recovered()
    still.update({0: {}}, [0])
    assert said[1:] == ["continuing after 10 s: what it waited for has ended"]
    with task.asking("commit"):
        clock.now += 10
        assert "answered" not in (task.message or {})


def test_brokers_that_take_no_connection_are_named() -> None:
    class Broker:
        def __init__(self, id_: int, port: int):
            self.id, self.host, self.port = id_, "127.0.0.1", port

    kafka = Kafka({"bootstrap.servers": "127.0.0.1:1"}, timeout=1)
    kafka.__dict__["_metadata"] = type("M", (), {"brokers": {7: Broker(7, 1), 3: Broker(3, 2)}})
    assert (
        kafka.silent()
        == "2 of 2 brokers do not accept connections: 3 (127.0.0.1:2), 7 (127.0.0.1:1)"
    )


def test_a_call_that_does_not_return_and_one_that_failed_are_told_until_kafka_answers(
    clock: Clock,
) -> None:
    doing = TaskProgress(now=clock)
    with doing.asking("initialise its producer"):
        clock.now += SLOW - 1
        assert doing.message is None
        clock.now += 1
        assert doing.message == {"seconds": SLOW, "what": "initialise its producer", "why": ""}
    assert doing.message is None

    def lost() -> None:
        with doing.asking("commit a transaction"):
            clock.now += 10
            raise UnknownOutcome

    with pytest.raises(UnknownOutcome):
        lost()
    assert doing.failed("no answer")
    with doing.asking("initialise its producer"):
        clock.now += 1
    assert not doing.failed("no coordinator")
    assert doing.message == {
        "seconds": 11.0,
        "what": "initialise its producer",
        "why": "no coordinator",
    }
    assert TaskProgress(doing.waited, clock).message == {
        "seconds": 11.0,
        "what": "continue",
        "why": "",
    }
    doing.recovered()
    assert (doing.message, doing.waited) == (None, 0)


@pytest.mark.parametrize(("seconds", "waited"), [(60, 60), (61, 0)])
def test_a_process_that_was_suspended_in_a_call_has_not_waited_for_kafka(
    clock: Clock, seconds: float, waited: float
) -> None:
    doing = TaskProgress(now=clock)
    doing.asking("write its offsets").__enter__()  # and never left, as one that raises
    clock.now += seconds
    doing.failed("another member has the partition", 60)
    assert doing.waited == waited


class Slow(FakeHandle):
    """Its commit takes as long as ``during`` needs."""

    during: Any = None

    def commit(self, patience: float) -> None:
        self.during()
        super().commit(patience)


def test_a_task_tells_the_driver_from_another_thread_while_its_own_waits(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Any] = []
    line: Any = SimpleNamespace(
        send=said.append, stopped=False, lease_over=False, connected=True, attempt="", last_line=0.0
    )
    monkeypatch.setattr(
        "connectctl.ops.task_runtime.attempt.task_attempt.time", type("T", (), {"monotonic": clock})
    )
    counts = TaskStats(progress=TaskProgress(now=clock))
    supply: Any = Numbers(4)
    supply.lag, supply.has_more = 7, False
    leased = TimeboxedSource(supply, 3, counts, TaskLimits(1000.0), line)

    def during() -> None:
        before = len(said)
        leased.heartbeat()
        assert len(said) == before
        clock.now += max(SLOW, 2 * HEARTBEAT)
        leased.heartbeat()

    monkeypatch.setattr(Slow, "during", staticmethod(during))
    log = Log()
    assert (
        kernel(log, stats=counts, open_producer=lambda: Slow(log)).run(leased).reason
        is EndReason.ENDED
    )
    assert said
    assert all(each["waiting"]["what"] == "commit a transaction" for each in said)
    assert counts.progress.waited == 0


def test_what_a_task_has_waited_counts_in_its_next_lease_too() -> None:
    counts = TaskStats(progress=TaskProgress(50.0))
    log = Log(fail={n: lambda: UnknownOutcome("no answer") for n in range(1, 50)})
    with pytest.raises(TimedOut, match="for 40 s"):
        kernel(log, stats=counts, patience=40.0).run(Numbers(8))
    report = TaskReport.parse(TaskReport.of(0, EndReason.STOPPED.value, counts).json)
    run = JobRun({0: {}, 1: {}}, _until(), lambda tasks, terms: None)  # type: ignore[arg-type,return-value]
    run.totals[0].add(report)
    assert run.waited == {0: pytest.approx(50.0, abs=10)}
    assert run.active == [0, 1]


def test_a_source_that_has_nothing_is_nobody_that_waits() -> None:
    counts = TaskStats(progress=TaskProgress(50.0))
    looks: Iterator[bool] = iter([False, False, True, True, True, True])

    class Idle(Numbers):
        def next(self) -> Event:
            return IDLE

    log = Log()
    AttemptLoop.run(kernel(log, stats=counts, stopped=lambda: next(looks)), Idle(0))
    assert counts.progress.waited == 0


def _until() -> Any:
    from connectctl.ops.task_runtime.job.job_file import Until

    return Until()
