"""Offsets of a group in a transaction (KIP-447)."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer
from connectctl.ops.clients.kafka_protocol import batch_producer
from connectctl.ops.clients.kafka_protocol.refusals import Refusal
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord, TransactionBatch
from connectctl.ops.task_runtime.task.transactional_producer import (
    Fenced,
    Rebalancing,
    TaskProducer,
)
from documentation import ROOT, blocks
from fakes.faultproxy import ADD_OFFSETS, END_TXN, TXN_OFFSET_COMMIT, FaultProxy
from live.groupslots import LONG, PATIENCE, Generation, Slots
from live.real import create_topic, eventually, write
from otherbrokers import VERSION_2

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
QUICK = {"socket.timeout.ms": 1500}
PAGE: Path = ROOT / "docs/how-to/transactional-producer.md"


def begun(slots: Slots, number: int) -> TaskProducer:
    producer = slots.producer(number)
    producer.initialise(PATIENCE)
    producer.begin()
    return producer


def code_of(error: BaseException) -> int:
    """What the broker said."""
    assert isinstance(error.__cause__, Refusal)
    return error.__cause__.code


def test_offsets_of_an_old_generation_and_of_a_foreign_member_are_refused(
    cluster: Sandbox,
) -> None:
    with Slots.new(cluster) as slots:
        member = slots.joined(0)
        old = Generation(member.metadata)
        polled = slots.polling(member)
        slots.polling(slots.joined(1))
        eventually(lambda: len(member.assignment) == 2)
        eventually(lambda: polled.generations[member] > old.number)
        new = polled.generations[member]
        foreign = Generation.of(slots.settings.group, "nobody", new)
        for who, code in ((old, Code.ILLEGAL_GENERATION), (foreign, Code.UNKNOWN_MEMBER_ID)):
            producer = begun(slots, 7)
            with pytest.raises(Rebalancing) as told:
                producer.send_group_offsets({min(slots.places): GroupOffset(1)}, who, PATIENCE)  # type: ignore[arg-type]
            assert code_of(told.value) == code
            producer.abort(PATIENCE)  # and it can be used for the next generation
            producer.begin()
            producer.discard()
        assert slots.committed() == {}


def test_an_attempt_whose_instance_id_is_taken_is_fenced_also_in_its_transaction(
    cluster: Sandbox,
) -> None:
    with Slots.new(cluster) as slots:
        older = slots.joined(0)
        slots.polling(slots.joined(0))
        producer = begun(slots, 7)
        with pytest.raises(Fenced):
            producer.send_group_offsets({min(slots.places): GroupOffset(1)}, older, PATIENCE)
        producer.discard()
        assert slots.committed() == {}


def test_offsets_are_there_with_the_records_behind_the_commit_and_not_before(
    cluster: Sandbox,
) -> None:
    with Slots.new(cluster) as slots:
        member = slots.joined(0)
        offsets = {place: GroupOffset(5 + place.partition) for place in slots.places}

        def committed() -> dict[TopicPartition, int]:
            return {place: each.offset for place, each in member.stable(slots.places).items()}

        producer = begun(slots, 0)
        producer.send(TransactionBatch([ProducerRecord(slots.target, None, b"0:0")]))
        producer.send_group_offsets(offsets, member, PATIENCE)
        assert (slots.committed(), slots.seen()) == ({}, [])
        assert slots.ask(lambda c: c.stable_offsets(slots.places)) == ({}, slots.places)  # pending
        producer.commit(PATIENCE)
        eventually(lambda: slots.seen() == ["0:0"])
        assert committed() == {place: each.offset for place, each in offsets.items()}
        producer.begin()
        producer.send_group_offsets({min(slots.places): GroupOffset(99)}, member, PATIENCE)
        producer.abort(PATIENCE)
        assert committed() == {place: each.offset for place, each in offsets.items()}
        producer.discard()


@pytest.fixture
def proxy(cluster: Sandbox) -> Iterator[FaultProxy]:
    proxy = FaultProxy(cluster.bootstrap_servers)
    yield proxy
    proxy.close()


@pytest.mark.drawn(each="api")
@pytest.mark.parametrize("api", [ADD_OFFSETS, TXN_OFFSET_COMMIT, END_TXN])
@pytest.mark.parametrize("new", [False, True])
def test_what_comes_late_finds_a_newer_epoch_and_tears_nothing(
    cluster: Sandbox,
    proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
    new: bool,
    api: int,
) -> None:
    """Under transaction version 2 (``new``) a group is added by its offsets, and a commit is
    repeated and answered.
    """
    if new and not VERSION_2:
        pytest.skip("the brokers of this run do not have transaction version 2")
    if not new:
        monkeypatch.setattr(batch_producer, "has_version_2", lambda wire: False)
    elif api == ADD_OFFSETS:
        api = TXN_OFFSET_COMMIT
    fault = proxy.hold(api)

    class Late(TaskProducer):
        """The held request arrives behind the first commit of the next instance."""

        def commit(self, patience: float) -> None:
            super().commit(patience)
            if fault.caught.is_set() and not fault.delivered.is_set():
                fault.release()

    with Slots.new(cluster) as slots:
        kafka = Kafka({"bootstrap.servers": proxy.bootstrap}, timeout=PATIENCE)
        opened = lambda: Late(kafka, slots.id_of(0), timeout_ms=30_000, properties=QUICK)  # noqa: E731
        slots.write()
        slot = slots.slot(0, open_producer=opened, columnar=new)
        eventually(fault.caught.is_set)
        eventually(lambda: slots.seen() == slots.each_once)
        slots.write()
        eventually(lambda: slots.seen() == slots.each_once)
        eventually(lambda: set(slots.committed().values()) == {10})
        assert fault.delivered.is_set()
        assert bool(slot.task.stats.doubts) is not (new and api == END_TXN)
        # Nothing is pending either: whoever comes next has stable offsets at once.
        stable = slots.stable()
        stable.limit = 0.0
        assert stable(slots.places)
        assert slots.seen() == slots.each_once


def test_columns_go_on_over_a_revocation_and_a_take_over_and_each_record_is_there_once(
    cluster: Sandbox,
) -> None:
    def opened(number: int) -> Any:
        return lambda: slots.producer(number)

    with Slots.new(cluster) as slots:
        slots.write()
        giving = slots.slot(0, interval=LONG, open_producer=opened(0), columnar=True)
        eventually(lambda: len(giving.read) == 20)
        taking = slots.slot(1, open_producer=opened(1), columnar=True)
        eventually(lambda: len(taking.assignment) == 2)
        eventually(lambda: slots.seen() == slots.each_once)
        slots.write()
        again = slots.slot(0, open_producer=opened(0), columnar=True)
        eventually(lambda: giving.ended)
        eventually(lambda: slots.seen() == slots.each_once)
        assert (giving.error, again.error, taking.task.stats.doubts) == (None, None, [])


def test_the_program_of_the_page_writes_each_record_once_behind_an_abort_and_a_lost_answer(
    cluster: Sandbox, proxy: FaultProxy
) -> None:
    (block,) = blocks(PAGE, "python")
    program: dict[str, Any] = {}
    exec(block.text, program)  # what the page shows
    name = secrets.token_hex(4)
    orders, invoices = (
        create_topic(cluster.bootstrap_servers, f"{each}-{name}", 2, "delete")
        for each in ("orders", "invoices")
    )
    client = {"bootstrap.servers": cluster.bootstrap_servers}
    write(cluster.bootstrap_servers, orders, *((str(n), str(n)) for n in range(1500)))

    class Program(Producer):  # type: ignore[misc]
        """Writes to the topic of this test, and gives its first offsets as of another member."""

        members: list[bytes]

        def produce(self, topic: str, *record: Any, **more: Any) -> None:
            assert topic == "invoices"
            super().produce(invoices, *record, **more)

        def send_offsets_to_transaction(self, positions: Any, member: bytes, *more: Any) -> None:
            self.members.append(member)
            if len(self.members) == 1:
                assert self.flush(300) == 0  # what is aborted has arrived
                member = Generation.of(name, "nobody", 1).metadata
            super().send_offsets_to_transaction(positions, member, *more)

    consumer = Consumer(program["READS"] | client | {"group.id": name})
    consumer.subscribe([orders])
    producer = Program(
        program["WRITES"]
        | {"bootstrap.servers": proxy.bootstrap, "transactional.id": name}
        | {"transaction.timeout.ms": 300_000}
    )
    producer.members = []
    fault = proxy.lose(END_TXN, 1)  # the first one is that of the abort
    program["run"](consumer, producer, 1500)
    committed = consumer.committed(consumer.assignment(), timeout=300)
    consumer.close()
    assert fault.caught.is_set()
    assert sum(each.offset for each in committed) == 1500
    image = Kafka(client, timeout=120).image([invoices], patience=60, superseded=True)[invoices]
    assert not image.held_back
    values = [int(r.value or b"") for r in (*image.latest, *image.superseded)]
    assert sorted(values) == list(range(1500))
