"""The public transactional producer on a real broker: the program of its page, errors, and what the
network does to it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from connectctl.ops.clients.kafka_protocol import batch_producer
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.producer import (
    AbortRequired,
    ProducerFailed,
    ProducerFenced,
    RequestFailed,
    TransactionalProducer,
)
from documentation import ROOT, blocks
from fakes.faultproxy import ADD_PARTITIONS, END_TXN, PRODUCE, TXN_OFFSET_COMMIT, FaultProxy
from live.publicproducer import seen
from live.real import create_topic, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
PAGE: Path = ROOT / "docs/how-to/transactional-producer.md"


@pytest.fixture
def proxy(cluster: Sandbox) -> Iterator[FaultProxy]:
    proxy = FaultProxy(cluster.bootstrap_servers)
    yield proxy
    proxy.close()


@pytest.fixture
def topic(cluster: Sandbox) -> str:
    return create_topic(cluster.bootstrap_servers, f"producer-{secrets.token_hex(4)}", 2, "delete")


@pytest.fixture
def opened(proxy: FaultProxy, topic: str) -> Iterator[Callable[..., TransactionalProducer]]:
    made: list[TransactionalProducer] = []

    def one(**more: Any) -> TransactionalProducer:
        given = {
            "bootstrap.servers": proxy.bootstrap,
            "transactional.id": topic,
            "socket.timeout.ms": 1500,
        }
        made.append(
            TransactionalProducer(
                given | {name.replace("_", "."): value for name, value in more.items()}
            )
        )
        made[-1].init_transactions(120)
        if len(made) == 1:
            eventually(lambda: is_led(made[0], topic))
        return made[-1]

    yield one
    for each in made:
        each.close()


def client(cluster: Sandbox) -> dict[str, Any]:
    return {"bootstrap.servers": cluster.bootstrap_servers}


def is_led(producer: TransactionalProducer, topic: str) -> bool:
    """Whether the new topic's leader takes records; before version 2 it is not asked again by
    itself.
    """
    write(producer, topic, "nobody sees this")
    try:
        producer.flush()
    except AbortRequired:
        return False
    finally:
        producer.abort_transaction()
    return True


def write(producer: TransactionalProducer, topic: str, name: str) -> None:
    """A transaction of two partitions, not ended yet."""
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce(topic, name, partition=partition)


def test_the_program_of_the_page_writes_each_record_once_whatever_is_late_or_lost(
    cluster: Sandbox, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = blocks(PAGE, "python")[0]
    program: dict[str, Any] = {}
    exec(block.text, program)  # what the page shows
    name = secrets.token_hex(4)
    orders, invoices = (
        create_topic(cluster.bootstrap_servers, f"{n}-{name}", 2, "delete") for n in ("o", "i")
    )
    writer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(3000):
        writer.produce(orders, b"%d" % number, b"%d" % number)
    writer.flush(300)
    own = {
        "bootstrap.servers": proxy.bootstrap,
        "transactional.id": name,
        "socket.timeout.ms": 1500,
    }

    class Renamed(TransactionalProducer):
        """Writes to a topic of this test."""

        def produce(self, topic: str, *record: Any, **more: Any) -> None:
            assert topic == "invoices"
            super().produce(invoices, *record, **more)

    reads = {"group.id": name, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, **reads})
    consumer.subscribe([orders])
    faults = [proxy.lose(END_TXN, 1), proxy.lose(PRODUCE, 4), proxy.lose(TXN_OFFSET_COMMIT, 3)]
    with Renamed(own) as producer:
        producer.init_transactions(120)
        program["run"](consumer, producer, 3000)
    consumer.close()
    assert [fault.caught.is_set() for fault in faults] == [True] * 3
    assert seen(client(cluster), invoices) == sorted(str(number) for number in range(3000))


def test_the_callback_of_the_page_tells_where_its_record_is(
    cluster: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"invoices-{secrets.token_hex(4)}"
    topic = create_topic(cluster.bootstrap_servers, name, 1, "delete")
    first, second = blocks(PAGE, "python")
    program: dict[str, Any] = {}
    exec(first.text, program)  # what the page shows
    program["BOOTSTRAP"] = cluster.bootstrap_servers
    assert "invoices" in second.text  # in which another page may have written
    exec(second.text.replace("invoices", topic), program)
    assert capsys.readouterr().out == f"{topic}-0 at 0\n"
    assert seen(client(cluster), topic) == ["42"]


def test_what_is_committed_is_seen_and_what_is_aborted_is_not(
    cluster: Sandbox, topic: str, opened: Callable[..., TransactionalProducer]
) -> None:
    producer = opened(compression_type="zstd")
    for number in range(6):
        write(producer, topic, str(number))
        if number == 4:
            producer.flush()
        producer.commit_transaction() if number % 2 else producer.abort_transaction()
    assert seen(client(cluster), topic) == ["1", "1", "3", "3", "5", "5"]


def test_the_newer_of_two_producers_fences_the_older(
    cluster: Sandbox, topic: str, opened: Callable[..., TransactionalProducer]
) -> None:
    older = opened()
    write(older, topic, "older")
    older.flush()
    newer = opened()
    write(newer, topic, "newer")
    with pytest.raises(ProducerFenced):
        older.commit_transaction()
    newer.commit_transaction()
    assert seen(client(cluster), topic) == ["newer", "newer"]


def test_a_commit_that_is_held_back_is_called_again_and_the_late_one_ends_nothing(
    cluster: Sandbox, proxy: FaultProxy, topic: str, opened: Callable[..., TransactionalProducer]
) -> None:
    producer = opened()
    write(producer, topic, "0")
    fault = proxy.hold(END_TXN)
    with pytest.raises(RequestFailed):
        producer.commit_transaction(timeout=0.1)
    producer.commit_transaction()
    producer.begin_transaction()
    producer.produce(topic, "1", partition=0)
    producer.flush()
    fault.release()
    producer.produce(topic, "1", partition=1)
    producer.abort_transaction()
    write(producer, topic, "2")
    producer.commit_transaction()
    assert seen(client(cluster), topic) == ["0", "0", "2", "2"]


@pytest.mark.drawn
@pytest.mark.parametrize("new", [True, False])
def test_records_that_are_held_back_ask_for_an_abort_and_are_in_no_later_transaction(
    cluster: Sandbox,
    proxy: FaultProxy,
    topic: str,
    opened: Callable[..., TransactionalProducer],
    monkeypatch: pytest.MonkeyPatch,
    new: bool,
) -> None:
    if not new:
        monkeypatch.setattr(batch_producer, "has_version_2", lambda wire: False)
    producer = opened()
    write(producer, topic, "0")
    producer.commit_transaction()
    for name, api in (("1", PRODUCE), ("2", PRODUCE if new else ADD_PARTITIONS)):
        fault = proxy.hold(api)
        write(producer, topic, name)
        with pytest.raises(AbortRequired):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.produce(topic, "next", partition=0)
        producer.flush()
        fault.release()
        producer.produce(topic, "next", partition=1)
        producer.commit_transaction()
    assert seen(client(cluster), topic) == ["0", "0", "next", "next", "next", "next"]


def test_before_version_2_a_commit_without_an_answer_is_read_behind_the_next_initialisation(
    cluster: Sandbox,
    proxy: FaultProxy,
    topic: str,
    opened: Callable[..., TransactionalProducer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_producer, "has_version_2", lambda wire: False)
    producer = opened()
    write(producer, topic, "0")
    proxy.lose(END_TXN)
    with pytest.raises(ProducerFailed):
        producer.commit_transaction()
    opened()
    assert seen(client(cluster), topic) == ["0", "0"]


def test_a_record_that_its_topic_does_not_take_asks_for_an_abort(
    cluster: Sandbox, topic: str, opened: Callable[..., TransactionalProducer]
) -> None:
    producer = opened(message_max_bytes=5_000_000)
    producer.begin_transaction()
    producer.produce(topic, b"x" * 2_000_000)
    with pytest.raises(AbortRequired) as told:
        producer.commit_transaction()
    assert told.value.args[0].name() == "MSG_SIZE_TOO_LARGE"
    producer.abort_transaction()
    write(producer, topic, "fits")
    producer.commit_transaction()
    with pytest.raises(AbortRequired, match="has 2 partitions"):
        _to_partition(producer, topic, 7)
    assert seen(client(cluster), topic) == ["fits", "fits"]


def _to_partition(producer: TransactionalProducer, topic: str, partition: int) -> None:
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=partition)
    producer.flush()


def test_a_transaction_that_is_open_for_too_long_is_aborted_and_its_producer_is_told(
    cluster: Sandbox, topic: str, opened: Callable[..., TransactionalProducer]
) -> None:
    producer = opened(transaction_timeout_ms=1000)
    write(producer, topic, "late")
    producer.flush()
    reader = Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
    eventually(lambda: not reader.image([topic], patience=1, superseded=True)[topic].held_back)
    with pytest.raises(KafkaException) as told:
        producer.commit_transaction()
    assert isinstance(told.value, ProducerFailed)
    assert seen(client(cluster), topic) == []
