"""What transaction coordinators keep to, be they real or made for tests: the same tests on both."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Transaction
from fakes.coordinators import FakeCoordinators

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import TransactionCalls
    from connectctl.ops.kafka.fence_attempt import InitProducerIdResponse
    from connectctl.ops.sandbox.cluster import Sandbox


@dataclass(frozen=True)
class Stage:
    """Coordinators, and how to leave a transaction of an id open in them."""

    calls: TransactionCalls
    open_transaction: Callable[[str], None]


def fenced(calls: TransactionCalls, *ids: str) -> dict[str, InitProducerIdResponse]:
    answers: dict[str, InitProducerIdResponse] = {}
    calls.fence(dict.fromkeys(ids, 60_000), 10.0, answers.__setitem__)
    return answers


def settled(calls: TransactionCalls, id_: str) -> Transaction:
    """The id when nothing is being ended any more."""
    end = time.monotonic() + 60
    while True:
        seen = calls.describe([id_])[id_]
        assert isinstance(seen, Transaction), seen
        if not seen.is_open:
            return seen
        assert time.monotonic() < end, seen
        time.sleep(0.05)


def coordinators_loaded(calls: TransactionCalls) -> None:
    """Wait until every coordinator answers: a broker makes and loads its log of transactions at the first question."""
    ids = [f"contract-anybody-{number}" for number in range(500)]
    end = time.monotonic() + 60
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
        assert {id_: answer.code for id_, answer in answers.items()} == {f"{new}-0": Code.NONE, f"{new}-1": Code.NONE}
        for id_, answer in answers.items():
            seen = settled(stage.calls, id_)
            assert (seen.who, seen.state) == ((answer.producer_id, answer.epoch), "Empty")

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
        assert settled(stage.calls, new).state == "CompleteAbort"
        assert fenced(stage.calls, new)[new].code is Code.NONE
        assert settled(stage.calls, new).state == "Empty"

    def test_ids_are_listed_by_prefix_and_state(self, stage: Stage, new: str) -> None:
        fenced(stage.calls, f"{new}-0")
        stage.open_transaction(f"{new}-1")
        assert {t.id for t in stage.calls.listed(prefixes=[new]).seen} == {f"{new}-0", f"{new}-1"}
        assert {t.id for t in stage.calls.listed(prefixes=[new], states=["Ongoing"]).seen} == {f"{new}-1"}
        assert stage.calls.listed(prefixes=[f"{new}-none"]).seen == ()

    def test_a_topic_that_is_not_there_has_no_places(self, stage: Stage, new: str) -> None:
        assert stage.calls.places([new]) == []
        assert stage.calls.producers([TopicPartition(new, 0)]) == {
            TopicPartition(new, 0): Code.UNKNOWN_TOPIC_OR_PARTITION
        }


class TestFakeCoordinators(CoordinatorsContract):
    """The coordinators that other tests believe in."""

    @pytest.fixture
    def stage(self) -> Stage:
        fake = FakeCoordinators()

        def open_transaction(id_: str) -> None:
            fake.known[id_] = Transaction(id_, "Ongoing", 7, 0, 60_000, 1, (TopicPartition("orders", 0),))

        return Stage(fake, open_transaction)


@pytest.mark.live
class TestRealCoordinators(CoordinatorsContract):
    """The same on a real broker."""

    @pytest.fixture
    def stage(self, cluster: Sandbox) -> Iterator[Stage]:
        from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
        from live.real import write_uncommitted

        calls = TransactionClient({"bootstrap.servers": cluster.bootstrap_servers}, timeout=15)
        coordinators_loaded(calls)
        zombies: list[Any] = []

        def open_transaction(id_: str) -> None:
            zombies.append(write_uncommitted(cluster.bootstrap_servers, "contract-orders", id_, ("k", "v")))

        yield Stage(calls, open_transaction)
        calls.close()
