"""Fencing many ids against coordinators that load, move, lose answers and refuse; and the proof afterwards."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.transactions import PartitionProducer, Place, Transaction
from connectctl.ops.operations.fencing.batch_fencer import Campaign
from connectctl.ops.operations.fencing.snapshot import Action, Fate, IdResult, Row
from connectctl.ops.operations.fencing.verify import prove
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


def rows(calls: FakeCoordinators, *ids: str) -> list[Row]:
    return [Row(id, Action.FENCE, transaction=calls.known.get(id)) for id in ids]


def run(calls: FakeCoordinators, clock: Clock, some: list[Row], timeout: float = 30.0) -> Campaign:
    campaign = Campaign(calls, some, timeout, now=clock.now, sleep=clock.sleep)
    campaign.run()
    return campaign


def test_ids_that_answer_at_once_need_one_request_each(clock: Clock) -> None:
    ids = [f"id-{n}" for n in range(1000)]
    calls = FakeCoordinators({id: empty(id) for id in ids})
    campaign = run(calls, clock, rows(calls, *ids))
    assert Counter(r.fate for r in campaign.results.values()) == {Fate.FENCED: 1000}
    assert Counter(calls.asked) == dict.fromkeys(ids, 1)
    assert clock.slept == []
    assert campaign.results["id-0"] == IdResult("id-0", Fate.FENCED, producer_id=7, epoch_before=3, epoch_after=4)


@pytest.mark.parametrize(
    "code", [Code.COORDINATOR_LOAD_IN_PROGRESS, Code.NOT_COORDINATOR, Code.NOT_SENT, Code.CONCURRENT_TRANSACTIONS]
)
def test_what_passes_is_waited_for_with_growing_pauses(clock: Clock, code: Code) -> None:
    calls = FakeCoordinators({"a": empty("a"), "b": empty("b")}, {"a": [code] * 5})
    campaign = run(calls, clock, rows(calls, "a", "b"))
    assert {r.fate for r in campaign.results.values()} == {Fate.FENCED}
    assert Counter(calls.asked) == {"a": 6, "b": 1}
    assert clock.slept[-1] > clock.slept[0]
    assert max(clock.slept) <= 1.5


def test_a_lost_answer_costs_one_epoch_and_not_two(clock: Clock) -> None:
    calls = FakeCoordinators({"a": empty("a")}, {"a": [Code.NO_ANSWER]})
    campaign = run(calls, clock, rows(calls, "a"))
    assert campaign.results["a"].epoch_after == calls.known["a"].epoch == 4
    assert calls.asked == ["a"]


def test_an_open_transaction_is_aborted_and_told(clock: Clock) -> None:
    place = Place("t", 0)
    busy = replace(empty("a"), state="Ongoing", partitions=(place,), started_ms=1)
    calls = FakeCoordinators({"a": busy})
    campaign = run(calls, clock, rows(calls, "a"))
    result = campaign.results["a"]
    assert (result.aborted, result.epoch_before, result.epoch_after) == (True, 3, 5)
    assert campaign.held == {"a": (busy,)}


def test_an_id_that_never_gets_ready_fails_when_the_time_is_over_and_the_rest_is_done(clock: Clock) -> None:
    calls = FakeCoordinators({"a": replace(empty("a"), state="PrepareCommit"), "b": empty("b")})
    campaign = run(calls, clock, rows(calls, "a", "b"), timeout=10)
    assert campaign.results["b"].fate is Fate.FENCED
    problem = campaign.results["a"].problem
    assert problem is not None
    assert problem.code == "timed-out"
    assert clock.at == pytest.approx(10, abs=0.01)
    assert calls.asked.count("a") == 1, "an id that is being committed is not asked again and again"


def test_a_broker_that_cannot_write_does_not_use_up_the_epochs(clock: Clock) -> None:
    calls = FakeCoordinators({"a": empty("a")}, {"a": [Code.COORDINATOR_NOT_AVAILABLE] * 1000})
    campaign = run(calls, clock, rows(calls, "a"), timeout=3600)
    problem = campaign.results["a"].problem
    assert problem is not None
    assert problem.code == "epoch-guard"
    assert len(calls.asked) == 6


def test_unknown_ids_are_left_alone_and_expired_ones_too(clock: Clock) -> None:
    calls = FakeCoordinators({})
    some = [Row("never", Action.LEAVE), Row("expired", Action.FENCE, transaction=empty("expired"))]
    campaign = run(calls, clock, some)
    assert [campaign.results[id].fate for id in ("never", "expired")] == [Fate.UNKNOWN, Fate.UNKNOWN]
    assert calls.asked == []


def test_an_interruption_gives_every_id_a_result() -> None:
    ids = [f"id-{n}" for n in range(10)]
    calls = FakeCoordinators({id: empty(id) for id in ids})
    told: list[IdResult] = []

    def interrupt(result: IdResult) -> None:
        told.append(result)
        if len(told) == 4:
            raise KeyboardInterrupt

    campaign = Campaign(calls, [*rows(calls, *ids), Row("left", Action.LEAVE)], 30, interrupt)
    with pytest.raises(KeyboardInterrupt):
        campaign.run()
    campaign.interrupted()
    fates = Counter(result.fate for result in campaign.results.values())
    assert fates == {Fate.FENCED: 4, Fate.FAILED: 6, Fate.UNKNOWN: 1}


def test_epochs_that_run_out_go_on_with_another_producer_id(clock: Clock) -> None:
    calls = FakeCoordinators({"a": empty("a", epoch=32_766)})
    campaign = run(calls, clock, rows(calls, "a"))
    result = campaign.results["a"]
    assert (result.producer_id, result.epoch_after) == (1007, 0)
    assert prove(calls, [result], campaign.held, now=clock.now, sleep=clock.sleep).findings == ()


# --------------------------------------------------------------------------------------------------------------- proof

FENCED = IdResult("a", Fate.FENCED, producer_id=7, epoch_before=3, epoch_after=5)
PLACE = Place("t", 0)
BUSY = replace(empty("a"), state="Ongoing", partitions=(PLACE,))


def proof(calls: FakeCoordinators, clock: Clock) -> tuple[IdResult, list[str]]:
    found = prove(calls, [FENCED], {"a": (BUSY,)}, now=clock.now, sleep=clock.sleep)
    return found.results[0], [finding.id for finding in found.findings]


def test_the_state_that_was_returned_and_closed_partitions_prove_it(clock: Clock) -> None:
    calls = FakeCoordinators({"a": empty("a", 5)}, partitions={PLACE: (PartitionProducer(7, 4, 0, 1, None),)})
    assert proof(calls, clock) == (FENCED, [])


def test_an_older_transaction_that_stays_open_disproves_it(clock: Clock) -> None:
    calls = FakeCoordinators({"a": empty("a", 5)}, partitions={PLACE: (PartitionProducer(7, 3, 0, 1, 10),)})
    result, _ = proof(calls, clock)
    assert result.problem is not None
    assert (result.fate, result.problem.code) == (Fate.FAILED, "transaction-still-open")
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
    assert result.fate is Fate.FAILED


def test_a_partition_that_may_not_be_read_is_told(clock: Clock) -> None:
    calls = FakeCoordinators({"a": empty("a", 5)}, partitions={PLACE: Code.TOPIC_AUTHORIZATION_FAILED})
    assert proof(calls, clock) == (FENCED, ["FENCE006"])


def test_a_topic_that_is_gone_has_nothing_open(clock: Clock) -> None:
    assert proof(FakeCoordinators({"a": empty("a", 5)}), clock) == (FENCED, [])
