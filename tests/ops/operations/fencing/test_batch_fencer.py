"""Fencing many ids against coordinators that load, move, lose answers and refuse; and the proof
afterwards.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import PartitionProducer, Transaction
from connectctl.ops.operations.fencing.batch_fencer import BatchFencer
from connectctl.ops.operations.fencing.snapshot import (
    FenceAction,
    FenceOutcome,
    FenceTarget,
    IdResult,
)
from connectctl.ops.operations.fencing.verify import verify
from fakes.coordinators import FakeCoordinators


@dataclass
class Clock:
    at: float = 0.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def empty(id: str, epoch: int = 3) -> Transaction:
    return Transaction(id, "Empty", 7, epoch, 60_000, coordinator=1)


def rows(calls: FakeCoordinators, *ids: str) -> list[FenceTarget]:
    return [FenceTarget(id, FenceAction.FENCE, transaction=calls.known.get(id)) for id in ids]


def run(
    calls: FakeCoordinators, clock: Clock, some: list[FenceTarget], timeout: float = 30.0
) -> BatchFencer:
    fencer = BatchFencer(calls, some, timeout, now=clock.now, sleep=clock.sleep)
    fencer.run()
    return fencer


def test_ids_that_answer_at_once_need_one_request_each(clock: Clock) -> None:
    ids = [f"id-{n}" for n in range(1000)]
    calls = FakeCoordinators({id: empty(id) for id in ids})
    fencer = run(calls, clock, rows(calls, *ids))
    assert Counter(r.outcome for r in fencer.results.values()) == {FenceOutcome.FENCED: 1000}
    assert Counter(calls.asked) == dict.fromkeys(ids, 1)
    assert clock.slept == []
    assert fencer.results["id-0"] == IdResult(
        "id-0", FenceOutcome.FENCED, producer_id=7, epoch_before=3, epoch_after=4
    )


@pytest.mark.parametrize(
    "code",
    [
        Code.COORDINATOR_LOAD_IN_PROGRESS,
        Code.NOT_COORDINATOR,
        Code.NOT_SENT,
        Code.CONCURRENT_TRANSACTIONS,
    ],
)
def test_what_passes_is_waited_for_with_growing_pauses(clock: Clock, code: Code) -> None:
    calls = FakeCoordinators({"a": empty("a"), "b": empty("b")}, {"a": [code] * 5})
    fencer = run(calls, clock, rows(calls, "a", "b"))
    assert {r.outcome for r in fencer.results.values()} == {FenceOutcome.FENCED}
    assert Counter(calls.asked) == {"a": 6, "b": 1}
    assert clock.slept[-1] > clock.slept[0]
    assert max(clock.slept) <= 1.5


def test_ids_are_fenced_while_a_new_broker_waits_for_producer_ids_and_transactions_take_time_to_abort(
    clock: Clock,
) -> None:
    calls = FakeCoordinators(aborting_looks=3, without_ids=4)
    calls.known["open"] = Transaction("open", "Ongoing", 7, 3, 60_000, 1, (TopicPartition("t", 0),))
    new = [FenceTarget(id, FenceAction.CREATE) for id in ("new", "other")]
    fencer = run(calls, clock, [*rows(calls, "open"), *new])
    assert {r.outcome for r in fencer.results.values()} == {FenceOutcome.FENCED}
    assert {id: calls.known[id].epoch for id in ("new", "other", "open")} == {
        "new": 0,
        "other": 0,
        "open": 5,
    }


def test_a_lost_answer_costs_one_epoch_and_not_two(clock: Clock) -> None:
    calls = FakeCoordinators({"a": empty("a")}, {"a": [Code.NO_ANSWER]})
    fencer = run(calls, clock, rows(calls, "a"))
    assert fencer.results["a"].epoch_after == calls.known["a"].epoch == 4
    assert calls.asked == ["a"]


def test_an_open_transaction_is_aborted_and_told(clock: Clock) -> None:
    place = TopicPartition("t", 0)
    busy = replace(empty("a"), state="Ongoing", partitions=(place,), started_ms=1)
    calls = FakeCoordinators({"a": busy})
    fencer = run(calls, clock, rows(calls, "a"))
    result = fencer.results["a"]
    assert (result.aborted, result.epoch_before, result.epoch_after) == (True, 3, 5)
    assert fencer.held == {"a": (busy,)}


def test_an_id_that_never_gets_ready_fails_when_the_time_is_over_and_the_rest_is_done(
    clock: Clock,
) -> None:
    calls = FakeCoordinators({"a": replace(empty("a"), state="PrepareCommit"), "b": empty("b")})
    fencer = run(calls, clock, rows(calls, "a", "b"), timeout=10)
    assert fencer.results["b"].outcome is FenceOutcome.FENCED
    problem = fencer.results["a"].problem
    assert problem is not None
    assert problem.code == "timed-out"
    assert clock.at == pytest.approx(10, abs=0.01)
    assert calls.asked.count("a") == 1, "an id that is being committed is not asked again and again"


def test_a_broker_that_cannot_write_does_not_use_up_the_epochs(clock: Clock) -> None:
    calls = FakeCoordinators({"a": empty("a")}, {"a": [Code.COORDINATOR_NOT_AVAILABLE] * 1000})
    fencer = run(calls, clock, rows(calls, "a"), timeout=3600)
    problem = fencer.results["a"].problem
    assert problem is not None
    assert problem.code == "epoch-guard"
    assert len(calls.asked) == 6


def test_unknown_ids_are_left_alone_and_expired_ones_too(clock: Clock) -> None:
    calls = FakeCoordinators({})
    some = [
        FenceTarget("never", FenceAction.LEAVE),
        FenceTarget("expired", FenceAction.FENCE, transaction=empty("expired")),
    ]
    fencer = run(calls, clock, some)
    assert [fencer.results[id].outcome for id in ("never", "expired")] == [
        FenceOutcome.UNKNOWN,
        FenceOutcome.UNKNOWN,
    ]
    assert calls.asked == []


def test_an_interruption_gives_every_id_a_result() -> None:
    ids = [f"id-{n}" for n in range(10)]
    calls = FakeCoordinators({id: empty(id) for id in ids})
    told: list[IdResult] = []

    def interrupt(result: IdResult) -> None:
        told.append(result)
        if len(told) == 4:
            raise KeyboardInterrupt

    fencer = BatchFencer(
        calls, [*rows(calls, *ids), FenceTarget("left", FenceAction.LEAVE)], 30, interrupt
    )
    with pytest.raises(KeyboardInterrupt):
        fencer.run()
    fencer.interrupted()
    fates = Counter(result.outcome for result in fencer.results.values())
    assert fates == {FenceOutcome.FENCED: 4, FenceOutcome.FAILED: 6, FenceOutcome.UNKNOWN: 1}


def test_epochs_that_run_out_go_on_with_another_producer_id(clock: Clock) -> None:
    calls = FakeCoordinators({"a": empty("a", epoch=32_766)})
    fencer = run(calls, clock, rows(calls, "a"))
    result = fencer.results["a"]
    assert (result.producer_id, result.epoch_after) == (1007, 0)
    assert verify(calls, [result], fencer.held, now=clock.now, sleep=clock.sleep).findings == ()


# -------------------------------------------------------------------------------------------- proof

FENCED = IdResult("a", FenceOutcome.FENCED, producer_id=7, epoch_before=3, epoch_after=5)
PLACE = TopicPartition("t", 0)
BUSY = replace(empty("a"), state="Ongoing", partitions=(PLACE,))


def proof(calls: FakeCoordinators, clock: Clock) -> tuple[IdResult, list[str]]:
    found = verify(calls, [FENCED], {"a": (BUSY,)}, now=clock.now, sleep=clock.sleep)
    return found.results[0], [finding.id for finding in found.findings]


def test_the_state_that_was_returned_and_closed_partitions_prove_it(clock: Clock) -> None:
    calls = FakeCoordinators(
        {"a": empty("a", 5)}, partitions={PLACE: (PartitionProducer(7, 4, 0, 1, None),)}
    )
    assert proof(calls, clock) == (FENCED, [])


def test_an_older_transaction_that_stays_open_disproves_it(clock: Clock) -> None:
    calls = FakeCoordinators(
        {"a": empty("a", 5)}, partitions={PLACE: (PartitionProducer(7, 3, 0, 1, 10),)}
    )
    result, _ = proof(calls, clock)
    assert result.problem is not None
    assert (result.outcome, result.problem.code) == (FenceOutcome.FAILED, "transaction-still-open")
    assert clock.at >= 5, "markers were given time"


def test_a_newer_transaction_of_the_same_producer_is_no_older_one(clock: Clock) -> None:
    newer = replace(empty("a", 6), state="Ongoing", partitions=(PLACE,))
    calls = FakeCoordinators({"a": newer}, partitions={PLACE: (PartitionProducer(7, 6, 0, 1, 10),)})
    assert proof(calls, clock) == (FENCED, ["FENCE005"])


def test_a_coordinator_that_fell_back_disproves_it(clock: Clock) -> None:
    calls = FakeCoordinators({"a": empty("a", 4)}, partitions={PLACE: ()})
    result, _ = proof(calls, clock)
    assert result.problem is not None
    assert result.problem.code == "not-proven"


def test_a_coordinator_that_does_not_answer_proves_nothing(clock: Clock) -> None:
    calls = FakeCoordinators({}, denied={"a": Code.NO_ANSWER})
    result, _ = proof(calls, clock)
    assert result.outcome is FenceOutcome.FAILED


def test_a_partition_that_may_not_be_read_is_told(clock: Clock) -> None:
    calls = FakeCoordinators(
        {"a": empty("a", 5)}, partitions={PLACE: Code.TOPIC_AUTHORIZATION_FAILED}
    )
    assert proof(calls, clock) == (FENCED, ["FENCE006"])


def test_a_topic_that_is_gone_has_nothing_open(clock: Clock) -> None:
    assert proof(FakeCoordinators({"a": empty("a", 5)}), clock) == (FENCED, [])
