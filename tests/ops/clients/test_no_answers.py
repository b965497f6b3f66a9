"""What clients hand over where there is nothing: each of these numbers is told from a value,
wherever it comes in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from connectctl.ops.clients.kafka_protocol import leaders as leadersmodule
from connectctl.ops.clients.kafka_protocol.batch_producer import BatchProducer
from connectctl.ops.clients.kafka_protocol.consumer_groups import Groups
from connectctl.ops.clients.kafka_protocol.leaders import EARLIEST, LATEST, Leaders
from connectctl.ops.clients.kafka_protocol.partition_leaders import PartitionLeaders
from connectctl.ops.clients.kafka_protocol.refusals import Refusal
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.clients.librdkafka import client as kafkamodule
from connectctl.ops.core.errors import ConnectctlError, TimedOut, Unreachable
from connectctl.ops.kafka.brokers import ReaderGroup
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.fence_attempt import InitProducerIdResponse
from connectctl.ops.kafka.sentinels import number_of, offset_of
from connectctl.ops.kafka.topic_partition import TopicPartition
from fakes.admin import FakeAdmin, FakeKafka, error
from fakes.directrequests import SharedWire

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.parametrize("raw", [-1001, -1000, -2, -1, None])
def test_numbers_below_zero_are_no_numbers(raw: int | None) -> None:
    assert offset_of(raw) is None
    assert number_of(raw) is None


def test_zero_is_a_number() -> None:
    assert (offset_of(0), number_of(0), offset_of(7)) == (0, 0, 7)


# --------------------------------------------------------------------- brokers through kafka-python


class Wire:
    """kafka-python's connections, over what ``answer`` makes of a request."""

    timeout = 0.05
    bootstrap = "h:1"

    def __init__(self, **answers: Any):
        self._answers = answers

    def run(self, doing: str, work: Callable[[], Awaitable[Any]]) -> Any:
        async def whole() -> Any:
            return await work()

        return asyncio.run(whole())

    async def ask(
        self, request: Any, broker: int | None = None, patience: float | None = None
    ) -> Any:
        answer = self._answers[type(request).__name__]
        return (
            answer.pop(0)
            if isinstance(answer, list) and len(answer) > 1
            else answer[0]
            if isinstance(answer, list)
            else answer
        )

    async def each(self, work: Iterable[Awaitable[Any]]) -> list[Any]:
        return await asyncio.gather(*work, return_exceptions=True)

    def newest(self, request: Any) -> int:
        return 9

    def close(self) -> None: ...


def part(number: int, leader: int = 1, code: int = 0) -> Any:
    return SimpleNamespace(partition_index=number, leader_id=leader, error_code=code)


def metadata(*parts: Any, code: int = 0) -> Any:
    return SimpleNamespace(
        topics=[SimpleNamespace(name="t", error_code=code, partitions=list(parts))]
    )


def offsets(*found: int) -> Any:
    parts = [
        SimpleNamespace(partition_index=n, error_code=0, offset=offset)
        for n, offset in enumerate(found)
    ]
    return SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=parts)])


def leaders(**answers: Any) -> Leaders:
    wire: Any = Wire(**answers)
    return Leaders(wire)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leadersmodule, "PAUSE", 0.0)
    monkeypatch.setattr(kafkamodule, "PAUSE", 0.0)


def test_a_leader_of_minus_one_leads_nothing() -> None:
    found = leaders(MetadataRequest=metadata(part(0), part(1, leader=-1))).leaders(["t"])
    assert found == {A: 1, B: Code.LEADER_NOT_AVAILABLE}


@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST])
def test_an_end_and_a_beginning_of_minus_one_are_no_answer(timestamp: int) -> None:
    asked = leaders(MetadataRequest=metadata(part(0), part(1)), ListOffsetsRequest=offsets(4, -1))
    assert asked.offsets([A, B], timestamp) == {A: 4, B: Code.LEADER_NOT_AVAILABLE}
    assert asked.bounds([B]) == {B: Code.LEADER_NOT_AVAILABLE}


def test_no_record_of_that_time_is_an_answer() -> None:
    asked = leaders(MetadataRequest=metadata(part(0), part(1)), ListOffsetsRequest=offsets(4, -1))
    assert asked.offsets([A, B], 1_000) == {A: 4, B: None}


