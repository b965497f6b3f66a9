"""When a lease is over, and that whatever a task raises is told and not thrown at Spark."""

from __future__ import annotations

import math
from typing import Any

import pytest
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.task_runtime.attempt import task_attempt
from connectctl.ops.task_runtime.attempt.control_channel import DriverAddress
from connectctl.ops.task_runtime.attempt.task_attempt import (
    FAILED,
    TaskLimits,
    TaskReport,
    TimeboxedSource,
    run,
)
from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
from connectctl.ops.task_runtime.spi.transaction_batch import (
    IDLE,
    Event,
    ProducerRecord,
    Read,
    TaskStats,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.polled_source import PolledSource
from fakes.attemptwork import work

NOBODY = DriverAddress("127.0.0.1", 1, "word")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(task_attempt, "time", made)
    return made


class Supply:
    lag, has_more = 7, False

    def __init__(self) -> None:
        self.steps: list[Event] = []

    def resume(self, stored: Any) -> None:
        pass

    def next(self) -> Event:
        return self.steps.pop(0) if self.steps else IDLE


class Line:
    stopped = lease_over = False
    connected, attempt = True, "a"

    def __init__(self, last_line: float = math.inf) -> None:
        self.said: list[Any] = []
        self.last_line = last_line

    def send(self, said: Any) -> None:
        self.said.append(said)


def leased(terms: TaskLimits, counts: TaskStats | None = None) -> tuple[TimeboxedSource, Any, Any]:
    supply: Any = Supply()
    line: Any = Line()
    return TimeboxedSource(supply, 3, counts or TaskStats(), terms, line), supply, line


def test_a_lease_lasts_from_the_first_resumption_on(clock: Clock) -> None:
    made, _, _ = leased(TaskLimits(10.0))
    clock.now += 60  # a dead predecessor's transaction was in the way
    assert not made.should_stop()
    made.resume(None)  # type: ignore[arg-type]
    clock.now += 9
    made.resume(None)  # type: ignore[arg-type]
    assert not made.should_stop()
    clock.now += 1
    assert made.should_stop()


def test_it_is_idle_once_no_record_has_come_for_long_enough(clock: Clock) -> None:
    made, supply, _ = leased(TaskLimits(1000.0, idle=5.0))
    made.resume(None)  # type: ignore[arg-type]
    clock.now += 4
    supply.steps = [
        TransactionBatch([ProducerRecord("t", None, b"")]),
        TransactionBatch(offsets={b"k": b"v"}),
    ]
    made.next()
    clock.now += 4
    made.next()  # offsets alone are no records
    assert not made.should_stop()
    clock.now += 1
    assert not made.should_stop()  # nobody has looked since
    made.next()
    # the driver ends the leases of idle tasks
    assert (made.should_stop(), made.idle, made.quiet) == (False, True, 5.0)


def test_the_time_without_a_record_goes_on_from_lease_to_lease_and_ends_with_a_record(
    clock: Clock,
) -> None:
    supply: Any = Supply()
    line: Any = Line()
    made = TimeboxedSource(supply, 3, TaskStats(), TaskLimits(5.0, idle=12.0), line, quiet=10.0)
    clock.now += 30  # between two leases nobody looks
    made.resume(None)  # type: ignore[arg-type]
    assert not made.idle
    clock.now += 1
    made.next()
    assert (made.idle, made.quiet) == (False, 11.0)
    clock.now += 1
    made.next()
    assert (made.should_stop(), made.idle) == (False, True)
    assert line.said[-1]["idle"]
    supply.steps = [TransactionBatch([ProducerRecord("t", None, b"")])]
    made.next()
    assert (made.should_stop(), made.idle, made.quiet) == (False, False, 0.0)
    assert not line.said[-1]["idle"]


def test_a_task_that_was_idle_before_looks_once_before_it_is_idle_again(clock: Clock) -> None:
    supply: Any = Supply()
    line: Any = Line()
    made = TimeboxedSource(supply, 3, TaskStats(), TaskLimits(5.0, idle=12.0), line, quiet=60.0)
    made.resume(None)  # type: ignore[arg-type]
    assert not made.idle
    made.next()
    assert made.idle


def test_a_supply_that_is_behind_its_source_is_not_idle(clock: Clock) -> None:
    made, supply, _ = leased(TaskLimits(1000.0, idle=5.0))
    made.resume(None)  # type: ignore[arg-type]
    supply.has_more = True
    clock.now += 6
    made.next()
    assert not made.should_stop()
    supply.has_more = False
    clock.now += 5
    made.next()
    assert made.idle


def test_a_source_that_cannot_be_reached_is_not_idle(clock: Clock) -> None:
    made, supply, _ = leased(TaskLimits(1000.0, idle=5.0))
    made.resume(None)  # type: ignore[arg-type]

    def lost(stored: Any) -> None:
        clock.now += 30
        raise Unreachable("gone")

    supply.resume = lost
    with pytest.raises(Unreachable):
        made.resume(None)  # type: ignore[arg-type]
    assert not made.should_stop()


def test_it_ends_with_enough_records_or_at_the_drivers_wish(clock: Clock) -> None:
    counts = TaskStats()
    made, _, line = leased(TaskLimits(1000.0, records=10), counts)
    counts.commit(9)
    assert not made.should_stop()
    counts.commit(1)
    assert made.should_stop()
    made, _, line = leased(TaskLimits(1000.0))
    line.stopped = True
    assert made.should_stop()
    made, _, line = leased(TaskLimits(1000.0))
    line.lease_over = True
    assert made.should_stop()


def test_it_says_at_once_that_its_lease_is_over_and_before_that_it_has_begun(clock: Clock) -> None:
    made, _, line = leased(TaskLimits(10.0))
    made.report()
    made.resume(None)  # type: ignore[arg-type]
    made.report()
    clock.now += 10
    assert made.should_stop()
    told = [(each["begun"], each["over"]) for each in line.said]
    assert (told[0], told[1], told[-1]) == ((False, False), (True, False), (True, True))


def test_it_says_how_far_it_is_once_a_second(clock: Clock) -> None:
    made, _, line = leased(TaskLimits(1000.0))
    for _ in range(10):
        clock.now += 0.3
        made.should_stop()
    assert len(line.said) == 2
    expected: dict[str, Any] = {
        "task": 3,
        "records": 0,
        "transactions": 0,
        "lag": 7,
        "begun": False,
    }
    expected |= {"over": False, "idle": False, "reason": "running", "attempt": "a"}
    assert expected.items() <= line.said[0].items()


def test_a_message_now_and_then_has_what_may_be_long_and_the_others_keep_it(clock: Clock) -> None:
    counts = TaskStats(unwritten=("k",))
    counts.lines.append("a record was skipped")
    made, _, line = leased(TaskLimits(1000.0, report=30.0), counts)
    for _ in range(31):
        clock.now += 1
        made.should_stop()
    assert ["unwritten" in each for each in line.said] == [n in (29,) for n in range(31)]
    assert line.said[29]["lines"] == ("a record was skipped",)
    assert not counts.lines
    light, whole = map(TaskReport.of_message, (line.said[0], line.said[29]))
    assert light is not None
    assert whole is not None
    assert (light.unwritten, tuple(whole.unwritten or ())) == (None, ("k",))
    assert TaskReport.of_message({"task": 3}) is None


def test_it_ends_where_the_driver_is_not_heard_for_too_long(clock: Clock) -> None:
    made, _, line = leased(TaskLimits(1000.0, silence=30.0))
    line.last_line = clock.now
    clock.now += 60  # it has not begun
    assert not made.should_stop()
    made.resume(None)  # type: ignore[arg-type]
    clock.now += 29
    assert not made.should_stop()
    line.last_line = clock.now
    clock.now += 29
    assert not made.should_stop()
    clock.now += 1
    assert made.should_stop()


def test_what_a_sink_has_done_so_far_is_in_its_messages(clock: Clock) -> None:
    counts = TaskStats()
    made, _, line = leased(TaskLimits(1000.0), counts)
    for _ in range(2):
        counts.sink.read += 3
        made.report()
    assert [each["sink"]["read"] for each in line.said] == [3, 6]


def test_a_source_that_counts_its_polls_is_counted_once(clock: Clock) -> None:
    counts = TaskStats()
    made, _, _ = leased(TaskLimits(1000.0), counts)
    source: Any = object.__new__(PolledSource)
    made._source = source

    def polled() -> Event:
        counts.meter.poll(2, 0.1)
        return Read(2)

    source.next = polled
    made.next()
    assert (counts.meter.polled, counts.meter.batches) == (2, 1)


def test_a_task_that_cannot_be_made_is_a_failed_report() -> None:
    report = run(work("no.such:Thing"), 2, {}, TaskLimits(1.0), NOBODY)
    assert (report.task, report.reason, report.records) == (2, FAILED, 0)
    assert "Cannot import no.such:Thing" in str(report.detail)


def test_what_a_plugin_raises_is_a_failed_report_with_its_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def burst(path: str) -> Any:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(task_attempt, "connector_class", burst)
    report = run(work("x:y"), 0, {}, TaskLimits(1.0), NOBODY)
    assert (report.reason, report.detail) == (FAILED, "ZeroDivisionError: by zero")
    assert "burst" in str(report.trace)


def test_client_properties_are_in_no_printed_value() -> None:
    secret = TaskSpec(
        **{
            **vars(work("x:y")),
            "home": {"sasl.password": "hush"},
            "target": {"sasl.password": "hush"},
        }
    )
    assert "hush" not in repr(secret)


def test_a_report_counts_what_was_counted() -> None:
    counts = TaskStats()
    counts.commit(5)
    counts.commit(9)
    counts.doubts.append("slow")
    made = TaskReport.of(1, "ended", counts, idle=True)
    assert (made.records, made.transactions, made.smallest, made.largest, made.doubts) == (
        14,
        2,
        5,
        9,
        1,
    )
    assert made.idle
