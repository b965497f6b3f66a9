"""What a producer of batches makes of what brokers say, and where it puts records, without a
broker.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException
from connectctl.ops.clients.kafka_protocol.batch_producer import BatchProducer
from connectctl.ops.clients.kafka_protocol.refusals import Refusal
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import BadInput, ConnectctlError, NotAuthorized
from connectctl.ops.kafka.compression import CODECS
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.group_positions import GroupMembership, GroupOffset
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.kafka.record_batch_encoder import ProducerState, RecordColumns
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.spi.transaction_batch import (
    ColumnBatch,
    CopiedMessages,
    ProducerRecord,
    RecordLists,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task import transactional_producer
from connectctl.ops.task_runtime.task.transactional_producer import (
    BrokerError,
    Fenced,
    Rebalancing,
    TaskProducer,
    UnknownOutcome,
)
from fakes.directrequests import SharedWire
from kafka.record.memory_records import MemoryRecords


class Producer:
    """Holds what it is given; ``refuse`` is what the call of a name raises."""

    def __init__(self, *args: Any, **more: Any):
        self.calls: list[str] = []
        self.bumps_epoch = False
        self.refuse: dict[str, Exception] = {}
        self.sent: dict[TopicPartition, list[Any]] = defaultdict(list)
        self.added: set[TopicPartition] = set()

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **more: Any) -> None:
            self.calls.append(name + "".join(f" {key}={value}" for key, value in more.items()))
            if name in self.refuse:
                raise self.refuse[name]

        return call

    def led(self, topic: str) -> range:
        return range(3)

    def partitions(self, topic: str, patience: float) -> int:
        return 3

    def add(self, places: set[TopicPartition]) -> None:
        self.added |= places

    def send(
        self,
        place: TopicPartition,
        records: int,
        made: Any,
        named: Any = None,
    ) -> None:
        assert place in self.added
        batch = MemoryRecords(
            b"".join(made(ProducerState(1, 0, len(self.sent[place]))))
        ).next_batch()
        assert batch is not None
        self.sent[place] += list(batch)


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> TaskProducer:
    monkeypatch.setattr(transactional_producer, "BatchProducer", Producer)
    kafka = Kafka({"bootstrap.servers": "localhost:1", "batch.size": "300"}, timeout=1)
    return TaskProducer(kafka, "g-c-0", timeout_ms=15_000)


def producer(handle: TaskProducer) -> Producer:
    return cast(Producer, handle._producer)


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (Refusal(47), Fenced),  # INVALID_PRODUCER_EPOCH
        (Refusal(90), Fenced),  # PRODUCER_FENCED
        (Refusal(53), NotAuthorized),  # TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        (Refusal(29), NotAuthorized),  # TOPIC_AUTHORIZATION_FAILED
        (Refusal(10), ConnectctlError),  # MESSAGE_TOO_LARGE
        (Refusal(87), ConnectctlError),  # INVALID_RECORD
        (Refusal(6), UnknownOutcome),  # NOT_LEADER_OR_FOLLOWER
        (Refusal(45), UnknownOutcome),  # OUT_OF_ORDER_SEQUENCE_NUMBER
        (Refusal(48), UnknownOutcome),  # INVALID_TXN_STATE
        # CONCURRENT_TRANSACTIONS, for longer than a request may take
        (Refusal(51), UnknownOutcome),
        (Refusal(120), UnknownOutcome),  # TRANSACTION_ABORTABLE
        (TimeoutError("timed out"), UnknownOutcome),
        (ConnectionResetError(), UnknownOutcome),
    ],
)
@pytest.mark.parametrize("call", ["initialise", "flush", "end"])
def test_what_went_wrong_is_told_as_librdkafkas_producer_tells_it(
    handle: TaskProducer, call: str, problem: Exception, told: type[Exception]
) -> None:
    producer(handle).refuse[call] = problem
    with pytest.raises(told):
        handle.initialise(1) if call == "initialise" else handle.commit(1)


@pytest.mark.parametrize(
    ("answers", "told", "asked"),
    [
        ([-1, 90], Fenced, 2),
        ([-1, -1, 47], Fenced, 3),
        ([-1, -1, -1, -1], BrokerError, 4),  # the broker is ill
        ([-1, 0], BrokerError, 2),  # nobody fences it, and it could be aborted
        ([-1, 48], BrokerError, 2),  # it was committed after all: only the topic knows
    ],
)
def test_a_coordinator_that_fails_at_a_commit_is_asked_whether_it_was_just_fencing(
    handle: TaskProducer,
    monkeypatch: pytest.MonkeyPatch,
    answers: list[int],
    told: type[Exception],
    asked: int,
) -> None:
    monkeypatch.setattr(
        "connectctl.ops.task_runtime.task.transactional_producer.FENCING_PAUSES", (0, 0, 0)
    )
    ends: list[bool] = []

    def end(*, commit: bool, patience: float) -> None:
        ends.append(commit)
        if code := answers[len(ends) - 1]:
            raise Refusal(code)

    monkeypatch.setattr(producer(handle), "end", end, raising=False)
    with pytest.raises(told) as caught:
        handle.commit(1)
    assert type(caught.value) is told
    assert ends == [True] + [False] * (asked - 1)


def test_where_records_did_not_arrive_no_commit_is_asked_for_and_the_transaction_is_aborted(
    handle: TaskProducer,
) -> None:
    producer(handle).refuse["flush"] = Refusal(10, topic="t")
    handle.begin()
    with pytest.raises(ConnectctlError, match="write its records to topic t"):
        handle.commit(1)
    handle.discard()
    assert producer(handle).calls[:3] == ["flush", "settle", "end commit=False patience=5.0"]


@pytest.mark.parametrize(("bumps_epoch", "first"), [(False, "settle"), (True, "drop_unanswered")])
def test_what_is_open_is_aborted_when_the_producer_is_discarded_unless_its_commit_was_requested(
    handle: TaskProducer, bumps_epoch: bool, first: str
) -> None:
    producer(handle).bumps_epoch = bumps_epoch
    handle.begin()
    handle.send(TransactionBatch([ProducerRecord("t", None, b"1")]))
    handle.discard()
    assert producer(handle).calls[:2] == [first, "end commit=False patience=5.0"]
    producer(handle).calls.clear()
    producer(handle).refuse["end"] = TimeoutError("timed out")
    handle.begin()
    with pytest.raises(UnknownOutcome):
        handle.commit(1)
    handle.discard()
    assert not any("commit=False" in call for call in producer(handle).calls)


def test_a_partition_that_had_no_leader_is_looked_at_before_it_is_written_to(
    handle: TaskProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    places, looked, late = (
        [TopicPartition("t", n) for n in range(3)],
        list[Any](),
        TopicPartition("t", 1),
    )
    leaders = dict.fromkeys(places, 1) | {late: Code.LEADER_NOT_AVAILABLE}
    monkeypatch.setattr(producer(handle), "leaders", lambda topics: leaders)

    def look(kafka: Any, id_: str, topics: Any, places: Any) -> str | None:
        looked.append(places)
        return "an older transaction is open on t-1" if late in places else None

    monkeypatch.setattr(transactional_producer, "open_older_transaction", look)
    assert handle.open_older_transaction(["t"]) is None
    handle.begin()
    handle.send(TransactionBatch([ProducerRecord("t", None, b"", 0)]))
    handle.commit(1)
    handle.begin()
    handle.send(TransactionBatch([ProducerRecord("t", None, b"", 1)]))
    with pytest.raises(UnknownOutcome, match="is open on t-1"):
        handle.commit(1)
    assert (looked, producer(handle).sent[late]) == ([[places[0], places[2]], [late]], [])


@pytest.mark.parametrize("patience", [1.5, 300.0])
def test_a_commit_is_waited_for_as_long_as_its_caller_has_patience(
    handle: TaskProducer, patience: float
) -> None:
    handle.commit(patience)
    assert producer(handle).calls == ["flush", f"end commit=True patience={patience}"]


def test_a_fenced_producer_asks_for_no_abort_which_is_another_ones_transaction(
    handle: TaskProducer,
) -> None:
    producer(handle).refuse["flush"] = Refusal(90)
    handle.begin()
    with pytest.raises(Fenced):
        handle.commit(1)
    handle.discard()
    assert not any("commit=False" in call for call in producer(handle).calls)


def test_a_coordinator_that_is_busy_is_asked_again_until_it_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = BatchProducer(
        {"bootstrap.servers": "localhost:1"}, "g-c-0", transaction_timeout_ms=15_000, timeout=5
    )
    made._added.add(TopicPartition("t", 0))
    codes = [Code.CONCURRENT_TRANSACTIONS, Code.CONCURRENT_TRANSACTIONS, Code.PRODUCER_FENCED]
    monkeypatch.setattr(
        made, "_ask", lambda doing, request: SimpleNamespace(error_code=codes.pop(0))
    )
    with pytest.raises(Refusal, match="90"):
        made.end(commit=True, patience=5)
    assert not codes


MEMBER: Any = SimpleNamespace(
    metadata=b"CGMDv2:" + (7).to_bytes(4, sys.byteorder) + b"g\0m-1\0\0slot-0\0"
)
OFFSETS = {TopicPartition("in", 1): GroupOffset(5, 3, "m"), TopicPartition("in", 0): GroupOffset(2)}


def test_offsets_of_a_group_are_given_as_of_the_member_that_commits_them(
    handle: TaskProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(
        producer(handle), "send_group_offsets", lambda *call: given.extend(call), raising=False
    )
    handle.send_group_offsets(OFFSETS, MEMBER, 5)
    offsets = {
        TopicPartition("in", 1): GroupOffset(5, 3, "m"),
        TopicPartition("in", 0): GroupOffset(2, None, ""),
    }
    assert given == [GroupMembership("g", 7, "m-1", "slot-0"), offsets, 5]


@dataclass
class Raising:
    """A call of confluent-kafka's that fails with ``code``."""

    code: int

    def __call__(self, *call: Any) -> None:
        raise KafkaException(KafkaError(self.code))


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (Code.ILLEGAL_GENERATION, Rebalancing),
        (Code.UNKNOWN_MEMBER_ID, Rebalancing),
        (Code.REBALANCE_IN_PROGRESS, Rebalancing),
        (Code.FENCED_INSTANCE_ID, Fenced),
        (Code.INVALID_PRODUCER_EPOCH, Fenced),
        (Code.GROUP_AUTHORIZATION_FAILED, NotAuthorized),
        (Code.UNSUPPORTED_VERSION, ConnectctlError),  # brokers before 2.5
        (Code.CONCURRENT_TRANSACTIONS, UnknownOutcome),
        (Code.NOT_COORDINATOR, UnknownOutcome),
    ],
)
def test_what_a_groups_coordinator_refuses_has_a_type(
    handle: TaskProducer, code: Code, told: type[Exception]
) -> None:
    producer(handle).refuse["send_group_offsets"] = Refusal(code)
    with pytest.raises(told) as caught:
        handle.send_group_offsets(OFFSETS, MEMBER, 5)
    assert type(caught.value) is told


