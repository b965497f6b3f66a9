"""The public producer on one broker: callbacks, quotas, sizes, time-outs, topics, and two programs
with one id.
"""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.producer import (
    AbortRequired,
    ProducerFailed,
    ProducerFenced,
    RequestFailed,
    TransactionalProducer,
)
from fakes.faultproxy import PRODUCE, TXN_OFFSET_COMMIT, FaultProxy
from live.clientquotas import quota
from live.publicproducer import GROUP, fields, insist, messages, seen, write_once
from live.real import create_topic, eventually
from otherbrokers import VERSION_2

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
METADATA, FIND_COORDINATOR, INIT = 3, 10, 22
FATAL_STEPS = ("flush", "commit", "abort", "offsets")


@pytest.fixture
def client(cluster: Sandbox) -> dict[str, Any]:
    return {"bootstrap.servers": cluster.bootstrap_servers}


@pytest.fixture
def topic(cluster: Sandbox) -> str:
    return create_topic(cluster.bootstrap_servers, f"public-{secrets.token_hex(4)}", 3, "delete")


@pytest.fixture
def opened(client: dict[str, Any], topic: str) -> Iterator[Callable[..., TransactionalProducer]]:
    made: list[TransactionalProducer] = []

    def one(**more: Any) -> TransactionalProducer:
        given = (
            client
            | {"transactional.id": topic}
            | {name.replace("_", "."): value for name, value in more.items()}
        )
        made.append(TransactionalProducer(given))
        made[-1].init_transactions(120)
        return made[-1]

    yield one
    for each in made:
        each.close()


class Reports:
    """Keeps what callbacks are given."""

    def __init__(self) -> None:
        self.delivered: list[Message] = []
        self.failed: list[tuple[int, Message]] = []

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            assert message.error() is None
            self.delivered.append(message)
        else:
            self.failed.append((error.code(), message))

    def codes(self) -> set[int]:
        return {code for code, _ in self.failed}


def error(told: pytest.ExceptionInfo[KafkaException]) -> Any:
    return told.value.args[0]


# ---------------------------------------------------------------------------------------- callbacks


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_callback_has_the_partition_and_the_offset_at_which_a_reader_finds_the_record(
    client: dict[str, Any], topic: str, opened: Callable[..., TransactionalProducer], codec: str
) -> None:
    producer, reports = opened(compression_type=codec, batch_size=2_000), Reports()
    # a segment with records of years ago alone is deleted
    began = int(time.time() * 1000) - 3_600_000
    for turn in range(3):
        producer.begin_transaction()
        for number in range(200):
            more: dict[str, Any] = {"on_delivery": reports} if number % 2 else {"callback": reports}
            if number % 3 == 0:
                more |= {
                    "timestamp": began + number,
                    "headers": [("n", str(number)), ("none", None)],
                }
            if number % 5 == 0:
                more |= {"partition": number % 3}
            key = None if number % 7 == 0 else f"k{number}"
            producer.produce(topic, f"{turn}-{number}", key, **more)
        producer.produce(topic, "nobody asks")
        if turn == 1:
            assert len(producer) == 201
            assert producer.flush() == 0
            assert len(reports.delivered) == 400
        producer.commit_transaction()
    assert (len(reports.delivered), len(producer), producer.poll(0)) == (600, 0, 0)
    there = messages(client, topic, 3)
    assert len(there) == 603
    for message in reports.delivered:
        assert fields(message) == fields(there[message.partition(), message.offset()])
    assert len({(m.partition(), m.offset()) for m in reports.delivered}) == 600
    for partition in range(3):
        of = [m.offset() for m in reports.delivered if m.partition() == partition]
        assert of == sorted(of)


def test_the_time_of_a_record_is_the_brokers_where_the_topic_says_so(
    client: dict[str, Any], topic: str, opened: Callable[..., TransactionalProducer]
) -> None:
    stamps = {"message.timestamp.type": "LogAppendTime"}
    other = create_topic(client["bootstrap.servers"], f"{topic}-log", 1, "delete", config=stamps)
    producer, reports = opened(), Reports()
    producer.begin_transaction()
    producer.produce(other, "x", timestamp=5, on_delivery=reports)
    producer.commit_transaction()
    (message,) = reports.delivered
    (there,) = messages(client, other, 1).values()
    assert message.timestamp() == there.timestamp()
    assert message.timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME


