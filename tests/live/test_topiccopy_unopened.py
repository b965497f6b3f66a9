"""Batches copied unopened between real topics: record by record what their source has, whatever is
in the batches.
"""

from __future__ import annotations

import os
import secrets
import struct
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient
from connectctl.ops.clients.kafka_protocol import batch_fetcher, fetch_protocol
from connectctl.ops.clients.kafka_protocol.batch_fetcher import BatchFetcher, OutOfRange, TopicGone
from connectctl.ops.clients.kafka_protocol.batch_producer import BatchProducer
from connectctl.ops.clients.kafka_protocol.column_reader import ColumnReader
from connectctl.ops.clients.kafka_protocol.refusals import Refusal
from connectctl.ops.config import paths
from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.batch_headers import HEADER
from connectctl.ops.kafka.batch_rewrite import restamped
from connectctl.ops.kafka.copied_records import copied_records
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.record_batch_encoder import ProducerState
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.topic_copy.mirror_offsets import wrap_partition
from connectctl.ops.task_runtime.spi.metrics import copy_metrics
from live.columnrecords import fill
from live.copying import Copy
from live.real import create_topic, eventually, write

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox
    from connectctl.ops.task_runtime.spi.transaction_batch import TaskResult

pytestmark = [pytest.mark.live, pytest.mark.drawn(14, matrix="records that are copied unopened")]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
AS_IT_IS = {"config.properties.exclude": ".*"}
"""The remote topic has no configuration of its source's."""


@pytest.fixture
def offsets(cluster: Sandbox) -> str:
    return create_topic(cluster.bootstrap_servers, f"copy-{secrets.token_hex(4)}-offsets", 3)


def copied(cluster: Sandbox, partitions: int = 1, **more: str) -> Copy:
    """A copy whose batches stay unopened; ``more`` has underscores for dots."""
    return Copy(
        cluster,
        partitions,
        {"copy.batches": "unopened"} | {k.replace("_", "."): v for k, v in more.items()},
    )


def topic_with(copy: Copy, config: Mapping[str, str], partitions: int = 1) -> str:
    """The source topic anew, with this configuration."""
    copy.topic = create_topic(
        copy.bootstrap, f"{copy.topic}-2", partitions, "delete", config=config
    )
    copy.remote = f"east.{copy.topic}"
    copy.config |= {"topics": copy.topic} | AS_IT_IS
    return copy.topic


def ways(ended: list[TaskResult]) -> tuple[int, int]:
    """How many batches stayed unopened, and how many were opened."""
    found = [copy_metrics(each.stats.meter) for each in ended]
    names = ("copy-batch-unopened-total", "copy-batch-opened-total")
    first, second = (sum(int(each[name] or 0) for each in found) for name in names)
    return first, second


def test_every_codec_and_outcome_of_transactions_is_copied_unopened(
    cluster: Sandbox, offsets: str
) -> None:
    copy = copied(cluster, 2)
    fill(copy.bootstrap, copy.topic)
    unopened, opened = ways(copy.run_here(offsets, copy.start()))
    assert (unopened > 20, opened) == (True, 0)
    assert copy.all_there()
    assert sum(map(len, copy.seen(copy.remote))) > 100


@pytest.mark.parametrize("most", [3_000, 100_000])
def test_responses_that_cut_batches_off_lose_none(
    cluster: Sandbox, offsets: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_fetcher, "FETCH_BYTES", most)
    copy = copied(cluster, 2)
    fill(copy.bootstrap, copy.topic)
    copy.run_here(offsets, copy.start())
    assert copy.all_there()


def test_brokers_that_know_topics_by_their_names_alone_are_read_too(
    cluster: Sandbox, offsets: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_protocol, "BY_ID", 1000)
    copy = copied(cluster, 2)
    fill(copy.bootstrap, copy.topic)
    assert ways(copy.run_here(offsets, copy.start()))[0] > 20
    assert copy.all_there()


def test_times_of_the_sources_broker_open_a_batch_and_stay_as_they_are(
    cluster: Sandbox, offsets: str
) -> None:
    copy = copied(cluster)
    topic_with(copy, {"message.timestamp.type": "LogAppendTime"})
    copy.write(25)
    assert ways(copy.run_here(offsets, copy.start())) == (0, 3)
    source, remote = copy.seen(copy.topic), copy.seen(copy.remote)
    assert [(key, value, headers, when[1]) for key, value, headers, when in source[0]] == [
        (key, value, headers, when[1]) for key, value, headers, when in remote[0]
    ]