class Broker:
    """Answers requests of one producer by their class; what it has not is answered without an
    error.
    """

    def __init__(self, made: BatchProducer, monkeypatch: pytest.MonkeyPatch):
        self.asked: list[str] = []
        self.codes: dict[str, list[int]] = {}
        self._request: Any = None
        monkeypatch.setattr("time.sleep", lambda seconds: None)
        monkeypatch.setattr(made._wire, "newest", lambda request: 3)
        monkeypatch.setattr(made._wire, "ask", self._take)
        monkeypatch.setattr(made._wire, "run", lambda doing, work: work())
        monkeypatch.setattr(made, "_direct", SharedWire(made._wire))

    def _take(self, request: Any, broker: int | None = None, patience: float | None = None) -> Any:
        name = type(request).__name__.removesuffix("Request")
        self.asked.append(name)
        left = self.codes.get(name, [])
        code = left.pop(0) if left else 0
        parts = [SimpleNamespace(error_code=code), SimpleNamespace(error_code=0)]
        return SimpleNamespace(
            error_code=code, node_id=1, topics=[SimpleNamespace(partitions=parts)]
        )


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> tuple[BatchProducer, Broker]:
    made = BatchProducer(
        {"bootstrap.servers": "localhost:1"}, "g-c-0", transaction_timeout_ms=15_000, timeout=5
    )
    return made, Broker(made, monkeypatch)