def test_callbacks_of_what_is_refused_or_aborted_have_the_reason_and_are_called_once(
    client: dict[str, Any], topic: str, opened: Callable[..., TransactionalProducer]
) -> None:
    small = create_topic(
        client["bootstrap.servers"], f"{topic}-s", 1, "delete", config={"max.message.bytes": "5000"}
    )
    producer, refused, others, aborted = opened(), Reports(), Reports(), Reports()
    producer.begin_transaction()
    producer.produce(topic, "acknowledged", on_delivery=others)
    producer.flush()
    producer.produce(small, "x" * 6000, "big", on_delivery=refused)
    with pytest.raises(
        AbortRequired, match=f"a record with the key b'big' and 6003 bytes for topic {small}"
    ):
        producer.commit_transaction()
    producer.abort_transaction()
    producer.begin_transaction()
    for _ in range(3):
        producer.produce(topic, "never sent", on_delivery=aborted)
    producer.abort_transaction()
    assert [(code, m.value()) for code, m in refused.failed] == [
        (KafkaError.MSG_SIZE_TOO_LARGE, b"x" * 6000)
    ]
    assert (len(others.delivered), others.failed) == (1, [])
    assert [code for code, _ in aborted.failed] == [KafkaError._PURGE_QUEUE] * 3
    assert seen(client, topic) == seen(client, small) == []


def test_a_callback_may_produce_and_what_it_raises_leaves_the_transaction_open(
    client: dict[str, Any], topic: str, opened: Callable[..., TransactionalProducer]
) -> None:
    producer = opened()

    def chain(_: Any, message: Message) -> None:
        if (number := int(message.value() or b"")) < 5:
            producer.produce(topic, str(number + 1), on_delivery=chain)

    def fails(*_: Any) -> None:
        raise LookupError("of the program")

    producer.begin_transaction()
    producer.produce(topic, "1", on_delivery=chain)
    producer.produce(topic, "9", on_delivery=fails)
    with pytest.raises(LookupError):
        producer.commit_transaction()
    producer.commit_transaction()
    assert seen(client, topic) == ["1", "2", "3", "4", "5", "9"]


def test_poll_waits_for_callbacks_where_it_is_given_time(
    topic: str, opened: Callable[..., TransactionalProducer]
) -> None:
    producer, reports = opened(), Reports()
    producer.begin_transaction()
    producer.produce(topic, "x", on_delivery=reports)
    assert (producer.poll(0), producer.poll(5.0), producer.poll(5.0)) == (0, 1, 0)
    assert len(reports.delivered) == 1
    producer.commit_transaction()


# --------------------------------------------------------------------------------- quotas and sizes


def test_a_quota_makes_transactions_slower_and_no_request_too_late(
    client: dict[str, Any], topic: str, opened: Callable[..., TransactionalProducer]
) -> None:
    with quota(client["bootstrap.servers"], topic, "producer_byte_rate", 50_000):
        producer = opened(client_id=topic, socket_timeout_ms=1500, batch_size=200_000)
        wanted: list[str] = []
        for number in range(10, 30):
            began = time.monotonic()
            names = [f"{number}-{record:03}" for record in range(8)]
            producer.begin_transaction()
            try:
                for name in names:
                    producer.produce(topic, name + "x" * 99_000, partition=0)
                producer.commit_transaction()
            except AbortRequired as e:
                # Until the first transaction, a loaded broker may not lead the new partition.
                if wanted or e.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
                    raise
                producer.abort_transaction()
                continue
            wanted += names
            # longer than a request may take: the broker has heard of the quota
            if time.monotonic() - began > 3.0:
                break
        else:
            pytest.fail("the quota was never met")
    assert [value[:6] for value in seen(client, topic)] == wanted


def test_records_up_to_the_limit_of_a_topic_fit_and_a_larger_one_is_named_and_left_out(
    client: dict[str, Any], topic: str, opened: Callable[..., TransactionalProducer]
) -> None:
    limit = 20_000
    small = create_topic(
        client["bootstrap.servers"],
        f"{topic}-s",
        1,
        "delete",
        config={"max.message.bytes": str(limit)},
    )
    producer = opened(message_max_bytes=limit)
    producer.begin_transaction()
    largest = 0
    for size in range(limit - 200, limit + 1):
        try:
            producer.produce(small, b"x" * size, f"key-{size}", headers={"h": "v"})
            largest = size
        except KafkaException as e:
            problem = e.args[0]
            assert problem.code() == KafkaError.MSG_SIZE_TOO_LARGE
            assert f"a record for topic {small} with the key b'key-{size}' has " in problem.str()
            assert f"message.max.bytes ({limit})" in problem.str()
    assert limit - 200 < largest < limit
    for number in range(2_000):  # several batches, of which none may be larger
        producer.produce(small, b"y" * 97, f"key-{number}")
    producer.commit_transaction()
    assert len(seen(client, small)) == 2_000 + largest - (limit - 200) + 1