def test_a_target_that_sets_times_takes_such_batches_unopened(
    cluster: Sandbox, offsets: str
) -> None:
    copy = copied(cluster)
    topic_with(copy, {"message.timestamp.type": "LogAppendTime"})
    create_topic(
        copy.bootstrap, copy.remote, 1, "delete", config={"message.timestamp.type": "LogAppendTime"}
    )
    copy.write(25)
    assert ways(copy.run_here(offsets, copy.start())) == (3, 0)
    assert [row[:3] for row in copy.seen(copy.remote)[0]] == [
        row[:3] for row in copy.seen(copy.topic)[0]
    ]


def test_batches_of_a_compacted_topic_are_opened_where_records_are_gone(
    cluster: Sandbox, offsets: str
) -> None:
    copy = copied(cluster)
    quick = {"min.cleanable.dirty.ratio": "0.001", "segment.ms": "100", "segment.bytes": "1048576"}
    topic_with(
        copy,
        quick
        | {"cleanup.policy": "compact", "max.compaction.lag.ms": "100", "delete.retention.ms": "1"},
    )
    producer = Producer({"bootstrap.servers": copy.bootstrap, "linger.ms": 50})

    def give(first: int, last: int, step: int) -> None:
        for n in range(first, last, step):
            producer.produce(
                copy.topic,
                b"%d of %d" % (n, step) if n % 11 else None,
                b"key-%d" % n,
                headers=[("h", b"x")],
            )
        producer.flush(300)

    give(0, 400, 1)
    time.sleep(0.3)
    give(0, 200, 3)  # so that records among the first ones are gone
    time.sleep(0.3)
    give(1000, 1100, 1)

    def thinned() -> bool:
        # a segment becomes old by a record behind it
        write(copy.bootstrap, copy.topic, ("tick", "tock"))
        return len(copy.seen(copy.topic)[0]) < 500

    eventually(thinned)
    ended = copy.run_here(offsets, copy.start())
    unopened, opened = ways(ended)
    assert opened > 0
    assert unopened > 0
    rows = {row[0]: row for row in copy.seen(copy.remote)[0]}
    newest = {row[0]: row for row in copy.seen(copy.topic)[0]}
    assert {key: row for key, row in rows.items() if key in newest} == newest


@pytest.mark.drawn
@pytest.mark.parametrize("codec", CODECS)
def test_batches_of_one_record_and_of_a_megabyte(
    cluster: Sandbox, offsets: str, codec: str
) -> None:
    copy = copied(cluster)
    topic_with(copy, {"max.message.bytes": "8000000"})
    client = {
        "bootstrap.servers": copy.bootstrap,
        "compression.type": codec,
        "message.max.bytes": 8_000_000,
    }
    small, large = (
        Producer(client | {"batch.num.messages": 1}),
        Producer(client | {"batch.size": 4_000_000, "linger.ms": 500}),
    )
    for n in range(20):
        small.produce(copy.topic, b"small %d" % n, timestamp=copy.began + n)
    small.flush(300)
    for n in range(60):
        large.produce(
            copy.topic, secrets.token_bytes(50_000), b"large %d" % n, timestamp=copy.began + n
        )
    large.flush(300)
    unopened, opened = ways(copy.run_here(offsets, copy.start()))
    assert unopened >= 20
    assert opened > 0  # the target takes a megabyte
    assert copy.seen(copy.remote) == copy.seen(copy.topic)


def test_whoever_wants_uncommitted_records_gets_them_too(cluster: Sandbox, offsets: str) -> None:
    copy = copied(cluster, source_consumer_isolation_level="read_uncommitted")
    producer = Producer({"bootstrap.servers": copy.bootstrap, "transactional.id": copy.name})
    producer.init_transactions(120)
    for n, end in enumerate((producer.commit_transaction, producer.abort_transaction) * 2):
        producer.begin_transaction()
        producer.produce(copy.topic, b"%d" % n)
        producer.flush(300)
        end(30)
    assert ways(copy.run_here(offsets, copy.start())) == (4, 0)
    assert [value for _, value, _, _ in copy.seen(copy.remote)[0]] == [b"0", b"1", b"2", b"3"]


def test_another_codec_for_the_producer_or_for_the_topic_opens_batches(
    cluster: Sandbox, offsets: str
) -> None:
    for config, target in (
        ({"producer.override.compression.type": "zstd"}, {}),
        ({}, {"compression.type": "gzip"}),
    ):
        copy = copied(cluster)
        copy.config |= config
        create_topic(copy.bootstrap, copy.remote, 1, "delete", config=target)
        copy.write(40)
        assert ways(copy.run_here(offsets, copy.start())) == (0, 4)
        assert copy.all_there()