def give(made: BatchProducer) -> None:
    made.send_group_offsets(
        GroupMembership("g", 7, "m-1"), {TopicPartition("in", 0): GroupOffset(2, None, "")}, 5
    )


def test_a_group_is_added_once_in_a_transaction_which_is_ended_also_without_records(
    broker: tuple[BatchProducer, Broker],
) -> None:
    made, answers = broker
    made.end(commit=True, patience=5)
    give(made)
    give(made)
    made.end(commit=True, patience=5)
    give(made)
    whole = ["AddOffsetsToTxn", "FindCoordinator", "TxnOffsetCommit"]
    # Where the group's coordinator is stays known as long as it takes its offsets.
    assert answers.asked == [
        *whole,
        "TxnOffsetCommit",
        "EndTxn",
        "AddOffsetsToTxn",
        "TxnOffsetCommit",
    ]


def test_a_coordinator_that_is_busy_or_has_moved_is_asked_again(
    broker: tuple[BatchProducer, Broker],
) -> None:
    made, answers = broker
    answers.codes["AddOffsetsToTxn"] = [Code.CONCURRENT_TRANSACTIONS, Code.CONCURRENT_TRANSACTIONS]
    answers.codes["FindCoordinator"] = [Code.COORDINATOR_NOT_AVAILABLE]
    answers.codes["TxnOffsetCommit"] = [Code.NOT_COORDINATOR, Code.COORDINATOR_LOAD_IN_PROGRESS]
    give(made)
    asks = {name: answers.asked.count(name) for name in answers.asked}
    assert asks == {"AddOffsetsToTxn": 3, "FindCoordinator": 4, "TxnOffsetCommit": 3}