PARTIAL = {
    "no partitions": metadata(),
    "one is missing": metadata(part(1)),
    "no leaders yet": metadata(code=Code.LEADER_NOT_AVAILABLE),
}


@pytest.mark.parametrize("partial", PARTIAL.values(), ids=PARTIAL)
def test_partitions_that_metadata_has_in_part_are_asked_for_again(partial: Any) -> None:
    patient: Any = Wire(MetadataRequest=[partial, partial, metadata(part(0), part(1))])
    patient.timeout = 60
    assert Leaders(patient).topic_partitions(["t"]) == [A, B]
    with pytest.raises(Unreachable, match="Could not determine the partitions of t"):
        leaders(MetadataRequest=partial).topic_partitions(["t"])


def test_a_topic_that_is_not_there_has_no_partitions() -> None:
    assert (
        leaders(MetadataRequest=metadata(code=Code.UNKNOWN_TOPIC_OR_PARTITION)).topic_partitions(
            ["t"]
        )
        == []
    )


def test_no_transaction_has_no_start() -> None:
    known = SimpleNamespace(
        producer_id=7,
        producer_epoch=0,
        coordinator_epoch=-1,
        last_timestamp=-1,
        current_txn_start_offset=-1,
    )
    parts = [SimpleNamespace(partition_index=0, error_code=0, active_producers=[known])]
    told = SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=parts)])
    found = leaders(MetadataRequest=metadata(part(0)), DescribeProducersRequest=told).producers(
        [A]
    )[A]
    assert not isinstance(found, Code)
    assert found[0].start_offset is None


def coordinator(node: int, code: int = 0) -> Any:
    return SimpleNamespace(
        coordinators=[SimpleNamespace(key="id", node_id=node, error_code=code)],
        node_id=node,
        error_code=code,
    )


def test_a_coordinator_of_minus_one_is_none() -> None:
    calls = TransactionClient({"bootstrap.servers": "h:1"}, timeout=1)
    calls._wire = Wire(FindCoordinatorRequest=coordinator(-1))  # type: ignore[assignment]
    assert calls.describe(["id"]) == {"id": Code.COORDINATOR_NOT_AVAILABLE}


def test_a_transaction_that_is_not_open_has_no_start() -> None:
    state = {
        "transactional_id": "id",
        "error_code": 0,
        "transaction_state": "Empty",
        "producer_id": 1,
        "producer_epoch": 0,
    }
    state |= {"transaction_timeout_ms": 1, "transaction_start_time_ms": -1, "topics": []}
    calls = TransactionClient({"bootstrap.servers": "h:1"}, timeout=1)
    told = SimpleNamespace(transaction_states=[SimpleNamespace(**state)])
    calls._wire = Wire(FindCoordinatorRequest=coordinator(1), DescribeTransactionsRequest=told)  # type: ignore[assignment]
    found = calls.describe(["id"])["id"]
    assert not isinstance(found, Code)
    assert found.started_ms is None


@pytest.mark.parametrize(("who", "epoch"), [(-1, 3), (7, -1), (-1, -1)])
def test_a_producer_without_id_or_epoch_was_not_initialised(who: int, epoch: int) -> None:
    from connectctl.ops.clients.kafka_protocol.transactions import _answer

    told = SimpleNamespace(error_code=0, producer_id=who, producer_epoch=epoch)
    assert _answer(told) == InitProducerIdResponse(Code.NO_ANSWER)
    assert _answer(
        SimpleNamespace(error_code=0, producer_id=7, producer_epoch=3)
    ) == InitProducerIdResponse(Code.NONE, 7, 3)
    producer = BatchProducer(
        {"bootstrap.servers": "h:1"}, "id", transaction_timeout_ms=1, timeout=1
    )
    producer._wire = Wire(FindCoordinatorRequest=coordinator(1), InitProducerIdRequest=told)  # type: ignore[assignment]
    producer._direct = SharedWire(producer._wire)  # type: ignore[assignment]
    with pytest.raises(Refusal):
        producer.initialise(0.0)


def test_a_batch_producer_finds_no_coordinator_at_minus_one() -> None:
    producer = BatchProducer(
        {"bootstrap.servers": "h:1"}, "id", transaction_timeout_ms=1, timeout=1
    )
    producer._wire = Wire(FindCoordinatorRequest=coordinator(-1))  # type: ignore[assignment]
    with pytest.raises(Refusal) as raised:
        producer.initialise(0.0)
    assert raised.value.code == Code.COORDINATOR_NOT_AVAILABLE