def test_batches_that_are_larger_than_their_topic_takes_ask_for_an_abort_with_the_next_step(
    client: dict[str, Any], topic: str, opened: Callable[..., TransactionalProducer]
) -> None:
    small = create_topic(
        client["bootstrap.servers"],
        f"{topic}-s",
        1,
        "delete",
        config={"max.message.bytes": "20000"},
    )
    producer = opened()
    producer.begin_transaction()
    for _ in range(300):
        producer.produce(small, b"y" * 100)
    with pytest.raises(
        AbortRequired, match=f"topic {small}: set message.max.bytes, .*, to max.message.bytes"
    ):
        producer.commit_transaction()


# ---------------------------------------------------------------------------------------- time-outs


@pytest.mark.parametrize("api", [PRODUCE, TXN_OFFSET_COMMIT, METADATA])
def test_a_request_that_is_held_back_asks_for_an_abort_and_tears_nothing_when_it_arrives(
    client: dict[str, Any], topic: str, api: int
) -> None:
    proxy = FaultProxy(client["bootstrap.servers"])
    given = {
        "bootstrap.servers": proxy.bootstrap,
        "transactional.id": topic,
        "socket.timeout.ms": 700,
    }
    with TransactionalProducer(given) as producer:
        insist(lambda: producer.init_transactions(120))
        if api != METADATA:
            write_once(producer, topic, 0, range(3))
        fault = proxy.hold(api)
        producer.begin_transaction()
        with pytest.raises(AbortRequired) as told:
            _whole(producer, topic, "held")
        insist(producer.abort_transaction)
        producer.begin_transaction()
        producer.produce(topic, "next", partition=0)
        producer.flush()
        fault.release()
        producer.produce(topic, "next", partition=1)
        insist(producer.commit_transaction)
        assert error(told).code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
    proxy.close()
    assert seen(client, topic) == ([] if api == METADATA else ["0"] * 3) + ["next"] * 2


def _whole(producer: TransactionalProducer, topic: str, value: str) -> None:
    """All that a transaction is made of but its end."""
    for partition in range(3):
        producer.produce(topic, value, partition=partition)
    producer.flush()
    producer.send_offsets_to_transaction([TopicPartition(topic, 0, 1)], GROUP)


@pytest.mark.parametrize("api", [INIT, FIND_COORDINATOR])
def test_an_initialisation_that_is_held_back_is_asked_for_again(
    client: dict[str, Any], topic: str, api: int
) -> None:
    proxy = FaultProxy(client["bootstrap.servers"])
    given = {
        "bootstrap.servers": proxy.bootstrap,
        "transactional.id": topic,
        "socket.timeout.ms": 700,
    }
    fault = proxy.hold(api)
    with TransactionalProducer(given) as producer:
        insist(lambda: producer.init_transactions(120))
        assert fault.caught.is_set()
        producer.begin_transaction()
        producer.produce(topic, "1", partition=0)
        with suppress(ProducerFenced):  # the one that was late may be taken for another producer
            producer.flush()
            fault.release()
            insist(producer.commit_transaction)
    proxy.close()
    assert seen(client, topic) in ([], ["1"])


# --------------------------------------------------------------------------------- nobody, no topic


def test_where_no_broker_is_reachable_the_error_says_so_and_what_to_check() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    given = {"bootstrap.servers": address, "transactional.id": "x", "socket.timeout.ms": 1000}
    with TransactionalProducer(given) as producer:
        with pytest.raises(RequestFailed) as told:
            producer.init_transactions(1)
        assert (error(told).code(), error(told).retriable()) == (KafkaError._TRANSPORT, True)
        assert f"Kafka at {address} does not answer" in error(told).str()
        assert error(told).str().endswith("check bootstrap.servers and the network")


def test_who_takes_connections_and_never_answers_is_no_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        given = {"bootstrap.servers": address, "transactional.id": "x", "socket.timeout.ms": 1000}
        with TransactionalProducer(given) as producer, pytest.raises(RequestFailed, match="check"):
            producer.init_transactions(1)


def test_a_topic_that_is_not_there_is_made_where_brokers_make_topics(
    client: dict[str, Any], topic: str, opened: Callable[..., TransactionalProducer]
) -> None:
    producer = opened()
    assert write_once(producer, f"{topic}-new", 7, [0]) == 0
    assert seen(client, f"{topic}-new") == ["7"]


def test_a_topic_that_nobody_makes_asks_for_an_abort_when_it_was_waited_for(
    state_home: Path,
) -> None:
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    none = {"auto.create.topics.enable": "false"}
    broker = up(SandboxSpec(name="notopics", workers=0, extra_broker_properties=none))
    client = {"bootstrap.servers": broker.bootstrap_servers}
    given = {"transactional.id": "x", "topic.metadata.propagation.max.ms": 1000}
    try:
        there = create_topic(broker.bootstrap_servers, "there", 3, "delete")
        with TransactionalProducer(client | given) as producer:
            producer.init_transactions(120)
            producer.begin_transaction()
            producer.produce("missing", "x")
            with pytest.raises(AbortRequired, match="topic missing: create it") as told:
                producer.commit_transaction()
            assert error(told).code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            producer.abort_transaction()
            write_once(producer, there, 1, range(3))
        assert seen(client, there) == ["1"] * 3
    finally:
        down("notopics")