@pytest.mark.parametrize(
    "code", [Code.ILLEGAL_GENERATION, Code.UNKNOWN_MEMBER_ID, Code.FENCED_INSTANCE_ID]
)
def test_offsets_of_a_member_that_lost_its_partitions_are_refused_at_once(
    broker: tuple[BatchProducer, Broker], code: Code
) -> None:
    made, answers = broker
    answers.codes["TxnOffsetCommit"] = [code]
    with pytest.raises(Refusal) as caught:
        give(made)
    assert caught.value.code == code
    assert answers.asked.count("TxnOffsetCommit") == 1
    made.end(commit=False, patience=5)  # what was added has to be aborted
    assert answers.asked[-1] == "EndTxn"


def test_brokers_that_would_not_check_the_generation_are_not_asked(
    broker: tuple[BatchProducer, Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, answers = broker
    monkeypatch.setattr(made._wire, "newest", lambda request: 2)
    with pytest.raises(Refusal, match=str(int(Code.UNSUPPORTED_VERSION))):
        give(made)
    assert "TxnOffsetCommit" not in answers.asked


def test_keys_go_where_javas_partitioner_puts_them_in_their_order(handle: TaskProducer) -> None:
    keys = [b"%d" % (n % 17) for n in range(200)]
    columns = RecordColumns(pa.array([b"%d" % n for n in range(200)]), pa.array(keys))
    handle.send(TransactionBatch(record_batches=[ColumnBatch("t", columns)]))
    for partition in range(3):
        mine = [n for n, key in enumerate(keys) if java_partition(key, 3) == partition]
        assert [
            int(record.value) for record in producer(handle).sent[TopicPartition("t", partition)]
        ] == mine


def test_a_row_that_a_broker_refuses_is_named_whatever_batch_it_came_to_be_in(
    handle: TaskProducer,
) -> None:
    made: list[Any] = []

    def send(place: Any, count: Any, encode: Any, named: Any) -> None:
        made.append((place, count, named))

    producer(handle).send = send  # type: ignore
    keys = [b"%d" % (n % 17) for n in range(200)]
    columns = RecordColumns(pa.array([b"%d" % n for n in range(200)]), pa.array(keys))
    handle.send(
        TransactionBatch(record_batches=[ColumnBatch("t", columns, lambda row: f"row {row}")])
    )
    found = {place.partition: [] for place, _, _ in made}  # type: ignore[var-annotated]
    for place, count, named in made:
        found[place.partition] += [named(n) for n in range(count)]
    for partition, rows in found.items():
        assert rows == [
            f"row {n}" for n, key in enumerate(keys) if java_partition(key, 3) == partition
        ]


@pytest.mark.parametrize("count", [3, 300])
def test_a_record_from_before_1970_is_refused_by_its_name_and_one_of_1970_is_not(
    handle: TaskProducer, count: int
) -> None:
    times = [0, None, -1] * (count // 3)
    source = [ProducerRecord("t", None, b"", 0, timestamp=when) for when in times]
    handle.send(TransactionBatch(source))
    handle.commit(1)
    sent = [record.timestamp for record in producer(handle).sent[TopicPartition("t", 0)]]
    assert (sent[0], min(sent[1:3]) > 1 << 40) == (0, True)
    handle.begin()
    handle.send(
        TransactionBatch(
            [*source, replace(source[0], timestamp=-2)], describe_record=lambda row: f"Row {row}"
        )
    )
    with pytest.raises(
        ConnectctlError, match=rf"Row {count} has a timestamp of -2 ms, which is before 1970"
    ):
        handle.commit(1)


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (
            Refusal(32, lambda n: f"Row {n}", 2, "too late"),
            "Row 2 was rejected by the broker: too late",
        ),
        (
            Refusal(87, lambda n: f"Row {n}", 0, "no key"),
            "Row 0 was rejected by the broker: no key",
        ),
        (
            Refusal(10, lambda n: f"Row {n}", alone="t"),
            "Row 0 is too large: .*Raise max.message.bytes of t",
        ),
        (
            Refusal(10, lambda n: f"Row {n}"),
            "Row 0, or the record batch that starts with it, is too large",
        ),
    ],
)
def test_what_a_broker_has_against_a_row_is_told_with_the_row(
    handle: TaskProducer, refusal: Refusal, said: str
) -> None:
    producer(handle).refuse["flush"] = refusal
    with pytest.raises(ConnectctlError, match=said):
        handle.commit(1)


def test_batches_are_no_larger_than_the_topic_takes_and_a_row_that_is_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transactional_producer, "BatchProducer", Producer)
    kafka = Kafka({"bootstrap.servers": "localhost:1"}, timeout=1)
    limited = TaskProducer(
        kafka, "g-c-0", timeout_ms=15_000, properties={"message.max.bytes": "1000"}
    )
    sizes: list[int] = []

    def send(place: TopicPartition, count: int, made: Any, named: Any) -> None:
        sizes.append(len(made(ProducerState(1, 0, 0))))

    producer(limited).send = send  # type: ignore
    named = "row {}".format
    limited.send(
        TransactionBatch(
            record_batches=[ColumnBatch("t", RecordColumns(pa.array([b"x" * 90] * 50)), named)]
        )
    )
    assert max(sizes) <= 1000
    with pytest.raises(
        ConnectctlError,
        match=r"row 1 is too large: its record batch has \d+ bytes; the limit of t is 1000 bytes",
    ):
        limited.send(
            TransactionBatch(
                record_batches=[
                    ColumnBatch("t", RecordColumns(pa.array([b"x", b"x" * 1000, b"x"])), named)
                ]
            )
        )


