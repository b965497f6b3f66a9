"""What Kafka's ``ExactlyOnceWorkerSourceTaskTest`` asks about failures: at a start, in a flush, at
a stop.

Which of its methods is which test here: ``docs/conformance.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.attempt import task_attempt
from connectctl.ops.task_runtime.attempt.control_channel import DriverChannel, TaskChannel
from connectctl.ops.task_runtime.attempt.task_attempt import TaskLimits, TaskReport
from connectctl.ops.task_runtime.job.task_totals import TaskTotals
from connectctl.ops.task_runtime.spi.boundaries import Boundaries, End, Requests
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason, TaskResult
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from connectctl.ops.task_runtime.task.polled_source import PolledSource
from fakes.attemptwork import work
from fakes.polledsource import Broker, Handle, Task
from live.real import eventually


class Refusal(ConnectctlError):
    """What only a person can mend."""


def life(
    broker: Broker,
    fail: str | None = None,
    stopped: Callable[[], bool] = lambda: False,
    **task: Any,
) -> TaskResult:
    """The whole life of a task, which is refused at ``fail``."""

    def refuse(at: str) -> None:
        broker.trace.append(at)
        if at == fail:
            raise Refusal(at)

    class Failing(Handle):
        def initialise(self, patience: float) -> None:
            refuse("initialise")

        def send_offsets(self, topic: str, offsets: Any) -> None:
            refuse("offsets")

        def commit(self, patience: float) -> None:
            refuse("commit")
            super().commit(patience)

        def discard(self) -> None:
            broker.trace.append("drop")

    class Store(Broker):
        def refresh(self, patience: float) -> None:
            refuse("read")
            self.looked()

    checks = iter(("before", "after"))
    kind = type("Scripted", (Task,), {"broker": broker, "asks": {}, "asks_batch": {}} | task)
    supply = PolledSource(
        kind, "c", {}, lambda: Boundaries(Boundary.POLL), converters({}), "offsets"
    )
    kernel = AttemptLoop(
        lambda: Failing(broker),  # type: ignore[arg-type,return-value]
        SourceOffsetsLedger("offsets", Store()),
        stale_because=lambda: refuse(next(checks)),
        stopped=stopped,
        sleep=lambda seconds: None,
    )
    try:
        return kernel.run(supply)
    finally:
        supply.close()


STARTS = {
    "before": ["before"],
    "initialise": ["before", "initialise", "drop"],
    "after": ["before", "initialise", "after", "drop"],
    "read": ["before", "initialise", "after", "read", "drop"],
}


@pytest.mark.parametrize("fail", STARTS)
def test_a_failure_on_the_way_to_its_start_ends_it_before_the_source_is_touched(fail: str) -> None:
    broker = Broker()
    with pytest.raises(Refusal, match=fail):
        life(broker, fail)
    assert broker.trace == STARTS[fail]


def test_a_task_that_fails_in_its_start_is_stopped_so_that_it_can_let_go_of_what_it_has() -> None:
    def start(self: Any, configs: Any) -> None:
        raise ZeroDivisionError

    def stop(self: Any) -> None:
        self.broker.trace.append("stop")
        raise KeyError("stop")

    broker = Broker()
    with pytest.raises(ZeroDivisionError):
        life(broker, start=start, stop=stop)
    assert broker.trace[-2:] == ["stop", "drop"]


@pytest.mark.parametrize("fail", ["offsets", "commit"])
def test_a_flush_that_fails_commits_nothing_and_the_task_hears_of_no_commit(fail: str) -> None:
    broker = Broker()
    with pytest.raises(Refusal, match=fail):
        life(broker, fail)
    assert (broker.records, broker.offsets) == ([], {})
    assert not {"committed", "record 0"} & set(broker.trace)
    assert broker.trace[-1] == "stop"


def test_a_task_that_is_stopped_while_it_starts_is_never_polled_and_stopped_once() -> None:
    broker, wish = Broker(), []

    def start(self: Any, configs: Any) -> None:
        self.next = 0
        wish.append("stop")

    def poll(self: Any) -> Any:
        raise AssertionError("polled")

    ended = life(broker, stopped=lambda: bool(wish), start=start, poll=poll)
    assert (ended.reason, broker.trace.count("stop")) == (EndReason.STOPPED, 1)


@pytest.mark.parametrize("error", [ZeroDivisionError("late"), ConnectctlError("late")])
def test_a_poll_that_fails_once_the_task_is_to_stop_is_no_failure_and_is_told(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    board = DriverChannel("127.0.0.1")

    def failing(*args: Any) -> Any:
        board.stop()
        (line,) = (each for each in args if isinstance(each, TaskChannel))
        eventually(lambda: line.stopped)
        raise error

    monkeypatch.setattr(task_attempt, "_run", failing)
    report = task_attempt.run(work("x:y"), 0, {}, TaskLimits(1.0), board.address)
    board.close()
    total = TaskTotals()
    total.add(TaskReport(**vars(report)))
    assert (report.reason, total.failure, total.stop_failure) == (
        "stopped",
        None,
        f"{type(error).__name__}: late",
    )


class TestTransactionContext:
    """``WorkerTransactionContextTest``."""

    @pytest.mark.parametrize("of", ["record", "batch"])
    @pytest.mark.parametrize("end", End)
    def test_each_request_is_told_once(self, end: End, of: str) -> None:
        requests, record = Requests(), object()
        ask: Any = requests.commit_transaction if end is End.COMMIT else requests.abort_transaction
        ask(*([record] if of == "record" else []))
        answer: Any = (lambda: requests.of_record(record)) if of == "record" else requests.of_batch  # type: ignore[arg-type]
        other: Any = requests.of_batch if of == "record" else lambda: requests.of_record(record)  # type: ignore[arg-type]
        assert other() is None
        assert [answer(), answer()] == [end, None]

    @pytest.mark.parametrize("of", ["record", "batch"])
    @pytest.mark.parametrize("first", End)
    def test_requests_for_both_ends_of_one_transaction_are_refused(
        self, first: End, of: str
    ) -> None:
        requests = Requests()
        given: Any = [object()] if of == "record" else []
        ways: list[Any] = [requests.commit_transaction, requests.abort_transaction]
        if first is End.ABORT:
            ways.reverse()
        ways[0](*given)
        ways[0](*given)  # which is the same request
        with pytest.raises(ConnectctlError, match="both a commit and an abort"):
            ways[1](*given)