def kept(metadata: Any) -> PartitionLeaders:
    return PartitionLeaders(cast(Any, Wire(MetadataRequest=metadata)))


def test_a_batch_producer_does_not_hash_over_a_part_of_the_partitions() -> None:
    assert kept([metadata(part(1)), metadata(part(0), part(1))]).partitions("t", 5.0) == 2


@pytest.mark.parametrize("code", [Code.TOPIC_AUTHORIZATION_FAILED, Code.INVALID_TOPIC_EXCEPTION])
def test_a_batch_producer_does_not_wait_for_a_topic_that_waiting_does_not_make(code: Code) -> None:
    once = [metadata(code=int(code)), metadata(part(0))]
    with pytest.raises(Refusal) as raised:
        kept(once).partitions("t", 60.0)
    assert (raised.value.code, raised.value.topic, len(once)) == (code, "t", 1)


def test_a_batch_producer_waits_for_a_topic_that_comes_and_names_one_that_does_not() -> None:
    none = metadata(code=int(Code.UNKNOWN_TOPIC_OR_PARTITION))
    answers = [none, metadata(part(0, code=5)), metadata(part(0)), none]
    known = kept(answers)
    assert known.partitions("t", 60.0) == 1
    known.forget()
    with pytest.raises(Refusal) as raised:
        known.partitions("t", -1.0)
    assert (raised.value.code, raised.value.topic, answers) == (
        Code.UNKNOWN_TOPIC_OR_PARTITION,
        "t",
        [none],
    )


def committed(*found: tuple[int, int]) -> Any:
    parts = [
        SimpleNamespace(partition_index=n, committed_offset=at, error_code=code)
        for n, (at, code) in enumerate(found)
    ]
    return SimpleNamespace(error_code=0, topics=[SimpleNamespace(name="t", partitions=parts)])


def test_an_offset_that_was_not_committed_is_none_and_one_that_is_not_told_is_a_problem() -> None:
    said = ConnectctlError("not told")
    brokers: Any = SimpleNamespace(error=lambda code, doing, right: said if code else None)
    nobody: Any = None
    groups, group = Groups(brokers, nobody), ReaderGroup("g", "classic", "Empty", 1)
    whole = groups._committed(group, committed((4, 0), (-1, 0)))
    assert (whole.committed, whole.problem) == ({A: 4}, None)
    assert groups._committed(group, committed((4, 0), (-1, 15))).problem is said


# ----------------------------------------------------------------------- brokers through librdkafka


class Described(FakeAdmin):
    """Gives one metadata after the other, and no settings."""

    def __init__(self, *known: Any):
        super().__init__()
        self._known = list(known)

    def list_topics(self, timeout: float) -> Any:
        known = self._known.pop(0) if len(self._known) > 1 else self._known[0]
        return SimpleNamespace(topics={"t": known}, brokers={1: None}, cluster_id="c")

    def describe_configs(self, resources: Any, request_timeout: float) -> dict[Any, Future[Any]]:
        future: Future[Any] = Future()
        future.set_result({})
        return dict.fromkeys(resources, future)


def topic(*partitions: tuple[int, int, list[int]], problem: Any = None) -> Any:
    parts = {
        n: SimpleNamespace(leader=leader, replicas=held, isrs=held, error=None)
        for n, leader, held in partitions
    }
    return SimpleNamespace(partitions=parts, error=problem)


def test_a_partition_without_a_leader_has_none() -> None:
    facts = FakeKafka(Described(topic((0, 1, [1]), (1, -1, [2])))).topics(["t"])["t"]
    assert facts.leaders == {0: 1, 1: None}


HALVES = {
    "no partitions": topic(),
    "one is missing": topic((1, 1, [1])),
    "nowhere": topic((0, 1, [])),
    "an error": topic(problem=error("LEADER_NOT_AVAILABLE").args[0]),
}


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_facts_of_a_topic_are_whole_or_an_error(half: Any) -> None:
    assert FakeKafka(Described(half, half, topic((0, 1, [1])))).topics(["t"])["t"].partitions == 1
    with pytest.raises(TimedOut, match="The partitions of t could not be determined"):
        FakeKafka(Described(half), timeout=0.02).topics(["t"])