def test_rows_without_a_key_take_turns_batch_by_batch(handle: TaskProducer) -> None:
    handle.send(
        TransactionBatch(
            record_batches=[
                ColumnBatch("t", RecordColumns(pa.array([b"%03d" % n for n in range(100)])))
            ]
        )
    )
    sent = producer(handle).sent
    assert set(sent) == {TopicPartition("t", n) for n in range(3)}
    assert sorted(int(r.value) for records in sent.values() for r in records) == list(range(100))


def test_single_records_and_messages_go_with_them(handle: TaskProducer) -> None:
    step = TransactionBatch(
        [ProducerRecord("t", b"k", b"one", 2), ProducerRecord("t", b"k", None)],
        [RecordLists("t", [b"two", None], [None, b"k"], [2, None])],
    )
    handle.send(step)
    handle.commit(1)
    sent = producer(handle).sent
    expected: dict[TopicPartition, list[Any]] = defaultdict(list)
    home = java_partition(b"k", 3)
    for partition, record in [
        (2, (b"k", b"one")),
        (home, (b"k", None)),
        (2, (None, b"two")),
        (home, (b"k", None)),
    ]:
        expected[TopicPartition("t", partition)].append(record)
    assert {
        place: [(r.key, r.value) for r in records] for place, records in sent.items()
    } == expected


