"""Partitions without a leader: they hold up no others, and are waited for only when they are to be
written to.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.clients.kafka_protocol import partition_leaders
from connectctl.ops.clients.kafka_protocol.batch_producer import BatchProducer
from connectctl.ops.clients.kafka_protocol.partition_leaders import PartitionLeaders
from connectctl.ops.clients.kafka_protocol.refusals import Refusal
from connectctl.ops.clients.kafka_protocol.transactional_writer import Block, TransactionalWriter
from connectctl.ops.core.errors import NotTrusted, Unreachable
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.kafka.record_columns import Rows
from connectctl.ops.kafka.topic_partition import TopicPartition

NONE = Code.LEADER_NOT_AVAILABLE
PLACES = [TopicPartition("t", n) for n in range(3)]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The leaders of partitions 0 to 2 in each look-up, of which the last one is repeated; time
    passes with pauses.
    """
    given: list[Any] = []
    now = [0.0]

    def of_topic(topic: str) -> Any:
        answer = given.pop(0) if len(given) > 1 else given[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Code) else dict(zip(PLACES, answer, strict=False))

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(
        partition_leaders, "Leaders", lambda wire: SimpleNamespace(of_topic=of_topic)
    )
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(partition_leaders, "time", clock)
    return given


def test_a_topic_is_known_when_one_of_its_partitions_has_a_leader(answers: list[Any]) -> None:
    answers += [Code.UNKNOWN_TOPIC_OR_PARTITION, (NONE, NONE, NONE), (1, NONE, 2)]
    leaders = PartitionLeaders(SimpleNamespace())  # type: ignore[arg-type]
    assert (leaders.partitions("t", 5), leaders.led("t"), leaders.leader(PLACES[2])) == (
        3,
        [0, 2],
        2,
    )


def test_a_leader_is_waited_for_as_long_as_its_topic_would_be(answers: list[Any]) -> None:
    answers += [(1, NONE, 2), (1, NONE, 2), (1, 3, 2)]
    leaders = PartitionLeaders(SimpleNamespace())  # type: ignore[arg-type]
    leaders.partitions("t", 5)
    assert (leaders.leader(PLACES[1]), leaders.led("t")) == (3, [0, 1, 2])
    leaders.forget()
    answers[:] = [(1, NONE, 2)]
    leaders.partitions("t", 5)
    with pytest.raises(Refusal) as told:
        leaders.leader(PLACES[1])
    assert (told.value.code, told.value.topic) == (NONE, "t")


def test_brokers_that_do_not_answer_are_asked_again_as_long_as_a_leader_is_waited_for(
    answers: list[Any],
) -> None:
    leaders = PartitionLeaders(SimpleNamespace())  # type: ignore[arg-type]
    answers += [Unreachable("Kafka at h:1 does not answer"), (1, 2, 3)]
    assert leaders.partitions("t", 5) == 3
    leaders.forget()
    answers[:] = [Unreachable("Kafka at h:1 does not answer")]
    with pytest.raises(Unreachable):
        leaders.partitions("t", 5)


def test_a_broker_that_is_not_trusted_is_asked_once(answers: list[Any]) -> None:
    leaders = PartitionLeaders(SimpleNamespace())  # type: ignore[arg-type]
    answers += [NotTrusted("Kafka at h:1 is not trusted"), (1, 2, 3)]
    with pytest.raises(NotTrusted):
        leaders.partitions("t", 5)


def test_a_topic_without_any_leader_is_refused_when_time_is_up_and_a_missing_right_at_once(
    answers: list[Any],
) -> None:
    leaders = PartitionLeaders(SimpleNamespace())  # type: ignore[arg-type]
    for answer, code in [
        ((NONE, NONE, NONE), NONE),
        (Code.TOPIC_AUTHORIZATION_FAILED, Code.TOPIC_AUTHORIZATION_FAILED),
    ]:
        answers[:] = [answer]
        with pytest.raises(Refusal) as told:
            leaders.partitions("t", 5)
        assert told.value.code == code


class Sent:
    """A producer whose partition 1 has no leader; what was asked of it, in order."""

    def __init__(self) -> None:
        self.trace: list[tuple[str, Any]] = []

    def partitions(self, topic: str, patience: float) -> int:
        return 3

    def led(self, topic: str) -> list[int]:
        return [0, 2]

    def add(self, places: Any) -> None:
        self.trace.append(("add", sorted(place.partition for place in places)))

    def await_leader(self, place: TopicPartition) -> None:
        self.trace.append(("wait", place.partition))

    def send(self, place: TopicPartition, records: int, *more: Any) -> None:
        self.trace.append(("send", place.partition))


@pytest.mark.parametrize("count", [12, 600])
def test_records_for_other_partitions_are_sent_before_a_leader_is_waited_for(count: int) -> None:
    producer: Any = Sent()
    checked: list[list[int]] = []

    def check(partitions: Any) -> None:
        checked.append(sorted(each.partition for each in partitions))

    writer = TransactionalWriter(producer, "none", 1 << 20, None, ValueError, check=check)
    rows = Rows()
    for number in range(count):
        rows.add(b"%d" % number, b"v")
    assert {java_partition(b"%d" % number, 3) for number in range(count)} == {0, 1, 2}
    writer.write(Block("t", rows))
    assert producer.trace == [
        ("add", [0, 2]),
        ("send", 0),
        ("send", 2),
        ("wait", 1),
        ("add", [1]),
        ("send", 1),
    ]
    assert checked == [[0, 2], [1]]


@pytest.mark.parametrize("count", [1, 600])
def test_records_without_a_key_go_where_a_leader_is(count: int) -> None:
    producer: Any = Sent()
    writer = TransactionalWriter(producer, "none", 1 << 20, None, ValueError)
    for _ in range(9):
        rows = Rows()
        for _ in range(count):
            rows.add(None, b"v")
        writer.write(Block("t", rows))
    assert {partition for what, partition in producer.trace if what == "send"} == {0, 2}


def test_what_was_sent_is_acknowledged_before_a_leader_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = BatchProducer(
        {"bootstrap.servers": "localhost:1"}, "id", transaction_timeout_ms=500, timeout=0.2
    )
    trace: list[str] = []
    monkeypatch.setattr(made, "_sender", SimpleNamespace(flush=lambda: trace.append("flush")))
    monkeypatch.setattr(
        made, "_leaders", SimpleNamespace(leader=lambda place: trace.append("leader"))
    )
    made.await_leader(PLACES[1])
    assert trace == ["flush", "leader"]