def test_a_copy_that_begins_within_a_batch_has_the_records_behind_its_offset(
    cluster: Sandbox, offsets: str
) -> None:
    copy = copied(cluster)
    copy.write(30)
    key = connect_json([copy.name, wrap_partition("east", TopicPartition(copy.topic, 0))])
    write(copy.bootstrap, offsets, (key, '{"offset":13}'))
    ended = copy.run_here(offsets, copy.start())
    assert (ended[0].stats.records, ways(ended)) == (16, (1, 1))
    assert copy.seen(copy.remote)[0] == copy.seen(copy.topic)[0][14:]


def test_lost_records_fail_the_task_unless_a_person_has_said_to_continue(
    cluster: Sandbox, offsets: str
) -> None:
    copy = copied(cluster)
    copy.write(20)
    copy.run_here(offsets, copy.start())
    copy.write(30)
    admin = AdminClient({"bootstrap.servers": copy.bootstrap})
    admin.delete_records([Position(copy.topic, 0, 35)])[Position(copy.topic, 0)].result()
    with pytest.raises(
        ConnectctlError, match=f"Offsets 20 to 34 of {copy.topic}-0 on east were lost"
    ) as raised:
        copy.run_here(offsets, copy.start())
    assert raised.value.code == "lost-records"
    for way in ("unopened", "opened"):
        copy.config["copy.batches"] = way
        assert len(copy.seen(copy.remote)[0]) == 20
        with pytest.raises(ConnectctlError, match="were lost before they were copied"):
            copy.run_here(offsets, copy.start())
    copy.config |= {"source.consumer.auto.offset.reset": "earliest", "copy.batches": "unopened"}
    ended = copy.run_here(offsets, copy.start())[0]
    assert (ended.stats.records, copy_metrics(ended.stats.meter)["copy-offset-lost-total"]) == (
        15,
        15,
    )
    assert [line.split()[0] for line in ended.stats.lines] == ["COPY001"]
    assert f"Offsets 20 to 34 of {copy.topic}-0 on east" in ended.stats.lines[0]
    again = copy.run_here(offsets, copy.start())[0]
    assert (again.stats.records, list(again.stats.lines)) == (0, [])


# ------------------------------------------------------------------------------ what brokers answer


@pytest.fixture
def topic(cluster: Sandbox) -> str:
    return create_topic(cluster.bootstrap_servers, f"raw-{secrets.token_hex(4)}", 1, "delete")


@pytest.fixture
def producer(cluster: Sandbox, topic: str) -> Iterator[BatchProducer]:
    made = BatchProducer(
        {"bootstrap.servers": cluster.bootstrap_servers},
        topic,
        transaction_timeout_ms=30_000,
        timeout=30,
    )
    made.initialise(30)
    made.partitions(topic, 30)
    yield made
    made.close()


def fetched(cluster: Sandbox, topic: str, start: int = 0) -> list[Any]:
    """What lies in the first partition, as it was fetched."""
    reader = BatchFetcher(
        {"bootstrap.servers": cluster.bootstrap_servers}, timeout=120, committed=True
    )
    reader.begin({TopicPartition(topic, 0): start})
    found = []
    while reader.has_more:
        found += reader.fetch(1.0)
    reader.close()
    return found


def read_for_long(reader: BatchFetcher) -> None:
    """Read what has nothing to give."""
    for _ in range(100):
        assert reader.fetch(1.0) == []


def changed(batch: bytes, **fields: int) -> bytes:
    """A batch with other fields in its header, and their checksum."""
    from crc32c import crc32c

    names = ("offset", "length", "epoch", "magic", "crc", "attributes", "delta", "first", "last")
    all_ = list(HEADER.unpack_from(batch))
    for name, value in fields.items():
        all_[names.index(name)] = value
    raw = bytearray(HEADER.pack(*all_) + batch[HEADER.size :])
    struct.pack_into(">I", raw, 17, crc32c(bytes(raw[21:])))
    return bytes(raw)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, None),
        ({"epoch": 3}, None),
        ({"last": 5}, None),
        # the type of times is the topic's, whatever a producer says
        ({"attributes": 0x10 | 0x08}, None),
        ({"attributes": 0x10 | 0x40}, None),
        ({"delta": 9}, 87),
        ({"delta": 1}, 87),
        ({"offset": 12}, 87),
        ({"attributes": 0x10 | 0x20}, 87),
    ],
)
def test_what_a_broker_takes_of_a_producers_header(
    cluster: Sandbox, topic: str, producer: BatchProducer, fields: dict[str, int], code: int | None
) -> None:
    write(cluster.bootstrap_servers, topic, *((b"k", b"%d" % n) for n in range(3)), partition=0)
    (part,) = fetched(cluster, topic)
    (batch,) = part.batches
    place = TopicPartition(topic, 0)

    def made(stamp: ProducerState) -> list[bytes | memoryview]:
        return [changed(b"".join(restamped(part.data, batch, stamp)), **fields)]

    def sent() -> None:
        producer.send(place, 3, made)
        producer.flush()
        producer.end(commit=True, patience=20)

    producer.add([place])
    if code is not None:
        with pytest.raises(Refusal) as raised:
            sent()
        assert raised.value.code == code
        return
    sent()
    (again,) = fetched(cluster, topic, 3)
    (copy,) = again.batches
    assert (copy.offset, copy.records, copy.attributes & ~0x40) == (3, 3, 0x10)
    assert np.array_equal(
        again.data[copy.start + HEADER.size : copy.end],
        part.data[batch.start + HEADER.size : batch.end],
    )