@pytest.mark.parametrize("count", [4, 400])
@pytest.mark.parametrize("keyed", [True, False])
def test_records_of_a_partition_arrive_in_their_order_whether_it_is_named_or_chosen(
    handle: TaskProducer, monkeypatch: pytest.MonkeyPatch, keyed: bool, count: int
) -> None:
    partitions = 3 if keyed else 1
    monkeypatch.setattr(producer(handle), "partitions", lambda topic, patience: partitions)
    monkeypatch.setattr(producer(handle), "led", lambda topic: range(partitions))
    key = b"k" if keyed else None
    home = java_partition(b"k", partitions)
    handle.begin()
    for first in range(0, count, 4):
        values: list[bytes | None] = [b"%d" % n for n in range(first, first + 4)]
        records = [ProducerRecord("t", key, values[0]), ProducerRecord("t", None, values[1], home)]
        lists = RecordLists("t", values[2:], [None, key], [home, None])
        handle.send(TransactionBatch(records, [lists]))
    handle.commit(1)
    assert [int(r.value) for r in producer(handle).sent[TopicPartition("t", home)]] == list(
        range(count)
    )
    assert len(producer(handle).sent) == 1


def test_headers_and_timestamps_of_single_records_go_with_them(handle: TaskProducer) -> None:
    some = [("a", b"1"), ("b", None), ("a", b"")]
    step = TransactionBatch(
        [
            ProducerRecord("t", b"k", b"0", 1, headers=some, timestamp=1_700_000_000_000),
            ProducerRecord("t", b"k", b"1", 1),
            ProducerRecord("t", None, b"2", 1, headers=[("h", b"x")], timestamp=1_700_000_000_500),
        ]
    )
    before = int(time.time() * 1000)
    handle.send(step)
    handle.commit(1)
    sent = producer(handle).sent[TopicPartition("t", 1)]
    assert [list(r.headers) for r in sent[:2]] == [some, []]
    assert [(r.key, r.value) for r in sent] == [(b"k", b"0"), (b"k", b"1"), (None, b"2")]
    assert [sent[0].timestamp, sent[2].timestamp] == [1_700_000_000_000, 1_700_000_000_500]
    assert sent[1].timestamp >= before


@dataclass
class Message:
    """As confluent-kafka gives what was read."""

    number: int
    when: tuple[int, int]

    def value(self) -> bytes | None:
        return b"%d" % self.number if self.number else None

    def key(self) -> bytes | None:
        return None

    def partition(self) -> int:
        return self.number % 2

    def timestamp(self) -> tuple[int, int]:
        return self.when

    def headers(self) -> list[tuple[str, bytes]] | None:
        return [("n", b"%d" % self.number)] if self.number else None


def test_copies_keep_what_they_have_where_they_had_it(handle: TaskProducer) -> None:
    messages = [
        Message(0, (0, -1)),
        Message(1, (1, 1_700_000_000_000)),
        Message(2, (2, 1_700_000_000_001)),
    ]
    handle.send(TransactionBatch(copies=[CopiedMessages("t", messages)]))
    handle.commit(1)
    sent = producer(handle).sent
    assert {place: [(r.value, r.headers) for r in some] for place, some in sent.items()} == {
        TopicPartition("t", 0): [(None, []), (b"2", [("n", b"2")])],
        TopicPartition("t", 1): [(b"1", [("n", b"1")])],
    }
    assert sent[TopicPartition("t", 0)][1].timestamp == 1_700_000_000_001
    assert sent[TopicPartition("t", 0)][0].timestamp > 1_700_000_000_001


