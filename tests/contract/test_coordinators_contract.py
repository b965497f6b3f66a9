"""What transaction coordinators keep to, be they real or made for tests: the same tests on both."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Bounds, PartitionProducer, Transaction
from fakes.coordinators import FakeCoordinators

if TYPE_CHECKING:
    from pathlib import Path

    from connectctl.ops.clients.protocols import TransactionCalls
    from connectctl.ops.kafka.fence_attempt import InitProducerIdResponse
    from connectctl.ops.sandbox.cluster import Sandbox


@dataclass(frozen=True)
class Stage:
    """Coordinators, and how to leave a transaction of an id open in them, with a record in
    ``ORDERS``.
    """

    calls: TransactionCalls
    open_transaction: Callable[[str], None]


ORDERS = TopicPartition("contract-orders", 0)


def asked(
    calls: TransactionCalls, *ids: str, timeout_ms: int = 60_000
) -> dict[str, InitProducerIdResponse]:
    """What one request for each id is answered; no id is answered twice."""
    answers: dict[str, InitProducerIdResponse] = {}

    def answer(id_: str, said: InitProducerIdResponse) -> None:
        assert id_ not in answers
        answers[id_] = said

    calls.fence(dict.fromkeys(ids, timeout_ms), 10.0, answer)
    return answers


def fenced(calls: TransactionCalls, *ids: str) -> dict[str, InitProducerIdResponse]:
    """The answers once none of them is that the coordinator loads: a new broker has no producer ids
    for a moment.
    """
    answers: dict[str, InitProducerIdResponse] = {}
    end = time.monotonic() + 600
    while missing := [id_ for id_ in ids if id_ not in answers]:
        assert time.monotonic() < end
        found = asked(calls, *missing)
        answers |= {
            id_: each
            for id_, each in found.items()
            if each.code is not Code.COORDINATOR_LOAD_IN_PROGRESS
        }
    return answers


def settled(calls: TransactionCalls, id_: str) -> Transaction:
    """The id when nothing is being ended any more."""
    end = time.monotonic() + 600
    while True:
        seen = calls.describe([id_])[id_]
        assert isinstance(seen, Transaction), seen
        if not seen.is_open:
            return seen
        assert time.monotonic() < end, seen
        time.sleep(0.05)


def coordinators_loaded(calls: TransactionCalls) -> None:
    """Wait until every coordinator answers: a broker makes and loads its log of transactions at the
    first question.
    """
    ids = [f"contract-anybody-{number}" for number in range(500)]
    end = time.monotonic() + 600
    while set(calls.describe(ids).values()) != {Code.TRANSACTIONAL_ID_NOT_FOUND}:
        assert time.monotonic() < end
        time.sleep(0.2)


class CoordinatorsContract:
    """``stage`` is the coordinators; ids are new for each test, for they may be shared."""

    @pytest.fixture
    def new(self) -> str:
        return f"contract-{secrets.token_hex(4)}"

    def test_an_id_that_nobody_used_is_not_known(self, stage: Stage, new: str) -> None:
        assert stage.calls.describe([new]) == {new: Code.TRANSACTIONAL_ID_NOT_FOUND}

    def test_fencing_answers_each_id_once_and_creates_it(self, stage: Stage, new: str) -> None:
        answers = fenced(stage.calls, f"{new}-0", f"{new}-1")
        assert {id_: answer.code for id_, answer in answers.items()} == {
            f"{new}-0": Code.NONE,
            f"{new}-1": Code.NONE,
        }
        for id_, answer in answers.items():
            seen = settled(stage.calls, id_)
            assert (seen.who, seen.state) == ((answer.producer_id, answer.epoch), "Empty")

    def test_a_longer_timeout_than_brokers_allow_is_refused_and_creates_nothing(
        self, stage: Stage, new: str
    ) -> None:
        assert (
            asked(stage.calls, new, timeout_ms=900_001)[new].code
            is Code.INVALID_TRANSACTION_TIMEOUT
        )
        assert stage.calls.describe([new]) == {new: Code.TRANSACTIONAL_ID_NOT_FOUND}

    def test_fencing_again_moves_the_epoch_or_the_producer_id(self, stage: Stage, new: str) -> None:
        first, second = fenced(stage.calls, new)[new], fenced(stage.calls, new)[new]
        assert second.code is Code.NONE
        assert (first.producer_id, first.epoch) != (second.producer_id, second.epoch)

    def test_an_open_transaction_is_seen_and_its_fencing_aborts_it_and_asks_for_patience(
        self, stage: Stage, new: str
    ) -> None:
        stage.open_transaction(new)
        before = stage.calls.describe([new])[new]
        assert isinstance(before, Transaction)
        assert (before.state, before.is_open) == ("Ongoing", True)
        assert fenced(stage.calls, new)[new].code is Code.CONCURRENT_TRANSACTIONS
        seen = stage.calls.describe([new])[new]
        assert isinstance(seen, Transaction)
        assert (seen.state in ("PrepareAbort", "CompleteAbort"), seen.epoch > before.epoch) == (
            True,
            True,
        )
        assert settled(stage.calls, new).state == "CompleteAbort"
        assert fenced(stage.calls, new)[new].code is Code.NONE
        assert settled(stage.calls, new).state == "Empty"

    def test_ids_are_listed_by_prefix_and_state(self, stage: Stage, new: str) -> None:
        fenced(stage.calls, f"{new}-0")
        stage.open_transaction(f"{new}-1")
        assert {t.id for t in stage.calls.listed(prefixes=[new]).seen} == {f"{new}-0", f"{new}-1"}
        assert {t.id for t in stage.calls.listed(prefixes=[new], states=["Ongoing"]).seen} == {
            f"{new}-1"
        }
        assert stage.calls.listed(prefixes=[f"{new}-none"]).seen == ()

    def test_a_marker_of_an_older_epoch_is_refused_and_one_of_the_same_ends_the_transaction_of_a_partition(
        self, stage: Stage, new: str
    ) -> None:
        fenced(stage.calls, new)
        stage.open_transaction(new)
        seen = stage.calls.describe([new])[new]
        assert isinstance(seen, Transaction)
        (producer,) = self.producers(stage, seen.producer_id)
        assert (producer.start_offset is None, producer.epoch) == (False, seen.epoch)
        older = replace(producer, epoch=producer.epoch - 1)
        assert stage.calls.mark(ORDERS, older, commit=False) is Code.INVALID_PRODUCER_EPOCH
        assert self.producers(stage, seen.producer_id)[0].start_offset == producer.start_offset
        assert stage.calls.mark(ORDERS, producer, commit=False) is Code.NONE
        assert self.producers(stage, seen.producer_id)[0].start_offset is None
        still = stage.calls.describe([new])[new]
        assert isinstance(still, Transaction)
        assert still.state == "Ongoing"

    def producers(self, stage: Stage, id_: int) -> list[PartitionProducer]:
        found = stage.calls.producers([ORDERS])[ORDERS]
        assert not isinstance(found, Code)
        return [each for each in found if each.producer_id == id_]

    def test_readers_of_committed_records_get_as_far_as_the_first_open_transaction(
        self, stage: Stage, new: str
    ) -> None:
        stage.open_transaction(new)
        bounds = stage.calls.bounds([ORDERS])[ORDERS]
        assert isinstance(bounds, Bounds)
        assert bounds.stable < bounds.end

    def test_a_topic_that_is_not_there_has_no_places(self, stage: Stage, new: str) -> None:
        assert stage.calls.topic_partitions([new]) == []
        nowhere = TopicPartition(new, 0)
        assert stage.calls.producers([nowhere]) == {nowhere: Code.UNKNOWN_TOPIC_OR_PARTITION}
        assert stage.calls.bounds([nowhere]) == {nowhere: Code.UNKNOWN_TOPIC_OR_PARTITION}
        producer = PartitionProducer(7, 0, 0, 1, 3)
        assert stage.calls.mark(nowhere, producer, commit=False) is Code.UNKNOWN_TOPIC_OR_PARTITION


class TestFakeCoordinators(CoordinatorsContract):
    """The coordinators that other tests believe in: busy and idle ones."""

    @pytest.fixture(params=[{}, {"aborting_looks": 2, "without_ids": 3}], ids=["idle", "busy"])
    def stage(self, request: pytest.FixtureRequest) -> Stage:
        fake = FakeCoordinators(**request.param)

        def open_transaction(id_: str) -> None:
            epoch = fenced(fake, id_)[id_].epoch
            fake.known[id_] = Transaction(id_, "Ongoing", 7, epoch, 60_000, 1, (ORDERS,))
            fake.partitions[ORDERS] = (PartitionProducer(7, epoch, 0, 1, 3),)

        return Stage(fake, open_transaction)


@pytest.mark.live
class TestRealCoordinators(CoordinatorsContract):
    """The same on a real broker."""

    @pytest.fixture
    def stage(self, cluster: Sandbox) -> Iterator[Stage]:
        from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
        from live.real import write_uncommitted

        calls = TransactionClient({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
        coordinators_loaded(calls)
        zombies: dict[str, Any] = {}

        def open_transaction(id_: str) -> None:
            zombies[id_] = write_uncommitted(
                cluster.bootstrap_servers, ORDERS.topic, id_, ("k", "v")
            )

        yield Stage(calls, open_transaction)
        fenced(calls, *zombies)  # so that none is left open
        calls.close()

    def test_a_new_broker_answers_that_it_loads_while_it_has_no_producer_ids_and_creates_nothing(
        self, state_home: Path, new: str
    ) -> None:
        from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
        from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

        broker = up(SandboxSpec(name="contract-new", workers=0))
        try:
            calls = TransactionClient(broker.client, timeout=120)
            coordinators_loaded(calls)
            first = asked(calls, new)[new].code
            if first is Code.COORDINATOR_LOAD_IN_PROGRESS:  # not where the controller was quicker
                assert calls.describe([new])[new] is Code.TRANSACTIONAL_ID_NOT_FOUND
            assert fenced(calls, new)[new].epoch == 0
            calls.close()
        finally:
            down("contract-new")
