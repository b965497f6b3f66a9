"""The kernel on a real broker: what readers with read_committed see, whoever is killed, fenced or
late.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from connectctl.ops.clients.kafka_protocol.batch_fetcher import BatchFetcher
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.compression import CODECS
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.kafka.record_batch_encoder import RecordColumns
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.spi.transaction_batch import (
    ColumnBatch,
    EndReason,
    Event,
    ProducerRecord,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.committed_offsets import CommittedOffsets, OffsetStore
from connectctl.ops.task_runtime.task.global_offsets_writer import GlobalOffsetsWriter
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from fakes.openfiles import many_open_files
from live.clientquotas import quota
from live.numbersource import Numbers, Place
from live.real import eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live


@pytest.fixture
def place(cluster: Sandbox) -> Place:
    return Place(cluster)


@pytest.mark.parametrize("strict", [False, True])
def test_every_record_is_there_once_and_a_second_run_finds_nothing_to_do(
    place: Place, strict: bool
) -> None:
    first = place.kernel(strict=strict).run(Numbers(place, 40))
    again = place.kernel().run(Numbers(place, 40))
    assert (first.reason, first.stats.records, first.stats.transactions) == (EndReason.ENDED, 40, 4)
    assert (again.reason, again.stats.records) == (EndReason.ENDED, 0)
    assert place.seen() == list(range(40))
    assert place.stored() == {"next": 40}


def test_records_are_written_and_fetched_however_many_files_are_open(place: Place) -> None:
    with many_open_files():
        assert place.kernel().run(Numbers(place, 20)).stats.records == 20
        reader = BatchFetcher(place.kafka.client, timeout=30, committed=True)
        reader.begin(dict.fromkeys([TopicPartition(place.topic, n) for n in range(3)], 0))
        found = 0
        while reader.has_more:
            found += sum(len(part.batches) for part in reader.fetch(1.0))
        reader.close()
    assert found


def test_of_two_attempts_of_one_task_the_older_is_fenced_and_nothing_is_there_twice(
    place: Place,
) -> None:
    newer = []

    def overtake(number: int) -> None:
        if number == 20:
            newer.append(place.kernel().run(Numbers(place, 60)))

    older = place.kernel().run(Numbers(place, 60, each=overtake))
    assert (older.reason, newer[0].reason) == (EndReason.FENCED, EndReason.ENDED)
    assert place.seen() == list(range(60))


def test_one_that_dies_inside_a_transaction_leaves_nothing_of_it(place: Place) -> None:
    dying = place.handle()
    dying.initialise(30)
    dying.begin()
    dying.send(
        TransactionBatch(records=[ProducerRecord(place.topic, None, b"%d" % n) for n in range(5)])
    )
    dying.send_offsets(place.offsets, {place.key: b'{"next":5}'})
    assert place.kernel().run(Numbers(place, 20)).reason is EndReason.ENDED
    assert place.seen() == list(range(20))


def test_offsets_of_aborted_records_are_committed_without_them(place: Place) -> None:
    class Choosy(Numbers):
        def batch(self) -> TransactionBatch | None:
            step = super().batch()
            return step and TransactionBatch(
                step.records, step.record_batches, step.offsets, abort=self._next == 20
            )

    ended = place.kernel().run(Choosy(place, 40))
    assert (ended.stats.aborted, ended.stats.records) == (1, 30)
    assert place.seen() == [n for n in range(40) if not 10 <= n < 20]
    assert place.stored() == {"next": 40}


@pytest.mark.parametrize("at", ["poll", "commit"])
def test_an_exception_of_the_source_or_of_a_commit_leaves_no_transaction_open(
    place: Place, at: str
) -> None:
    """Its coordinator would abort it after transaction.timeout.ms, which is longer here than the
    test waits.
    """

    def ends() -> list[tuple[int, int]]:
        extents = place.kafka.extents([place.topic, place.offsets]).values()
        return [(each.stable, each.end) for by in extents for each in by.values()]

    class Failing(Numbers):
        def next(self) -> Event:
            self._next += 1
            if self._next > 4 and at == "poll":
                eventually(lambda: any(end for _, end in ends()))  # the transaction has begun
                raise ZeroDivisionError
            columns = ColumnBatch(place.topic, RecordColumns(pa.array([bytes(600_000)] * 4)))
            return TransactionBatch(
                record_batches=[columns], offsets={place.key: b"{}"}, more=self._next <= 4
            )

    if at == "commit":
        configure_topic(place, place.offsets, "max.message.bytes", "1")
    with pytest.raises((ZeroDivisionError, ConnectctlError)):
        place.kernel(open_producer=lambda: place.handle(timeout_ms=600_000)).run(Failing(place, 60))
    eventually(lambda: all(stable == end for stable, end in ends()), deadline=300)
    assert place.seen() == []


def test_a_record_that_no_broker_takes_ends_it_and_leaves_nothing(place: Place) -> None:
    class Large(Numbers):
        def batch(self) -> TransactionBatch | None:
            step = super().batch()
            return step and TransactionBatch(
                [ProducerRecord(place.topic, None, bytes(3_000_000))],
                step.record_batches,
                step.offsets,
            )

    with pytest.raises(ConnectctlError, match="write its records"):
        place.kernel().run(Large(place, 20))
    assert place.seen() == []
    assert place.stored() is None


def test_a_quota_makes_transactions_slower_and_no_request_too_late(place: Place) -> None:
    place.kernel().run(Numbers(place, 40))  # behind which every partition has a leader
    given = {"client.id": place.topic, "socket.timeout.ms": 1500, "batch.size": 200_000}
    handle = TaskProducer(
        place.kafka, f"g-{place.connector}-0", timeout_ms=300_000, properties=given
    )
    wanted = list(range(40))
    with quota(place.kafka.bootstrap, place.topic, "producer_byte_rate", 50_000):
        handle.initialise(120)
        for number in range(40, 60):
            began = time.monotonic()
            handle.begin()
            value = (b"%d" % number).ljust(99_000)
            handle.send(TransactionBatch([ProducerRecord(place.topic, None, value, 0)] * 8))
            handle.commit(120)
            wanted += [number] * 8
            # longer than a request may take: the broker has heard of the quota
            if time.monotonic() - began > 3.0:
                break
        else:
            pytest.fail("the quota was never met")
        handle.discard()
    assert place.seen() == wanted


def test_the_secondary_is_read_where_the_primary_says_nothing_and_written_behind_it(
    place: Place,
) -> None:
    behind = GlobalOffsetsWriter(place.kafka, place.global_, 30)
    behind.write_values({place.key: b'{"next":10}'})
    behind.close()
    behind = GlobalOffsetsWriter(place.kafka, place.global_, 30)
    ended = place.kernel(ledger=place.ledger(behind)).run(Numbers(place, 20))
    behind.close()
    assert (ended.stats.records, place.seen()) == (10, list(range(10, 20)))

    def global_() -> bool:
        store = OffsetStore(CommittedOffsets(place.kafka, place.global_, place.connector))
        store.refresh(30)
        return store.value(place.key) == b'{"next":20}'

    eventually(global_)


def test_a_global_topic_that_takes_nothing_for_now_holds_up_nothing_and_gets_the_newest_offset_in_the_end(
    place: Place,
) -> None:
    configure_topic(place, place.global_, "max.message.bytes", "1")
    behind = GlobalOffsetsWriter(place.kafka, place.global_, 30)
    ended = place.kernel(ledger=place.ledger(behind)).run(Numbers(place, 60))
    assert (ended.stats.records, ended.stats.doubts) == (60, [])
    eventually(lambda: behind.failures > 1)
    behind.close()
    assert (behind.unwritten, behind.problem) == (
        frozenset({place.key}),
        "Broker: Message size too large",
    )
    configure_topic(place, place.global_, "max.message.bytes", "1000000")
    following = GlobalOffsetsWriter(place.kafka, place.global_, 30, behind.unwritten)
    # which has nothing left to write
    place.kernel(ledger=place.ledger(following)).run(Numbers(place, 60))
    eventually(lambda: not following.unwritten)
    following.close()
    store = OffsetStore(CommittedOffsets(place.kafka, place.global_, place.connector))
    store.refresh(30)
    assert store.value(place.key) == b'{"next":60}'


def configure_topic(place: Place, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient(place.kafka.properties())
    admin.incremental_alter_configs([resource])[resource].result()


def test_a_tombstone_reaches_the_secondary_before_the_primary(place: Place) -> None:
    class Forgetting(Numbers):
        def batch(self) -> TransactionBatch | None:
            step = super().batch()
            return step and TransactionBatch(step.records, step.record_batches, {place.key: None})

    behind = GlobalOffsetsWriter(place.kafka, place.global_, 30)
    behind.write_values({place.key: b'{"next":0}'})
    place.kernel(ledger=place.ledger(behind)).run(Forgetting(place, 10))
    for topic in (place.offsets, place.global_):
        store = OffsetStore(CommittedOffsets(place.kafka, topic, place.connector))
        store.refresh(30)
        assert store.value(place.key) is None
        assert store.primary.has(place.key)


@pytest.mark.drawn
@pytest.mark.parametrize("codec", CODECS)
def test_batches_are_read_however_they_are_compressed(cluster: Sandbox, codec: str) -> None:
    place = Place(cluster)
    properties = {"compression.type": codec, "batch.size": 200}
    handle = TaskProducer(
        place.kafka, f"g-{place.connector}-0", timeout_ms=15_000, properties=properties
    )
    values = [b"%d" % n for n in range(1000)]
    handle.initialise(30)
    handle.begin()
    handle.send(
        TransactionBatch(
            record_batches=[
                ColumnBatch(place.topic, RecordColumns(pa.array(values), pa.array(values)))
            ]
        )
    )
    handle.commit(30)
    handle.discard()
    image = place.kafka.image([place.topic], patience=30, superseded=True)[place.topic]
    assert {record.key: record.partition for record in image.latest} == {
        v: java_partition(v, 3) for v in values
    }
    assert sorted(int(record.value or b"") for record in image.latest) == list(range(1000))


@pytest.mark.drawn
@pytest.mark.parametrize("codec", CODECS)
def test_brokers_unpack_batches_of_any_size_that_they_compress_otherwise(
    cluster: Sandbox, codec: str
) -> None:
    """Each broker is Java's client: what it takes it has read."""
    place = Place(cluster)
    other = ConfigEntry(
        "compression.type", "gzip" if codec == "zstd" else "zstd", None, None, None, None, None
    )
    other.incremental_operation = AlterConfigOpType.SET
    resource = ConfigResource(ConfigResource.Type.TOPIC, place.topic, incremental_configs=[other])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.incremental_alter_configs([resource])[resource].result(300)
    sizes = [0, 10, 32_700, 65_500, 65_536, 100_000, 700_000]
    values = [
        random.Random(n).randbytes(n) if dense else b"x" * n
        for n in sizes
        for dense in (True, False)
    ]
    handle = TaskProducer(
        place.kafka,
        f"g-{place.connector}-0",
        timeout_ms=15_000,
        properties={"compression.type": codec},
    )
    handle.initialise(30)
    handle.begin()
    handle.send(
        TransactionBatch(record_batches=[ColumnBatch(place.topic, RecordColumns(pa.array(values)))])
    )
    handle.commit(30)
    handle.discard()
    image = place.kafka.image([place.topic], patience=30, superseded=True)[place.topic]
    assert sorted(record.value or b"" for record in (*image.latest, *image.superseded)) == sorted(
        values
    )
