"""When a transaction ends for its oldest record to be visible in time, by a clock of the test's
own.
"""

from __future__ import annotations

import pytest
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.task_runtime.spi.boundaries import Boundaries, End
from connectctl.ops.task_runtime.spi.connector import SourceRecord
from connectctl.ops.task_runtime.spi.latency_pace import FADING, RESERVE, FadingMaximum, LatencyPace

RECORDS = [SourceRecord({}, {}, "t", 1)]
PROMISE = 0.1


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def transactions(
    commit: float, poll: float, handling: float = 0.0, promise: float = PROMISE
) -> list[tuple[int, float]]:
    """The last of 400 transactions, with batches every ``poll`` seconds: how many, and how long the
    oldest record took.
    """
    clock, batches, oldest = Clock(), 0, 0.0
    found: list[tuple[int, float]] = []
    boundaries = Boundaries(Boundary.POLL, now=clock, latency=promise)
    while len(found) < 400:
        boundaries.ready()
        clock.now += poll
        (segment,) = boundaries.cut(RECORDS)
        oldest = oldest or clock.now
        batches += 1
        clock.now += handling
        if segment.end is End.COMMIT:
            clock.now += commit
            boundaries.ended()
            found.append((batches, clock.now - oldest))
            batches, oldest = 0, 0.0
    return found[-100:]


@pytest.mark.parametrize(
    ("commit", "poll", "handling", "batches"),
    [
        (0.005, 0.010, 0.0, 10),  # 85 ms to fill, and the batch behind which it is too late
        (0.040, 0.010, 0.0, 6),
        (0.070, 0.010, 0.0, 3),
        (0.005, 0.001, 0.001, 43),
        (0.005, 0.010, 0.030, 3),
    ],
)
def test_transactions_are_as_large_as_the_promise_lets_them_be(
    commit: float, poll: float, handling: float, batches: int
) -> None:
    for size, took in transactions(commit, poll, handling):
        assert batches - 1 <= size <= batches
        assert took <= PROMISE * (1 - RESERVE) + poll + 1e-6


@pytest.mark.parametrize("commit", [0.09, 0.5, 5.0])
def test_a_broker_that_is_too_slow_for_the_promise_gets_a_transaction_for_each_batch(
    commit: float,
) -> None:
    assert {size for size, _ in transactions(commit, 0.01)} == {1}


def test_one_slow_commit_makes_the_next_transactions_shorter_and_fades() -> None:
    pace = LatencyPace(PROMISE)

    def deadline(commit: float) -> float:
        pace.polled(0.0)
        assert pace.deadline is not None
        found = pace.deadline
        pace.decided(0.0)
        pace.ended(commit)
        return found

    for _ in range(200):
        usual = deadline(0.01)
    deadline(0.06)
    behind = [deadline(0.01) for _ in range(6 * FADING)]
    assert behind[0] == pytest.approx(usual - 0.05, abs=1e-6)
    assert behind == sorted(behind)
    assert behind[-1] == pytest.approx(usual, abs=0.001)


def test_the_longest_of_the_last_durations_counts() -> None:
    longest = FadingMaximum()
    for seconds in (0.01, 0.2, 0.01):
        longest.observe(seconds)
    assert 0.15 < longest.value < 0.2


def test_a_commit_that_nobody_decided_on_is_no_measure() -> None:
    pace = LatencyPace(PROMISE)
    before = pace.commit.value
    pace.decided(0.0)  # of nothing
    pace.polled(50.0)
    pace.ended(60.0)
    assert pace.commit.value == before


def test_nothing_is_waited_for_while_nothing_is_in_hand() -> None:
    clock = Clock()
    boundaries = Boundaries(Boundary.POLL, now=clock, latency=PROMISE)
    assert boundaries.patience() is None
    boundaries.cut(RECORDS)
    left = boundaries.patience()
    assert left is not None
    assert 0 < left < PROMISE
    clock.now += 1
    assert boundaries.patience() == 0
    assert [segment.end for segment in boundaries.cut(())] == [End.COMMIT]
    boundaries.ended()
    assert boundaries.patience() is None


def test_a_batch_counts_from_its_poll_and_not_from_when_it_is_looked_at() -> None:
    clock = Clock()
    boundaries = Boundaries(Boundary.POLL, now=clock, latency=PROMISE)
    (segment,) = boundaries.cut(RECORDS, clock.now - 1)
    assert segment.end is End.COMMIT


def test_an_interval_that_is_shorter_than_the_promise_ends_a_transaction_before() -> None:
    clock = Clock()
    boundaries = Boundaries(Boundary.INTERVAL, 0.25, now=clock, latency=10.0)
    ends = []
    for _ in range(8):
        clock.now += 0.125
        (segment,) = boundaries.cut(RECORDS)
        ends.append(segment.end)
        if segment.end:
            boundaries.ended()
    assert ends == [None, End.COMMIT] * 4