@pytest.mark.parametrize("name", ["two words", "", "x" * 250, "."])
def test_a_topic_that_cannot_be_asks_for_an_abort_at_once(
    opened: Callable[..., TransactionalProducer], name: str
) -> None:
    producer = opened()
    producer.begin_transaction()
    producer.produce(name, "x")
    began = time.monotonic()
    with pytest.raises(AbortRequired, match="a topic's name has up to 249 letters") as told:
        producer.commit_transaction()
    assert error(told).code() == KafkaError.TOPIC_EXCEPTION
    assert time.monotonic() - began < 30  # and not as long as a new topic is waited for
    producer.abort_transaction()


def test_a_topic_that_is_deleted_asks_for_an_abort_behind_which_others_are_written(
    client: dict[str, Any], topic: str, opened: Callable[..., TransactionalProducer]
) -> None:
    gone = create_topic(client["bootstrap.servers"], f"{topic}-gone", 1, "delete")
    producer = opened()
    write_once(producer, gone, 1, [0])
    admin = AdminClient(client)
    admin.delete_topics([gone])[gone].result(300)
    producer.begin_transaction()
    producer.produce(topic, "lost", partition=0)
    producer.produce(gone, "lost", partition=0)
    with pytest.raises(AbortRequired):
        producer.commit_transaction()
    producer.abort_transaction()
    write_once(producer, topic, 2, range(3))
    assert seen(client, topic) == ["2"] * 3


# ------------------------------------------------------------------------------- fenced and expired


def _at(step: str, producer: TransactionalProducer, topic: str) -> None:
    if step in ("flush", "abort"):
        producer.produce(topic, "older", partition=1)
    if step == "offsets":
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, 1)], GROUP)
    elif step == "flush":
        producer.flush()
    elif step == "commit":
        producer.commit_transaction()
    else:
        producer.abort_transaction()


@pytest.mark.parametrize("step", FATAL_STEPS)
def test_the_older_of_two_programs_is_told_that_it_is_fenced_whatever_it_does(
    client: dict[str, Any], topic: str, opened: Callable[..., TransactionalProducer], step: str
) -> None:
    older, reports = opened(), Reports()
    older.begin_transaction()
    older.produce(topic, "older", partition=0)
    older.flush()
    newer = opened()
    older.produce(topic, "older", partition=2, on_delivery=reports)
    with pytest.raises(ProducerFenced, match="another producer has this transactional id") as told:
        _at(step, older, topic)
    assert error(told).fatal()
    for call in (
        older.flush,
        older.commit_transaction,
        older.abort_transaction,
        older.begin_transaction,
    ):
        with pytest.raises(ProducerFenced):
            call()
    older.poll(0)
    older.close()
    assert (len(reports.delivered), len(reports.failed)) == (0, 1)
    write_once(newer, topic, 3, range(3))
    assert seen(client, topic) == ["3"] * 3


def test_a_transaction_that_was_open_for_too_long_is_aborted_and_told_to_be_so_or_goes_on_behind_an_abort(
    client: dict[str, Any], topic: str, opened: Callable[..., TransactionalProducer]
) -> None:
    made = {
        step: opened(transactional_id=f"{topic}-{step}", transaction_timeout_ms=1000)
        for step in FATAL_STEPS
    }
    for producer in made.values():
        producer.begin_transaction()
        producer.produce(topic, "late", partition=0)
        producer.flush()
    reader = Kafka(client, timeout=60)
    eventually(lambda: not reader.image([topic], patience=1, superseded=True)[topic].held_back)
    if VERSION_2:
        _at("abort", made["abort"], topic)
        write_once(made.pop("abort"), topic, 4, range(3))
    for step, producer in made.items():
        with pytest.raises(
            ProducerFailed, match=r"its transaction exceeded transaction\.timeout\.ms"
        ):
            _at(step, producer, topic)
    assert seen(client, topic) == ["4"] * 3 * VERSION_2


def test_methods_may_be_called_from_several_threads(
    client: dict[str, Any], topic: str, opened: Callable[..., TransactionalProducer]
) -> None:
    producer, reports = opened(batch_size=3_000), Reports()
    producer.begin_transaction()

    def some(number: int) -> None:
        for record in range(500):
            producer.produce(topic, f"{number}-{record:03}", on_delivery=reports)
            if record % 100 == 0:
                producer.flush()

    threads = [threading.Thread(target=some, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    producer.commit_transaction()
    assert seen(client, topic) == [f"{n}-{r:03}" for n in range(4) for r in range(500)]
    assert len(reports.delivered) == 2_000