def test_a_batch_that_is_too_large_for_its_topic_is_refused(
    cluster: Sandbox, topic: str, producer: BatchProducer
) -> None:
    source = create_topic(
        cluster.bootstrap_servers,
        f"{topic}-in",
        1,
        "delete",
        config={"max.message.bytes": "3000000"},
    )
    large = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "message.max.bytes": 3_000_000}
    )
    large.produce(source, bytes(1_500_000))
    large.flush(300)
    (part,) = fetched(cluster, source)
    producer.add([TopicPartition(topic, 0)])
    producer.send(
        TopicPartition(topic, 0), 1, lambda stamp: restamped(part.data, part.batches[0], stamp)
    )
    with pytest.raises(Refusal) as raised:
        producer.flush()
    assert raised.value.code == Code.MESSAGE_TOO_LARGE


def test_what_changed_on_the_disk_of_a_broker_is_not_read_as_records(
    cluster: Sandbox, topic: str
) -> None:
    bootstrap = cluster.bootstrap_servers
    write(bootstrap, topic, *((b"k", b"value %d" % n) for n in range(3)), partition=0)
    (log,) = paths.sandbox_directory(cluster.spec.name).rglob(f"{topic}-0/*.log")
    with log.open("r+b") as file:
        file.seek(-3, os.SEEK_END)
        last = file.read(1)
        file.seek(-3, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    (part,) = fetched(cluster, topic)
    says = "the checksum of the batch at offset 0 does not match its bytes"
    with pytest.raises(ValueError, match=says):
        list(copied_records(0, part.data, part.batches, 0))
    reader = ColumnReader({"bootstrap.servers": bootstrap}, timeout=120)
    with pytest.raises(ConnectctlError, match="has records that cannot be read") as raised:
        list(reader.read(TopicPartition(topic, 0), 0, 3))
    assert raised.value.why == says


def test_a_topic_that_is_another_one_by_now_is_not_read_on(cluster: Sandbox, topic: str) -> None:
    bootstrap = cluster.bootstrap_servers
    write(bootstrap, topic, *((b"k", b"%d" % n) for n in range(3)), partition=0)
    reader = BatchFetcher({"bootstrap.servers": bootstrap}, timeout=120, committed=True)
    reader.begin({TopicPartition(topic, 0): 0})
    while reader.has_more:
        reader.fetch(1.0)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result()
    eventually(lambda: topic not in admin.list_topics(timeout=120).topics)
    create_topic(bootstrap, topic, 1, "delete")
    write(bootstrap, topic, *((b"k", b"%d" % n) for n in range(9)), partition=0)
    with pytest.raises(TopicGone) as raised:
        read_for_long(reader)
    assert raised.value.replaced
    reader.close()


def test_a_topic_that_is_deleted_is_gone(cluster: Sandbox, topic: str) -> None:
    reader = BatchFetcher(
        {"bootstrap.servers": cluster.bootstrap_servers}, timeout=120, committed=True
    )
    reader.begin({TopicPartition(topic, 0): 0})
    reader.fetch(1.0)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_topics([topic])[topic].result()
    with pytest.raises(TopicGone) as raised:
        read_for_long(reader)
    assert not raised.value.replaced
    reader.close()


def test_an_offset_that_the_log_does_not_have_is_told(cluster: Sandbox, topic: str) -> None:
    reader = BatchFetcher(
        {"bootstrap.servers": cluster.bootstrap_servers}, timeout=120, committed=True
    )
    reader.begin({TopicPartition(topic, 0): 7})
    with pytest.raises(OutOfRange, match=f"Offset 7 of {topic}-0 is out of range"):
        read_for_long(reader)
    reader.close()
