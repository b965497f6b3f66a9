"""The public producer: what it sends, which call fits when, and what its caller is told to do."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    KafkaException,
    Message,
)
from confluent_kafka import TopicPartition as Position
from connectctl.ops.clients.kafka_protocol.limit import Unacknowledged
from connectctl.ops.clients.kafka_protocol.refusals import Refusal
from connectctl.ops.clients.producer import producer as module
from connectctl.ops.clients.producer.errors import error_of
from connectctl.ops.clients.producer.settings import TUNING, settings
from connectctl.ops.core.errors import NotAuthorized, NotTrusted, Unreachable
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.group_positions import GroupMembership, GroupOffset
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.kafka.record_batch_encoder import ProducerState
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.producer import (
    AbortRequired,
    ProducerFailed,
    ProducerFenced,
    RequestFailed,
    TransactionalProducer,
)
from kafka.record.memory_records import MemoryRecords

CONFIG = {"bootstrap.servers": "localhost:1", "transactional.id": "id"}
NO_ANSWER = Unreachable("no answer")


class Batches:
    """A producer of batches that keeps what it is given. ``refuse`` is what the next call of a name
    raises.
    """

    bumps_epoch = True
    unacknowledged = 0

    def __init__(self, *args: Any, **more: Any):
        self.calls: list[str] = []
        self.refuse: dict[str, list[Exception]] = {}
        self.sent: dict[TopicPartition, list[Any]] = defaultdict(list)
        self.offsets: list[Any] = []
        self.answers: list[Callable[[int], None]] = []
        self.codes: list[int] = []
        self.appended = -1

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.refuse.get(name):
            raise self.refuse[name].pop(0)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **more: self._called(name)

    def led(self, topic: str) -> range:
        return range(3)

    def until(self, ends: float | None) -> AbstractContextManager[None]:
        return nullcontext()

    def partitions(self, topic: str, patience: float) -> int:
        self._called("partitions")
        return 3

    def send(
        self,
        place: TopicPartition,
        records: int,
        made: Any,
        named: Any = None,
        answered: Any = None,
    ) -> None:
        self._called("send")
        batch = MemoryRecords(
            b"".join(made(ProducerState(1, 0, len(self.sent[place]))))
        ).next_batch()
        assert batch is not None
        at = len(self.sent[place])
        self.sent[place] += list(batch)
        if answered is not None:
            self.answers.append(lambda code: answered(code, -1 if code else at, self.appended))

    def flush(self, patience: float | None = None) -> None:
        """What was sent is answered, unless nobody does."""
        answers, self.answers = self.answers, []
        codes = iter(self.codes)
        for each in answers:
            each(next(codes, 0))
        self._called("flush")

    def send_group_offsets(self, *given: Any) -> None:
        self._called("send_group_offsets")
        self.offsets.append(given)

    def end(self, *, commit: bool, patience: float | None = None) -> None:
        self._called("commit" if commit else "abort")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> TransactionalProducer:
    monkeypatch.setattr(module, "BatchProducer", Batches)
    return TransactionalProducer(CONFIG)


@pytest.fixture
def begun(made: TransactionalProducer) -> TransactionalProducer:
    made.init_transactions()
    made.begin_transaction()
    return made


def brokers(made: TransactionalProducer) -> Batches:
    return cast(Batches, made._producer)


def error(told: pytest.ExceptionInfo[KafkaException]) -> Any:
    return told.value.args[0]


@pytest.mark.parametrize("count", [3, 300])
def test_records_of_a_partition_are_written_in_their_order_whether_it_is_named_or_chosen(
    begun: TransactionalProducer, count: int
) -> None:
    home = java_partition(b"k", 3)
    for n in range(count):
        more: Any = {"partition": home} if n % 3 == 1 else {"key": b"k"}
        begun.produce("t", b"%d" % n, **more)
    begun.commit_transaction()
    sent = cast(Any, begun)._producer.sent
    assert [int(record.value) for record in sent[TopicPartition("t", home)]] == list(range(count))


def test_records_are_sent_as_they_were_given_when_the_transaction_is_committed(
    begun: TransactionalProducer,
) -> None:
    begun.produce("t", "text", "k", timestamp=1_700_000_000_000, headers={"a": "1", "b": None})
    begun.produce("t", None, b"k", headers=[("a", b"1"), ("a", b"2")])
    begun.produce("t", b"by hand", b"k", 2)
    assert (len(begun), brokers(begun).calls) == (3, ["initialise"])
    begun.commit_transaction()
    home, sent = TopicPartition("t", java_partition(b"k", 3)), brokers(begun).sent
    records = sent[home] if home.partition != 2 else sent[home][:2]
    assert [(r.key, r.value, r.headers) for r in records] == [
        (b"k", b"text", [("a", b"1"), ("b", None)]),
        (b"k", None, [("a", b"1"), ("a", b"2")]),
    ]
    assert records[0].timestamp == 1_700_000_000_000
    assert sent[TopicPartition("t", 2)][-1].value == b"by hand"
    assert (len(begun), brokers(begun).calls[-2:]) == (0, ["flush", "commit"])


def test_what_is_aborted_and_was_not_sent_is_never_sent(begun: TransactionalProducer) -> None:
    begun.produce("t", b"x")
    begun.abort_transaction()
    begun.begin_transaction()
    begun.commit_transaction()
    assert brokers(begun).sent == {}


def test_a_record_has_the_timestamp_it_was_given_or_that_of_its_sending_and_none_before_1970(
    begun: TransactionalProducer,
) -> None:
    began = int(time.time() * 1000)
    begun.produce("t", b"given", partition=0, timestamp=1)
    begun.produce("t", b"none", partition=0)
    begun.flush()
    given, none = brokers(begun).sent[TopicPartition("t", 0)]
    assert (given.timestamp, none.timestamp >= began) == (1, True)
    with pytest.raises(ValueError, match="timestamp is -1 ms, which is before 1970"):
        begun.produce("t", b"too early", timestamp=-1)


def test_many_records_are_sent_before_the_commit(
    begun: TransactionalProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUFFER_BYTES", 1000)
    for number in range(100):
        begun.produce("t", b"%0100d" % number)
        assert len(begun) <= 10
    assert sum(map(len, brokers(begun).sent.values())) == 100


def test_a_record_that_is_too_large_is_not_in_the_transaction(begun: TransactionalProducer) -> None:
    with pytest.raises(KafkaException) as told:
        begun.produce("t", b"x" * 1_000_001)
    assert error(told).code() == KafkaError.MSG_SIZE_TOO_LARGE
    begun.produce("t", b"x")
    begun.commit_transaction()
    assert sum(map(len, brokers(begun).sent.values())) == 1


def test_offsets_are_those_of_the_member_that_gives_them(begun: TransactionalProducer) -> None:
    metadata = b"CGMDv2:" + (7).to_bytes(4, "little") + b"g\0m-1\0\0slot-0\0"
    begun.send_offsets_to_transaction([], metadata)
    begun.send_offsets_to_transaction(
        [Position("in", 1, 5, metadata="m", leader_epoch=3), Position("in", 2)], metadata, 9
    )
    offsets = {TopicPartition("in", 1): GroupOffset(5, 3, "m")}
    assert brokers(begun).offsets == [(GroupMembership("g", 7, "m-1", "slot-0"), offsets, 9)]


@pytest.mark.parametrize(
    "problem", [Refusal(10, said="too much"), Refusal(6), NO_ANSWER, ConnectionResetError()]
)
@pytest.mark.parametrize("at", ["send", "flush", "partitions"])
def test_a_record_that_did_not_arrive_asks_for_an_abort_behind_which_another_transaction_can_begin(
    begun: TransactionalProducer, at: str, problem: Exception
) -> None:
    brokers(begun).refuse[at] = [problem]
    begun.produce("t", b"x")
    with pytest.raises(AbortRequired) as told:
        begun.commit_transaction()
    assert (error(told).txn_requires_abort(), error(told).fatal(), error(told).retriable()) == (
        True,
        False,
        False,
    )
    for call in (
        begun.commit_transaction,
        begun.flush,
        lambda: begun.produce("t", b"y"),
        begun.begin_transaction,
    ):
        with pytest.raises(AbortRequired):
            call()
    assert "commit" not in brokers(begun).calls
    begun.abort_transaction()
    assert brokers(begun).calls[-3:] == ["drop_unanswered", "abort", "forget_leaders"]
    begun.begin_transaction()
    begun.produce("t", b"x")
    begun.commit_transaction()


def test_behind_an_interrupted_abort_comes_another_abort(begun: TransactionalProducer) -> None:
    brokers(begun).refuse["abort"] = [cast(Any, KeyboardInterrupt())]
    with pytest.raises(KeyboardInterrupt):
        begun.abort_transaction()
    with pytest.raises(
        KafkaException, match=r"its abort was interrupted: call abort_transaction\(\) again"
    ):
        begun.begin_transaction()
    begun.abort_transaction()
    begun.begin_transaction()


@pytest.mark.parametrize("code", [22, 25, 82, 120])
def test_offsets_that_are_refused_ask_for_an_abort(begun: TransactionalProducer, code: int) -> None:
    metadata = b"CGMDv2:" + (7).to_bytes(4, "little") + b"g\0m-1\0\0slot-0\0"
    brokers(begun).refuse["send_group_offsets"] = [Refusal(code)]
    with pytest.raises(AbortRequired) as told:
        begun.send_offsets_to_transaction([Position("in", 1, 5)], metadata)
    assert error(told).code() == code


def whole_life(made: TransactionalProducer, *, commit: bool) -> None:
    made.init_transactions()
    made.begin_transaction()
    made.produce("t", b"x")
    made.commit_transaction() if commit else made.abort_transaction()


@pytest.mark.parametrize("code", [47, 90, 49])
@pytest.mark.parametrize("at", ["flush", "commit", "abort", "initialise"])
def test_a_producer_that_is_fenced_is_good_for_nothing_any_more(
    made: TransactionalProducer, at: str, code: int
) -> None:
    brokers(made).refuse[at] = [Refusal(code)]
    with pytest.raises(ProducerFenced) as told:
        whole_life(made, commit=at != "abort")
    assert error(told).fatal()
    for call in (
        made.init_transactions,
        made.begin_transaction,
        made.commit_transaction,
        made.abort_transaction,
    ):
        with pytest.raises(ProducerFenced):
            call()


@pytest.mark.parametrize("problem", [NO_ANSWER, Refusal(51), Refusal(16), ConnectionResetError()])
def test_a_commit_without_an_answer_is_called_again_and_nothing_else_fits_meanwhile(
    begun: TransactionalProducer, problem: Exception
) -> None:
    begun.produce("t", b"x")
    brokers(begun).refuse["commit"] = [problem, problem]
    for _ in range(2):
        with pytest.raises(RequestFailed) as told:
            begun.commit_transaction()
        assert (error(told).retriable(), error(told).txn_requires_abort()) == (True, False)
        for call in (
            begun.abort_transaction,
            begun.begin_transaction,
            lambda: begun.produce("t", b"y"),
        ):
            with pytest.raises(KafkaException, match=r"call commit_transaction\(\) again"):
                call()
    begun.commit_transaction()
    assert sum(map(len, brokers(begun).sent.values())) == 1
    begun.begin_transaction()


def test_before_version_2_a_commit_without_an_answer_ends_the_producer(
    begun: TransactionalProducer,
) -> None:
    brokers(begun).bumps_epoch = False
    brokers(begun).refuse["commit"] = [NO_ANSWER]
    begun.produce("t", b"x")
    with pytest.raises(ProducerFailed) as told:
        begun.commit_transaction()
    assert not isinstance(told.value, ProducerFenced)
    with pytest.raises(ProducerFailed):
        begun.abort_transaction()


def test_a_commit_that_the_coordinator_refuses_is_never_asked_for_again(
    begun: TransactionalProducer,
) -> None:
    brokers(begun).refuse["commit"] = [Refusal(int(Code.INVALID_TXN_STATE))]
    with pytest.raises(ProducerFailed, match="INVALID_TXN_STATE"):
        begun.commit_transaction()


def test_an_abort_without_an_answer_is_called_again(begun: TransactionalProducer) -> None:
    brokers(begun).refuse["abort"] = [NO_ANSWER]
    with pytest.raises(RequestFailed):
        begun.abort_transaction()
    with pytest.raises(KafkaException):
        begun.begin_transaction()
    begun.abort_transaction()
    begun.begin_transaction()


def test_before_version_2_an_abort_behind_a_doubt_takes_another_epoch(
    begun: TransactionalProducer,
) -> None:
    brokers(begun).bumps_epoch = False
    brokers(begun).refuse["flush"] = [NO_ANSWER]
    begun.produce("t", b"x")
    with pytest.raises(AbortRequired):
        begun.commit_transaction()
    begun.abort_transaction()
    assert brokers(begun).calls[-5:] == [
        "settle",
        "drop_unanswered",
        "abort",
        "forget_leaders",
        "resume",
    ]
    begun.begin_transaction()
    begun.abort_transaction()
    assert brokers(begun).calls[-1] == "abort"


def test_an_initialisation_that_nobody_answers_is_called_again(made: TransactionalProducer) -> None:
    brokers(made).refuse["initialise"] = [NO_ANSWER]
    with pytest.raises(RequestFailed):
        made.init_transactions()
    made.init_transactions()


@pytest.mark.parametrize("problem", [Refusal(53), NotAuthorized("no login")])
def test_who_may_not_use_the_id_is_told_so(made: TransactionalProducer, problem: Exception) -> None:
    brokers(made).refuse["initialise"] = [problem]
    with pytest.raises(ProducerFailed) as told:
        made.init_transactions()
    assert error(told).fatal()


def test_calls_that_do_not_fit_say_what_is_missing(made: TransactionalProducer) -> None:
    calls: list[Callable[[], Any]] = [made.begin_transaction, made.commit_transaction, made.flush]
    calls.append(lambda: made.produce("t", b"x"))
    for early in calls:
        with pytest.raises(KafkaException, match=r"init_transactions\(\) was not called yet"):
            early()
    made.init_transactions()
    with pytest.raises(KafkaException, match=r"init_transactions\(\): it was called before"):
        made.init_transactions()
    calls = [made.commit_transaction, made.abort_transaction, lambda: made.produce("t", b"x")]
    for call in calls:
        with pytest.raises(KafkaException, match="no transaction was begun") as told:
            call()
        assert error(told).code() == KafkaError._STATE
    made.begin_transaction()
    with pytest.raises(KafkaException, match="a transaction is open"):
        made.begin_transaction()
    with pytest.raises(KafkaException, match="must be bytes, str or None, not int"):
        made.produce("t", 7)  # type: ignore[arg-type]
    assert made.poll(0) == 0
    with pytest.raises(KafkaException, match="group_metadata: The version of librdkafka") as told:
        made.send_offsets_to_transaction([Position("in", 1, 5)], b"unknown")
    assert error(told).code() == KafkaError._INVALID_ARG


# ---------------------------------------------------------------------------------------- callbacks


class Reports(list[tuple[int, int, int | None, bytes | None]]):
    """What callbacks are given: error code, partition, offset, value."""

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        assert (message.error() is None) is (error is None)
        self.append(
            (error.code() if error else 0, message.partition(), message.offset(), message.value())
        )


def test_a_callback_is_called_once_with_the_place_of_its_record_and_only_when_it_is_acknowledged(
    begun: TransactionalProducer,
) -> None:
    reports = Reports()
    begun.produce("t", b"a", partition=1)
    begun.produce("t", b"b", partition=1, on_delivery=reports)
    begun.produce("t", b"c", partition=1, callback=reports)
    begun.produce("t", b"d", b"k", -1, reports)
    assert (begun.poll(0), reports) == (0, [])
    begun.flush()
    home = java_partition(b"k", 3)
    assert sorted(reports) == sorted(
        [(0, 1, 1, b"b"), (0, 1, 2, b"c"), (0, home, 3 if home == 1 else 0, b"d")]
    )
    begun.commit_transaction()
    assert (len(reports), begun.poll(0), begun.poll(1.0)) == (3, 0, 0)


def test_a_callback_is_given_the_record_as_it_was_produced(begun: TransactionalProducer) -> None:
    given: list[Message] = []
    before = int(time.time() * 1000)
    for timestamp in (1_700_000_000_000, 0):
        begun.produce(
            "t",
            "v",
            "k",
            2,
            timestamp=timestamp,
            headers={"a": "1", "b": None},
            on_delivery=lambda _, m: given.append(m),
        )
    begun.produce("t", None, partition=2, on_delivery=lambda _, m: given.append(m))
    begun.flush()
    assert [(m.topic(), m.key(), m.value(), m.headers()) for m in given] == [
        ("t", b"k", b"v", [("a", b"1"), ("b", None)]),
        ("t", b"k", b"v", [("a", b"1"), ("b", None)]),
        ("t", None, None, None),
    ]
    assert given[0].timestamp() == (TIMESTAMP_CREATE_TIME, 1_700_000_000_000)
    for message, record in zip(given, brokers(begun).sent[TopicPartition("t", 2)], strict=True):
        assert message.timestamp() == (TIMESTAMP_CREATE_TIME, record.timestamp)
    assert given[1].timestamp()[1] >= before


def test_a_callback_has_the_brokers_time_where_it_is_the_records(
    begun: TransactionalProducer,
) -> None:
    given: list[Message] = []
    brokers(begun).appended = 1_800_000_000_000
    begun.produce("t", "v", timestamp=5, on_delivery=lambda _, m: given.append(m))
    begun.flush()
    assert given[0].timestamp() == (TIMESTAMP_LOG_APPEND_TIME, 1_800_000_000_000)


def test_callbacks_tell_what_was_refused_what_was_on_its_way_and_what_was_never_sent(
    begun: TransactionalProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = Reports()
    begun.produce("t", b"refused", partition=0, on_delivery=reports)
    begun.produce("u", b"arrived", partition=0, on_delivery=reports)
    brokers(begun).codes = [10]
    brokers(begun).refuse["flush"] = [Refusal(10)]
    with pytest.raises(AbortRequired):
        begun.flush()
    begun.abort_transaction()
    assert reports == [(10, 0, None, b"refused"), (0, 0, 0, b"arrived")]
    del reports[:]
    begun.begin_transaction()
    monkeypatch.setattr(module, "BUFFER_BYTES", 3)
    begun.produce("t", b"sent", partition=1, on_delivery=reports)
    monkeypatch.setattr(module, "BUFFER_BYTES", 1000)
    begun.produce("t", b"kept", partition=2, on_delivery=reports)
    assert begun.poll(0) == 0
    begun.abort_transaction()
    assert reports == [
        (KafkaError._PURGE_INFLIGHT, 1, None, b"sent"),
        (KafkaError._PURGE_QUEUE, 2, None, b"kept"),
    ]


def test_flush_and_commit_wait_no_longer_than_they_are_told_and_lose_nothing(
    begun: TransactionalProducer,
) -> None:
    begun.produce("t", b"x")
    batches = brokers(begun)
    batches.unacknowledged = 1
    batches.refuse["flush"] = [Unacknowledged("late"), Unacknowledged("late")]
    assert begun.flush(0.01) == 1
    with pytest.raises(RequestFailed, match=r"not acknowledged after 0\.01 s: 1 record"):
        begun.commit_transaction(0.01)
    batches.unacknowledged = 0
    begun.commit_transaction(0.01)
    assert (batches.calls.count("send"), batches.calls.count("commit")) == (1, 1)


def test_a_topic_that_is_not_there_in_time_keeps_its_records_for_the_next_flush(
    begun: TransactionalProducer,
) -> None:
    begun.produce("t", b"x")
    brokers(begun).refuse["partitions"] = [Unacknowledged()]
    assert (begun.flush(0), begun.flush(5)) == (1, 0)
    assert brokers(begun).sent


@pytest.mark.parametrize("end", ["fenced", "closed"])
def test_callbacks_that_are_left_are_called_when_the_producer_ends(
    begun: TransactionalProducer, end: str
) -> None:
    reports = Reports()
    begun.produce("t", b"x", on_delivery=reports)
    if end == "fenced":
        brokers(begun).refuse["partitions"] = [Refusal(90)]
        with pytest.raises(ProducerFenced):
            begun.commit_transaction()
        assert (len(begun), begun.poll(0), len(begun)) == (1, 1, 0)
    else:
        begun.close()
    assert [code for code, *_ in reports] == [KafkaError._PURGE_QUEUE]
    begun.close()
    assert len(reports) == 1


def test_what_a_callback_raises_is_raised_and_the_transaction_can_still_be_committed(
    begun: TransactionalProducer,
) -> None:
    reports = Reports()

    def fails(*_: Any) -> None:
        raise LookupError("of the program")

    begun.produce("t", b"1", on_delivery=fails)
    begun.produce("t", b"2", on_delivery=reports)
    with pytest.raises(LookupError):
        begun.commit_transaction()
    assert "commit" not in brokers(begun).calls
    begun.commit_transaction()
    assert (len(reports), brokers(begun).calls.count("commit")) == (1, 1)


def test_a_callback_may_produce_and_may_abort(begun: TransactionalProducer) -> None:
    begun.produce(
        "t", b"1", partition=0, on_delivery=lambda *_: begun.produce("t", b"2", partition=0)
    )
    begun.commit_transaction()
    assert [record.value for record in brokers(begun).sent[TopicPartition("t", 0)]] == [b"1", b"2"]
    begun.begin_transaction()
    begun.produce("t", b"3", on_delivery=lambda *_: begun.abort_transaction())
    with pytest.raises(KafkaException, match="no transaction was begun"):
        begun.commit_transaction()
    assert brokers(begun).calls.count("commit") == 1


def test_poll_with_time_sends_what_has_a_callback_and_nothing_else(
    begun: TransactionalProducer,
) -> None:
    begun.produce("t", b"nobody asks")
    assert (begun.poll(1.0), brokers(begun).sent) == (0, {})
    reports = Reports()
    begun.produce("t", b"asks", on_delivery=reports)
    assert (begun.poll(0), begun.poll(1.0), len(reports)) == (0, 1, 1)


def test_flush_outside_of_a_transaction_has_nothing_to_send(made: TransactionalProducer) -> None:
    made.init_transactions()
    assert made.flush() == 0
    assert "flush" not in brokers(made).calls


# ------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("problem", "code", "said"),
    [
        (Refusal(29, topic="t"), 29, "topic t: Write and Describe on this Topic are needed"),
        (Refusal(53), 53, "Write on this TransactionalId is needed"),
        (Refusal(30), 30, "Read on this Group is needed"),
        (
            Refusal(3, topic="t", said="t has 2 partitions"),
            3,
            "topic t: t has 2 partitions: create it",
        ),
        (
            Refusal(10, lambda n: f"record {n}", alone="t", topic="t"),
            10,
            "record 0 for topic t: set message.max.bytes",
        ),
        (
            Refusal(87, lambda n: f"record {n}", 4, "no key", topic="t"),
            87,
            "record 4 for topic t: no key",
        ),
        (Refusal(9999), 9999, "could not do it"),
        (
            TimeoutError("timed out"),
            KafkaError._TIMED_OUT,
            "a broker did not answer within socket.timeout.ms",
        ),
        (ConnectionResetError("reset"), KafkaError._TRANSPORT, "could not do it: reset"),
        (
            NotAuthorized("no", why="password"),
            KafkaError._AUTHENTICATION,
            "no: password; check the sasl.… properties",
        ),
        (NotTrusted("no"), KafkaError._SSL, "no; check security.protocol and the ssl.… properties"),
        (
            Unreachable("no", next_step="x"),
            KafkaError._TRANSPORT,
            "no; check bootstrap.servers and the network",
        ),
    ],
)
def test_an_error_says_what_failed_about_what_and_what_to_do(
    problem: Exception, code: int, said: str
) -> None:
    found = error_of(problem, "do it")
    assert found.code() == code
    assert found.str().startswith("could not do it: ")
    assert said in found.str()


def test_a_record_that_is_too_large_is_named(begun: TransactionalProducer) -> None:
    with pytest.raises(KafkaException) as told:
        begun.produce("t", b"x" * 1_000_000, "k" * 100, headers={"h": "v"})
    assert "a record for topic t with the key b'kkk" in error(told).str()
    assert "…' has" not in error(told).str()
    assert "has 1000112 bytes" in error(told).str()
    with pytest.raises(KafkaException, match="with no key has"):
        begun.produce("t", b"x" * 1_000_000)


def test_a_block_that_fails_aborts_what_it_began_and_closes(made: TransactionalProducer) -> None:
    def fails() -> None:
        with made:
            made.init_transactions()
            made.begin_transaction()
            raise LookupError("of the program")

    with pytest.raises(LookupError):
        fails()
    assert brokers(made).calls[-2:] == ["abort", "close"]
    with pytest.raises(ProducerFailed, match="closed"):
        made.begin_transaction()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"acks": "1"}, "acks must be all"),
        ({"enable.idempotence": False}, "enable.idempotence must be true"),
        ({"partitioner": "consistent_random"}, "partitioner must be murmur2_random"),
        ({"message.timeout.ms": 5}, "message.timeout.ms is not a property of this producer"),
        ({"compression.type": "brotli"}, "compression.type brotli is not supported"),
        ({"batch.size": "many"}, "batch.size must be a positive number"),
        ({"transactional.id": ""}, "transactional.id is missing"),
        ({"bootstrap.servers": ""}, "bootstrap.servers is missing"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
            "sasl.username is missing, which PLAIN needs",
        ),
        (
            {"security.protocol": "SSL", "ssl.ca.location": "/nowhere"},
            "ssl.ca.location cannot be read: /nowhere: No such file",
        ),
    ],
)
def test_a_property_that_cannot_be_heeded_is_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(KafkaException, match=said) as told:
        settings(CONFIG | more)
    assert error(told).code() == KafkaError._INVALID_ARG


def test_where_its_libraries_are_not_installed_it_says_what_installs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs crc32c: pip install 'connectctl\[producer\]'"):
        TransactionalProducer(CONFIG)


def test_properties_of_connections_and_of_librdkafkas_queues_are_taken() -> None:
    found = settings(
        CONFIG
        | dict.fromkeys(TUNING, "1")
        | {
            "sasl.password": "secret",
            "acks": -1,
            "enable.idempotence": True,
            "message.max.bytes": "5000",
        }
    )
    assert found.connection == {"bootstrap.servers": "localhost:1", "sasl.password": "secret"}
    assert (found.batch_bytes, found.largest, found.transaction_timeout_ms) == (5000, 5000, 60_000)
    assert "secret" not in repr(found)