def test_a_single_record_that_a_broker_refuses_is_named_by_its_place_in_the_source(
    handle: TaskProducer,
) -> None:
    named: list[Any] = []

    def send(place: Any, count: Any, made: Any, named_by: Any) -> None:
        named.append((place, named_by))

    producer(handle).send = send  # type: ignore
    records = [ProducerRecord("t", None, b"x", number % 2) for number in range(4)]
    bulk = [RecordLists("t", [b"y"], partitions=[0])]
    handle.send(TransactionBatch(records, bulk, describe_record=lambda number: f"line {number}"))
    handle.send(
        TransactionBatch(
            records[:1], describe_record=lambda number: f"line {number} of the next poll"
        )
    )
    handle.commit(1)
    told = {place.partition: [by(n) for n in range(4 - 2 * place.partition)] for place, by in named}
    next_ = "line 0 of the next poll"
    assert told == {0: ["line 0", "line 2", "line 4", next_], 1: ["line 1", "line 3"]}


def test_records_of_several_polls_become_a_batch_and_columns_stay_behind_what_was_given_before(
    handle: TaskProducer,
) -> None:
    for number in range(3):
        handle.send(TransactionBatch([ProducerRecord("t", None, b"%d" % number, 0)]))
    assert producer(handle).calls == []
    handle.send(
        TransactionBatch(record_batches=[ColumnBatch("t", RecordColumns(pa.array([b"3"])))])
    )
    assert [r.value for r in producer(handle).sent[TopicPartition("t", 0)]][:3] == [
        b"0",
        b"1",
        b"2",
    ]


def test_a_topic_that_has_enough_is_sent_before_the_commit_and_what_is_aborted_is_not(
    handle: TaskProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handle._buffer, "_most", 100)
    handle.send(
        TransactionBatch(
            [ProducerRecord("t", None, b"x" * 60, 0), ProducerRecord("u", None, b"x", 0)]
        )
    )
    assert producer(handle).sent == {}
    handle.send(TransactionBatch([ProducerRecord("t", None, b"x" * 60, 0)]))
    assert {place.topic: len(records) for place, records in producer(handle).sent.items()} == {
        "t": 2
    }
    handle.abort(1)
    handle.begin()
    handle.commit(1)
    assert set(producer(handle).sent) == {TopicPartition("t", 0)}


@pytest.mark.parametrize("codec", [*CODECS, "inherit"])
def test_a_codec_of_librdkafka_is_one_of_the_producer(codec: str) -> None:
    kafka = Kafka({"bootstrap.servers": "localhost:1"}, timeout=1)
    TaskProducer(kafka, "id", timeout_ms=1000, properties={"compression.type": codec})


def test_a_codec_that_nobody_has_is_refused_by_its_name() -> None:
    kafka = Kafka({"bootstrap.servers": "localhost:1"}, timeout=1)
    with pytest.raises(BadInput, match=r"compression\.type=zip is not supported"):
        TaskProducer(kafka, "id", timeout_ms=1000, properties={"compression.type": "zip"})


@pytest.mark.parametrize(
    ("properties", "seconds"),
    [
        ({}, 10.0),
        ({"socket.timeout.ms": "7000"}, 7.0),
        ({"request.timeout.ms": "5000", "socket.timeout.ms": "7000"}, 5.0),
        ({"request.timeout.ms": "90000"}, 60.0),  # no longer than the transaction
    ],
)
def test_a_request_takes_no_longer_than_the_job_allows(
    properties: dict[str, str], seconds: float
) -> None:
    kafka = Kafka({"bootstrap.servers": "localhost:1"}, timeout=1)
    made = TaskProducer(kafka, "id", timeout_ms=60_000, properties=properties)
    assert made._producer._timeout == seconds
