"""The loop of a sink task: what is called in which order, and what is committed, over all that can
happen to a member.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.task_runtime.group.consumer import GroupOffsets
from connectctl.ops.task_runtime.spi.connector import RetriableError
from connectctl.ops.task_runtime.spi.error_settings import ErrorSettings
from connectctl.ops.task_runtime.spi.reading_converters import reading_converters
from connectctl.ops.task_runtime.task.record_errors import RecordErrors
from connectctl.ops.task_runtime.task.sink_task import WorkerSinkTask
from connectctl.ops.task_runtime.task.transactional_producer import (
    Fenced,
    Rebalancing,
    UnknownOutcome,
)
from fakes.sinkconsumer import (
    Attempt,
    Clock,
    Rebalance,
    RecordingSink,
    SinkConsumer,
    numbers,
    place,
    raising,
)

INTERVAL = 60.0
Action = Callable[[RecordingSink], Any]


@dataclass
class Life:
    """A task on two partitions of three records each."""

    log: Mapping[int, Any] = field(
        default_factory=lambda: {0: [b"a"] * 3, 1: [b"b"] * 3, 2: [b"c"] * 3}
    )
    first: tuple[int, ...] = (0, 1)
    on: Mapping[str, list[Action | None]] = field(default_factory=dict)
    commit: Any = None

    def __post_init__(self) -> None:
        self.clock, self.notes = Clock(), list[str]()
        self.consumer = SinkConsumer(self.log, self.first, self.clock)
        self.sink = RecordingSink(on={name: deque(actions) for name, actions in self.on.items()})
        self.errors = RecordErrors(ErrorSettings(), "c", 0)
        self.task = WorkerSinkTask(
            lambda: self.sink,
            {},
            reading_converters({}),
            self.errors,
            interval=INTERVAL,
            note=self.notes.append,
            now=self.clock,
        )
        self.attempt = Attempt(self.task, self.consumer, self.commit)

    def start(self) -> Life:
        self.attempt.start()
        return self

    def rounds(self, count: int = 1, seconds: float = 1.0, most: int = 500) -> Life:
        for _ in range(count):
            self.attempt.round(seconds, most)
        return self

    def due(self) -> Life:
        """One more round, at which the interval is over."""
        self.clock.seconds += INTERVAL
        return self.rounds()

    def poll_brings(self, *events: Rebalance | Exception) -> Life:
        self.consumer.script.extend(events)
        return self

    def fails(self, kind: type[BaseException]) -> Life:
        with pytest.raises(kind):
            self.rounds()
        return self

    def ends(self) -> Life:
        """The end of its lease."""
        self.attempt.end()
        return self

    def closes(self) -> Life:
        """What comes after a failure."""
        self.task.close()
        return self

    @property
    def told(self) -> list[tuple[Any, ...]]:
        return self.sink.calls


def requests_commit(sink: RecordingSink) -> None:
    sink.context.request_commit()


def life_periodic() -> Life:
    return Life().start().rounds().due()


def life_requested() -> Life:
    return Life(on={"put": [requests_commit]}).start().rounds(2)


def life_rebalance_that_keeps() -> Life:
    return Life().start().rounds().poll_brings(Rebalance(assigned=[2])).rounds().due()


def life_rebalance_that_takes() -> Life:
    return Life().start().rounds().poll_brings(Rebalance(revoked=[1])).rounds().due()


def life_eager_rebalance() -> Life:
    return Life().start().rounds().poll_brings(Rebalance(revoked=[0, 1], assigned=[0, 2])).rounds()


def life_lost() -> Life:
    return Life().start().rounds().poll_brings(Rebalance(lost=[0, 1])).rounds().ends()


def life_shutdown() -> Life:
    return Life().start().rounds().ends()


def life_crash_in_put() -> Life:
    crash = raising(ValueError("disk"))
    return (
        Life(on={"put": [None, crash]})
        .start()
        .rounds()
        .poll_brings(Rebalance(assigned=[2]))
        .fails(ValueError)
        .closes()
    )


def life_crash_in_pre_commit() -> Life:
    return Life(on={"pre_commit": [raising(OSError("s3"))]}).start().rounds().due().ends()


def life_crash_in_pre_commit_of_a_revocation() -> Life:
    crash = raising(OSError("s3"))
    return (
        Life(on={"pre_commit": [crash]})
        .start()
        .rounds()
        .poll_brings(Rebalance(revoked=[1]))
        .rounds()
        .due()
    )


def life_crash_in_pre_commit_of_the_shutdown() -> Life:
    return Life(on={"pre_commit": [raising(OSError("s3"))]}).start().rounds().ends()


def life_commit_refused_in_a_revocation() -> Life:
    life = Life().start().rounds().poll_brings(Rebalance(revoked=[1]))
    life.consumer.refusals.append(Rebalancing("no"))
    return life.rounds()


def life_fenced() -> Life:
    return Life().start().rounds().poll_brings(Fenced("another attempt")).fails(Fenced).closes()


def life_thrown_away() -> Life:
    return (
        Life()
        .start()
        .rounds()
        .poll_brings(UnknownOutcome("UNKNOWN_MEMBER_ID"))
        .fails(UnknownOutcome)
        .closes()
    )


BEGIN: list[tuple[Any, ...]] = [("open", [0, 1]), ("put", 6)]
BOTH = {0: 3, 1: 3}
END: list[tuple[Any, ...]] = [
    ("pre_commit", False, BOTH),
    ("pre_commit", True, BOTH),
    ("close", [0, 1]),
    ("stop",),
]
LIVES: list[tuple[Callable[[], Life], list[tuple[Any, ...]], list[dict[int, int]]]] = [
    (life_periodic, [*BEGIN, ("pre_commit", False, BOTH)], [BOTH]),
    (life_requested, [*BEGIN, ("pre_commit", False, BOTH)], [BOTH]),
    (
        life_rebalance_that_keeps,
        [*BEGIN, ("open", [2]), ("put", 3), ("pre_commit", False, {0: 3, 1: 3, 2: 3})],
        [{0: 3, 1: 3, 2: 3}],
    ),
    (
        life_rebalance_that_takes,
        [*BEGIN, ("pre_commit", True, {1: 3}), ("close", [1]), ("pre_commit", False, {0: 3})],
        [{1: 3}, {0: 3}],
    ),
    (
        life_eager_rebalance,
        [*BEGIN, ("pre_commit", True, BOTH), ("close", [0, 1]), ("open", [0, 2]), ("put", 3)],
        [BOTH],
    ),
    (life_lost, [*BEGIN, ("close", [0, 1]), ("stop",)], []),
    (life_shutdown, [*BEGIN, *END], [BOTH]),
    (
        life_crash_in_put,
        [
            *BEGIN,
            ("open", [2]),
            ("put", 3),
            ("pre_commit", True, BOTH | {2: 0}),
            ("close", [0, 1, 2]),
            ("stop",),
        ],
        [BOTH],
    ),
    (
        life_crash_in_pre_commit,
        [
            *BEGIN,
            ("pre_commit", False, BOTH),
            ("put", 6),
            *END,
        ],
        [BOTH],
    ),
    (
        life_crash_in_pre_commit_of_a_revocation,
        [*BEGIN, ("pre_commit", True, {1: 3}), ("close", [1]), ("pre_commit", False, {0: 3})],
        [{0: 3}],
    ),
    (
        life_crash_in_pre_commit_of_the_shutdown,
        [
            *BEGIN,
            ("pre_commit", False, BOTH),
            ("pre_commit", True, {0: 0, 1: 0}),
            ("close", [0, 1]),
            ("stop",),
        ],
        [],
    ),
    (
        life_commit_refused_in_a_revocation,
        [*BEGIN, ("pre_commit", True, {1: 3}), ("close", [1])],
        [],
    ),
    (life_fenced, [*BEGIN, ("close", [0, 1]), ("stop",)], []),
    (life_thrown_away, [*BEGIN, ("close", [0, 1]), ("stop",)], []),
]


@pytest.mark.parametrize(
    ("life", "calls", "commits"), LIVES, ids=[life.__name__[5:] for life, _, _ in LIVES]
)
def test_a_life(life: Callable[[], Life], calls: list[Any], commits: list[Any]) -> None:
    lived = life()
    assert lived.told == calls
    assert lived.consumer.commits == commits
    assert not lived.sink.context.is_closing()


def test_a_commit_comes_before_close_and_partitions_are_assigned_until_then() -> None:
    order: list[Any] = []

    def commit(offsets: GroupOffsets) -> None:
        order.append(("commit", numbers(offsets), len(life.sink.context.assignment)))

    life = Life(commit=commit)
    life.sink.calls = order
    life.start().rounds().poll_brings(Rebalance(revoked=[1])).rounds()
    assert order[2:] == [("pre_commit", True, {1: 3}), ("commit", {1: 3}, 2), ("close", [1])]
    assert life.sink.context.assignment == {place(0)}


def test_a_retriable_error_brings_the_same_batch_after_the_timeout_and_nothing_else_meanwhile() -> (
    None
):
    def retriable(sink: RecordingSink) -> None:
        sink.context.timeout(5000)
        raise RetriableError("busy")

    life = Life(on={"put": [retriable, retriable]}).start().rounds()
    assert life.consumer.paused == {place(0), place(1)}
    life.rounds(4)  # seconds
    assert len(life.sink.batches) == 1
    life.rounds(1)
    # what is assigned meanwhile waits as well
    life.poll_brings(Rebalance(assigned=[2])).rounds(seconds=100)
    assert len(life.sink.batches) == 2
    life.rounds(seconds=100)
    assert life.sink.batches == [[(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]] * 3
    assert life.clock.seconds == 10
    assert life.consumer.paused == set()
    life.rounds()
    assert life.sink.batches[3:] == [[(2, 0), (2, 1), (2, 2)]]
    assert life.notes == ["put failed and is retried in 5 s: busy"]
    assert life.task.meter.retries == 2


def test_a_retriable_error_without_a_timeout_is_retried_after_a_second() -> None:
    life = Life(on={"put": [raising(RetriableError("busy"))]}).start().rounds(2, seconds=30)
    assert (len(life.sink.batches), life.clock.seconds) == (2, 1.0)


@pytest.mark.parametrize("change", [Rebalance(revoked=[0]), Rebalance(lost=[0])])
def test_what_waits_to_be_put_again_is_dropped_with_its_partition(change: Rebalance) -> None:
    life = (
        Life(on={"put": [raising(RetriableError("busy"))]})
        .start()
        .rounds()
        .poll_brings(change)
        .rounds(2)
    )
    assert life.sink.batches[1:] == [[(1, 0), (1, 1), (1, 2)]]
    life.ends()
    assert life.consumer.commits == [{1: 3}]


def test_a_batch_whose_partitions_are_all_gone_holds_nothing_back() -> None:
    life = Life(on={"put": [raising(RetriableError("busy"))]}).start().rounds()
    life.poll_brings(Rebalance(revoked=[0, 1], assigned=[2])).rounds(2)
    assert life.sink.batches[1:] == [[(2, 0), (2, 1), (2, 2)]]


def test_a_failed_pre_commit_also_drops_what_waits_to_be_put_again() -> None:
    # Else the later records would be put, and committed, before the earlier ones that pre_commit
    # lost.
    life = Life(
        {0: [b"a"] * 4},
        (0,),
        {"put": [None, raising(RetriableError("busy"))], "pre_commit": [raising(OSError())]},
    )
    life.start()
    life.rounds(most=2)
    life.rounds(most=2)
    life.due()
    assert life.sink.batches == [[(0, 0), (0, 1)], [(0, 2), (0, 3)]]
    life.rounds()
    assert life.sink.batches[2:] == [[(0, 0), (0, 1), (0, 2), (0, 3)]]
    assert life.notes[1:] == [
        "Offset commit failed, rewinding to last committed offsets: OSError: "
    ]


def test_positions_are_what_is_committed() -> None:
    life = Life()
    life.consumer.group[place(0)] = GroupOffset(2)
    life.start().rounds()
    assert life.sink.batches == [[(0, 2), (1, 0), (1, 1), (1, 2)]]
    life.due()
    assert life.told[-1] == ("pre_commit", False, BOTH)
    assert life.consumer.group == {place(0): GroupOffset(3, 7), place(1): GroupOffset(3, 7)}


def test_offsets_of_pre_commit_count_only_for_assigned_partitions_and_not_beyond_what_was_delivered() -> (
    None
):
    def beyond(sink: RecordingSink) -> Any:
        return {place(0): GroupOffset(4), place(1): GroupOffset(2), place(2): GroupOffset(1)}

    life = Life(on={"pre_commit": [beyond]}).start().rounds().due()
    assert life.consumer.commits == [{1: 2}]
    assert life.notes == [
        "Ignoring invalid offset 4 of pre_commit for t-0: not yet consumed, the next record is 3",
        "Ignoring invalid offset 1 of pre_commit for t-2: the partition is not assigned",
    ]


def test_a_revocation_commits_nothing_for_partitions_that_stay() -> None:
    def everything(sink: RecordingSink) -> Any:
        return {place(0): GroupOffset(3), place(1): GroupOffset(3)}

    life = (
        Life(on={"pre_commit": [everything]})
        .start()
        .rounds()
        .poll_brings(Rebalance(revoked=[1]))
        .rounds()
    )
    assert (life.consumer.commits, life.notes) == ([{1: 3}], [])


def test_nothing_is_committed_where_the_task_gives_nothing_or_nothing_is_new() -> None:
    life = Life(on={"pre_commit": [lambda sink: {}]}).start().rounds().due()
    assert life.consumer.commits == []
    life.due().due()
    assert life.consumer.commits == [BOTH]
    assert (life.task.meter.commits, life.task.meter.commit_skips) == (1, 2)


def test_a_task_without_partitions_is_not_asked_for_offsets() -> None:
    life = Life(first=()).start().due()
    assert life.told == []
    life.poll_brings(Rebalance(assigned=[2])).rounds().due()
    assert life.told == [("open", [2]), ("put", 3), ("pre_commit", False, {2: 3})]


def test_a_refused_commit_is_noted_and_tried_again() -> None:
    life = Life().start().rounds()
    life.consumer.refusals.append(Rebalancing("rebalance in progress"))
    life.due().due()
    assert life.consumer.commits == [BOTH]
    assert life.notes == ["Commit of offsets failed: rebalance in progress"]
    assert len(life.sink.batches) == 1


def test_a_sink_can_read_on_from_its_own_offsets() -> None:
    def own(sink: RecordingSink) -> None:
        sink.context.offset({place(0): 1, place(1): 3})

    life = Life(on={"open": [own]}).start().rounds()
    assert life.sink.batches == [[(0, 1), (0, 2)]]
    later = Life(on={"open": [None, lambda sink: sink.context.offset({place(2): 2})]}).start()
    later.rounds().poll_brings(Rebalance(assigned=[2])).rounds()
    assert later.sink.batches == [[(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)], [(2, 2)]]


def test_what_put_rewinds_is_not_committed() -> None:
    def again(sink: RecordingSink) -> None:
        sink.context.offset({place(0): 1, place(2): 0})
        sink.context.request_commit()

    life = Life(on={"put": [again]}).start().rounds().rounds()
    assert life.consumer.commits == [{1: 3}]
    assert life.sink.batches[1:] == [[(0, 1), (0, 2)]]


def test_a_sink_pauses_and_resumes_its_own_partitions() -> None:
    life = Life(on={"open": [lambda sink: sink.context.pause(place(0))]}).start().rounds()
    assert life.sink.batches == [[(1, 0), (1, 1), (1, 2)]]
    life.sink.context.resume(place(0))
    life.rounds()
    assert life.sink.batches[1:] == [[(0, 0), (0, 1), (0, 2)]]
    with pytest.raises(
        ConnectctlError,
        match="may not pause partitions that are not currently assigned to them: t-2",
    ):
        life.sink.context.pause(place(2))


def test_what_the_sink_resumes_waits_for_a_batch_that_is_put_again_and_what_it_paused_stays_so() -> (
    None
):
    def busy(sink: RecordingSink) -> None:
        sink.context.pause(place(0), place(1))
        sink.context.resume(place(0))
        raise RetriableError("busy")

    def busy_still(sink: RecordingSink) -> None:
        sink.context.resume(place(0))
        raise RetriableError("busy")

    life = Life(on={"put": [busy, busy_still]}).start().rounds(2)
    assert life.consumer.paused == {place(0), place(1)}
    life.rounds(1)
    assert life.consumer.paused == {place(1)}


def test_put_is_called_without_records_and_soon_where_the_task_asks_for_it() -> None:
    puts: list[float] = []

    def soon(sink: RecordingSink) -> None:
        puts.append(life.clock())
        sink.context.timeout(250)

    life = Life({0: []}, (0,), {"put": [soon, soon, soon]})
    life.start().rounds(3, seconds=10)
    assert puts == [10.0, 10.25, 10.5]


def test_a_poll_waits_no_longer_than_to_the_next_commit() -> None:
    life = Life().start().rounds(2, seconds=100)
    assert life.clock.seconds == INTERVAL


def test_what_open_raises_ends_the_task_which_is_closed() -> None:
    life = Life(on={"open": [raising(ValueError("full"))]})
    with pytest.raises(ValueError, match="full"):
        life.attempt.run(lambda: False)
    assert life.told == [
        ("open", [0, 1]),
        ("pre_commit", True, {0: 0, 1: 0}),
        ("close", [0, 1]),
        ("stop",),
    ]


def test_a_run_ends_when_it_is_to_and_reports_the_first_failure() -> None:
    life = Life()
    life.attempt.run(lambda: bool(life.sink.batches))
    assert life.told[-1] == ("stop",)
    assert life.consumer.commits == [BOTH]
    failing = Life(
        on={"put": [raising(ValueError("first"))], "close": [raising(KeyError("second"))]}
    )
    with pytest.raises(ValueError, match="first"):
        failing.attempt.run(lambda: False)
    assert failing.told[-1] == ("stop",)


def test_a_commit_that_a_rebalance_refuses_is_repeated_before_the_end() -> None:
    life = Life().start().rounds()
    life.consumer.refusals.append(Rebalancing("rebalance in progress"))
    life.poll_brings(Rebalance(revoked=[1])).ends()
    assert life.told[2:] == [
        ("pre_commit", False, BOTH),
        ("pre_commit", True, {1: 3}),
        ("close", [1]),
        ("pre_commit", False, {0: 3}),
        ("pre_commit", True, {0: 3}),
        ("close", [0]),
        ("stop",),
    ]
    assert life.consumer.commits == [{1: 3}, {0: 3}]


def test_a_task_is_never_called_during_a_poll() -> None:
    life = Life().start().poll_brings(Rebalance(revoked=[0], assigned=[2]))
    poll, polling = life.consumer.poll, [False]

    def polled(seconds: float, most: int) -> Any:
        polling.append(True)
        try:
            return poll(seconds, most)
        finally:
            polling.append(False)

    called: list[bool] = []
    for name in ("open", "put", "pre_commit", "close"):
        life.sink.on[name] = deque([lambda sink: called.append(polling[-1])] * 9)
    life.consumer.poll = polled  # type: ignore[method-assign]
    life.rounds(2).due().ends()
    assert {call[0] for call in life.told} == {"open", "put", "pre_commit", "close", "stop"}
    assert called
    assert not any(called)


def test_a_doubt_in_the_commit_of_a_revocation_closes_and_comes_out() -> None:
    life = Life(commit=raising(UnknownOutcome("EndTxn timed out")))
    life.start().rounds().poll_brings(Rebalance(revoked=[1])).fails(UnknownOutcome).closes()
    assert life.told[2:] == [("pre_commit", True, {1: 3}), ("close", [0, 1]), ("stop",)]


@pytest.mark.parametrize("how", ["revoked", "lost"])
def test_what_close_raises_in_a_rebalance_ends_the_task(how: str) -> None:
    life = Life(on={"close": [raising(ValueError("no"))]}).start().rounds()
    change = Rebalance(revoked=[1]) if how == "revoked" else Rebalance(lost=[1])
    life.poll_brings(change).fails(ValueError).closes()
    assert life.told[-3:] == [("pre_commit", True, {0: 3}), ("close", [0]), ("stop",)]
    assert life.consumer.commits == ([{1: 3}, {0: 3}] if how == "revoked" else [{0: 3}])


def test_what_close_raises_at_the_end_is_the_failure_of_the_task_which_is_stopped() -> None:
    life = Life(on={"close": [raising(ValueError("no"))]})
    with pytest.raises(ValueError, match="no"):
        life.attempt.run(lambda: bool(life.sink.batches))
    assert (life.told[-1], life.consumer.commits) == (("stop",), [BOTH])


def test_a_rebalance_that_takes_and_gives_closes_and_opens_just_those() -> None:
    life = Life().start().rounds().poll_brings(Rebalance(revoked=[0], assigned=[2])).rounds()
    assert life.told[2:] == [
        ("pre_commit", True, {0: 3}),
        ("close", [0]),
        ("open", [2]),
        ("put", 3),
    ]
    assert life.sink.context.assignment == {place(1), place(2)}


def test_a_failed_pre_commit_rewinds_the_partitions_that_are_its_own_then() -> None:
    life = Life(on={"pre_commit": [None, raising(OSError("s3"))]}).start().rounds()
    life.poll_brings(Rebalance(revoked=[0], assigned=[2])).rounds().due()
    assert life.sink.batches[1:] == [
        [(2, 0), (2, 1), (2, 2)],
        [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)],
    ]
    assert life.consumer.commits == [{0: 3}]


def test_what_fails_to_start_is_stopped_and_has_no_partitions() -> None:
    life = Life(on={"start": [raising(ValueError("no"))]})
    with pytest.raises(ValueError, match="no"):
        life.attempt.run(lambda: False)
    assert (life.told, life.consumer.joined) == ([("stop",)], False)


def test_what_is_counted() -> None:
    life = Life(on={"put": [raising(RetriableError("busy"))]}).start().rounds(3)
    meter = life.task.meter
    assert life.task.metrics["sink-record-active-count"] == 6
    life.consumer.refusals.append(Rebalancing("no"))
    life.due().due().due()
    assert (meter.read, meter.sent, meter.puts, meter.retries) == (6, 6, 1, 1)
    assert (meter.commits, meter.failed_commits, meter.commit_skips) == (1, 1, 1)
    found = life.task.metrics
    assert (found["sink-record-active-count"], found["sink-record-active-count-max"]) == (0, 6)
    assert (found["partition-count"], found["offset-commit-seq-no"]) == (2, 3)
    assert found["offset-commit-success-percentage"] == 0.5


def test_the_time_of_a_commit_begins_with_pre_commit() -> None:
    life = Life()

    def slow(sink: RecordingSink) -> None:
        life.clock.seconds += 0.25

    life.sink.on["pre_commit"] = deque([slow, slow])
    life.start().rounds().due().ends()
    assert life.task.metrics["offset-commit-max-time-ms"] == 250


def test_a_missing_right_ends_the_task_and_is_not_asked_for_again() -> None:
    life = Life().start().rounds()
    life.consumer.refusals.append(NotAuthorized("Not authorized to commit offsets of connect-c"))
    with pytest.raises(NotAuthorized, match="connect-c"):
        life.due()


def test_pre_commit_has_the_position_of_every_assigned_partition_and_of_all_that_are_closed() -> (
    None
):
    """Also of those that gave no record, or have no committed offset, as on a worker (KIP-275)."""
    given: list[dict[int, int]] = []
    life = Life(log={0: [b"a"] * 3, 1: [], 2: []}, first=(0, 1, 2))
    pre_commit = life.sink.pre_commit

    def noted(offsets: GroupOffsets) -> GroupOffsets:
        given.append({each.partition: offset.offset for each, offset in offsets.items()})
        return pre_commit(offsets)

    life.sink.pre_commit = noted  # type: ignore[method-assign]
    life.consumer.group[place(2)] = GroupOffset(0)
    life.start().due().rounds().due().poll_brings(Rebalance(revoked=[1])).rounds().ends()
    assert given == [{0: 3, 1: 0, 2: 0}, {1: 0}, {0: 3, 2: 0}, {0: 3, 2: 0}]
    assert life.consumer.commits == [{0: 3}]


def test_pre_commit_is_not_called_without_a_partition() -> None:
    life = Life(first=()).start().due().due().ends()
    assert [call for call in life.told if call[0] in ("pre_commit", "flush")] == []
