"""A polled task with a promised latency: commits that do not wait for its polls, on a thread of its
own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.task_runtime.spi.boundaries import Boundaries
from connectctl.ops.task_runtime.spi.connector import RetriableError, SourceRecord, SourceTask
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.transaction_batch import (
    EndReason,
    TaskResult,
    TaskStats,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.at_least_once import FlushBoundaries
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from connectctl.ops.task_runtime.task.polled_source import PolledSource
from connectctl.ops.task_runtime.task.task_thread import TaskThread
from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome
from fakes.polledsource import PARTITION, Broker, Handle, Plain, offset

JSON = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
LONG = 60.0
"""Seconds that only a failing test waits."""


class Committing(Handle):
    """Tells of each commit that is through."""

    def __init__(self, broker: Broker, committed: Callable[[], None]):
        super().__init__(broker)
        self._committed = committed

    def commit(self, patience: float) -> None:
        super().commit(patience)
        self._committed()


class Numbers(SourceTask):
    """One number for each poll, up to ``last``; ``before`` is called with each. Notes which threads
    call it.
    """

    last = 3
    threads: set[int]
    trace: list[str]

    @staticmethod
    def before(number: int) -> None:
        """Nothing."""

    def start(self, configs: Mapping[str, str]) -> None:
        self._note("start")
        stored = self.context.offsets.offset(PARTITION)
        self.next = stored["n"] + 1 if stored else 0

    def poll(self) -> Sequence[SourceRecord] | None:
        self._note(f"poll {self.next}")
        self.before(self.next)
        self.next += 1
        return [SourceRecord(PARTITION, {"n": self.next - 1}, "t", self.next - 1)]

    def commit_record(self, record: SourceRecord) -> None:
        self._note(f"record {record.value}")

    def commit(self) -> None:
        self._note("commit")

    @property
    def finished(self) -> bool:
        self.threads.add(threading.get_ident())
        return self.next > self.last

    @property
    def lag(self) -> int | None:
        self.threads.add(threading.get_ident())
        return self.last - self.next

    def stop(self) -> None:
        self._note("stop")

    def _note(self, what: str) -> None:
        self.threads.add(threading.get_ident())
        self.trace.append(what)


def run(
    broker: Broker, promise: float, committed: Callable[[], None] = lambda: None, **task: Any
) -> tuple[TaskResult, Any, PolledSource]:
    kind: Any = type("Scripted", (Numbers,), {"threads": set(), "trace": []} | task)
    stats = TaskStats()
    stats.latency.promise = promise
    supply = PolledSource(
        kind,
        "c",
        {},
        lambda: Boundaries(Boundary.POLL, latency=promise),
        converters(JSON),
        "offsets",
        stats.meter,
    )
    kernel = AttemptLoop(
        lambda: Committing(broker, committed),  # type: ignore[arg-type,return-value]
        SourceOffsetsLedger("offsets", broker),
        sleep=lambda seconds: None,
        stats=stats,
    )
    try:
        return kernel.run(supply), kind, supply
    finally:
        supply.close()


def _committed_during(promise: float) -> bool:
    """Run with a poll that has nothing to give until a transaction was committed; return whether
    that poll had begun before.
    """
    through = threading.Event()

    def before(number: int) -> None:
        if number == 2:
            assert through.wait(LONG), "nothing was committed while the poll waited"

    broker = Broker()
    ended, kind, _ = run(broker, promise, through.set, before=staticmethod(before))
    assert (ended.reason, broker.records, offset(broker)) == (EndReason.ENDED, [0, 1, 2, 3], 3)
    # behind the poll, which another thread is in
    return bool(kind.trace.index("record 1") > kind.trace.index("poll 2"))


def test_what_is_in_hand_is_committed_although_the_next_poll_has_nothing_to_give() -> None:
    # On a slow machine a short promise is over before that poll begins.
    assert any(map(_committed_during, (0.05, 1.0, 20.0)))


def test_one_thread_calls_all_of_the_task_and_it_is_not_that_of_the_loop() -> None:
    broker = Broker()
    _, kind, _ = run(broker, 0.001)
    assert len(kind.threads) == 1
    assert threading.get_ident() not in kind.threads


def test_each_record_is_told_once_and_before_the_poll_behind_the_next_one() -> None:
    broker = Broker()
    _, kind, _ = run(broker, 1e-6, last=20)
    told = [each for each in kind.trace if each.startswith("record")]
    assert told == [f"record {n}" for n in range(21)]
    for n in range(19):
        assert kind.trace.index(f"record {n}") < kind.trace.index(f"poll {n + 2}")
    assert kind.trace[-1] == "stop"


def test_a_promise_that_is_long_makes_one_transaction() -> None:
    broker = Broker()
    ended, _, _ = run(broker, 1000.0)
    assert (ended.stats.transactions, broker.records) == (1, [0, 1, 2, 3])
    assert (ended.stats.latency.records, ended.stats.latency.missed) == (4, 0)


def test_transactions_over_the_promise_are_counted() -> None:
    ended, _, _ = run(Broker(), 1e-9)
    assert ended.stats.latency.missed == ended.stats.transactions > 0
    assert ended.stats.latency.broken


def test_what_a_task_raises_is_raised_and_nothing_is_committed_for_it() -> None:
    def before(number: int) -> None:
        if number == 1:
            raise TimeoutError("of the task")

    broker = Broker()
    with pytest.raises(TimeoutError, match="of the task"):
        run(broker, 1000.0, before=staticmethod(before))
    assert broker.records == []


def test_a_retriable_error_is_a_poll_without_records_here_too() -> None:
    failed: list[int] = []

    def before(number: int) -> None:
        if number == 1 and not failed:
            failed.append(number)
            raise RetriableError("later")

    broker = Broker()
    run(broker, 0.01, before=staticmethod(before))
    assert broker.records == [0, 1, 2, 3]


def test_after_a_doubt_a_new_task_on_a_new_thread_starts_at_what_is_stored() -> None:
    broker = Broker()
    broker.doubt_at = 1
    _, kind, _ = run(broker, 1e-6)
    assert (broker.records, offset(broker), kind.trace.count("start")) == ([0, 1, 2, 3], 3, 2)


def test_a_task_that_has_its_say_of_offsets_is_asked_between_two_polls() -> None:
    inside: list[bool] = [False]

    def before(number: int) -> None:
        inside[0] = True

    def update(self: Any, offsets: Any) -> None:
        assert not inside[0], "asked while a poll was under way"

    def poll(self: Any) -> Any:
        found = Numbers.poll(self)
        inside[0] = False
        return found

    broker = Broker()
    run(broker, 1e-6, before=staticmethod(before), poll=poll, update_offsets=update)
    assert broker.records == [0, 1, 2, 3]


def test_the_lag_is_the_last_that_was_told_while_a_poll_is_under_way() -> None:
    told = threading.Event()

    def before(number: int) -> None:
        if number == 2:
            assert told.wait(LONG)

    kind: Any = type(
        "Scripted", (Numbers,), {"threads": set(), "trace": [], "before": staticmethod(before)}
    )
    supply = PolledSource(
        kind, "c", {}, lambda: Boundaries(Boundary.POLL, latency=1e-6), converters(JSON), "offsets"
    )
    supply.resume(Broker())
    first = supply.next()
    assert isinstance(first, TransactionBatch)
    supply.committed(first)
    assert supply.lag == 2
    supply.next()
    supply.next()  # the end of what is in hand, while the next poll waits
    assert supply.lag == 2
    told.set()
    supply.close()


def test_what_is_done_later_and_fails_is_raised_by_the_next_poll() -> None:
    thread, release = TaskThread(), threading.Event()

    def waits() -> Any:
        assert release.wait(LONG)
        return []

    def fails() -> None:
        raise UnknownOutcome("later")

    assert thread.poll(waits, 0.0) is None
    thread.later(fails)
    release.set()
    assert thread.poll(waits, LONG) is not None
    with pytest.raises(UnknownOutcome, match="later"):
        thread.poll(waits, LONG)
    thread.close()


@pytest.mark.parametrize(("sent", "seen"), [(True, [4]), (False, [0])])
def test_without_transactions_records_are_visible_once_they_are_sent_and_else_with_their_commit(
    sent: bool, seen: list[int]
) -> None:
    found: list[int] = []
    stats = TaskStats()

    class Offsets(Plain):
        def send_offsets(self, topic: str, offsets: Any) -> None:
            found.append(stats.latency.records)
            super().send_offsets(topic, offsets)

    broker = Broker()
    kind: Any = type("Scripted", (Numbers,), {"threads": set(), "trace": []})
    supply = PolledSource(
        kind, "c", {}, lambda: FlushBoundaries(1000.0), converters(JSON), "offsets", stats.meter
    )
    ledger = SourceOffsetsLedger("offsets", broker)
    kernel = AttemptLoop(lambda: Offsets(broker), ledger, stats=stats, visible_when_sent=sent)  # type: ignore[arg-type,return-value]
    assert kernel.run(supply).reason is EndReason.ENDED
    assert (found, stats.latency.records, broker.records) == (seen, 4, [0, 1, 2, 3])


def test_records_of_a_transaction_that_was_not_committed_are_not_measured() -> None:
    broker = Broker()
    broker.doubt_at = 1
    ended, _, _ = run(broker, 1e-6)
    assert ended.stats.latency.records == 4
