"""What of a copied batch is sent: itself where its topic takes it, else its records in batches that
it takes.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.batch_headers import HEADER
from connectctl.ops.kafka.copied_records import copied_records
from connectctl.ops.kafka.record_batch_encoder import ProducerState
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.spi.transaction_batch import CopiedBatches, TransactionBatch
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from fakes.rewrittenbatches import found, read, sealed, written

ROWS: list[Any] = [(1000 + n, b"key", b"x" * 200, []) for n in range(10)]


class Sent:
    """A producer that keeps what it is given."""

    def __init__(self) -> None:
        self.added: set[TopicPartition] = set()
        self.batches: list[tuple[TopicPartition, int, bytes, Any]] = []

    def led(self, topic: str) -> range:
        return range(5)

    def partitions(self, topic: str, patience: float) -> int:
        return 5

    def add(self, places: set[TopicPartition]) -> None:
        self.added |= places

    def send(self, place: TopicPartition, records: int, made: Any, named: Any) -> None:
        sequence = sum(each[1] for each in self.batches)
        self.batches.append((place, records, b"".join(made(ProducerState(77, 1, sequence))), named))


def copied(
    configs: dict[str, str], given: dict[str, str] | None = None, raw: bytes | None = None
) -> Any:
    """What is sent of one batch, and which way it went, to a topic with these configurations."""
    kafka: Any = SimpleNamespace(
        client={}, topic_configs=lambda topics: {topics[0]: configs} if configs else {}
    )
    producer = TaskProducer(kafka, "id", timeout_ms=1000, properties=given)
    sent: Any = Sent()
    producer._producer = producer._writer._producer = sent
    data, batches = found(raw or written(ROWS, 50))
    some = list(copied_records(3, data, batches, 0))
    ways: list[bool] = []
    heard = lambda unopened, batches: ways.extend([unopened] * batches)  # noqa: E731
    batch = CopiedBatches(
        "east.orders", some, lambda partition, offset: f"{partition}:{offset}", heard
    )
    producer.send(TransactionBatch(copied_batches=[batch], more=True))
    assert sent.added == {TopicPartition("east.orders", 3)}
    return sent.batches, ways


@pytest.mark.parametrize(
    "configs", [{}, {"max.message.bytes": "1048588", "compression.type": "producer"}]
)
def test_a_batch_that_its_topic_takes_is_sent_as_it_is(configs: dict[str, str]) -> None:
    (batch,), ways = copied(configs)
    assert (batch[:2], ways) == ((TopicPartition("east.orders", 3), 10), [True])
    assert read(batch[2]) == ROWS
    assert batch[3](4) == "3:54"


def test_a_batch_that_is_too_large_is_sent_as_several() -> None:
    batches, ways = copied({"max.message.bytes": "1000"})
    assert (len(batches) > 1, ways) == (True, [False])
    assert [row for each in batches for row in read(each[2])] == ROWS
    assert all(len(each[2]) <= 1000 for each in batches)
    assert batches[1][3](0) == f"3:{50 + batches[0][1]}"


@pytest.mark.parametrize(
    ("configs", "given", "codec"),
    [
        ({"compression.type": "gzip"}, None, 1),
        ({"compression.type": "zstd"}, {"compression.type": "gzip"}, 4),
        ({"compression.type": "producer"}, {"compression.type": "zstd"}, 4),
        ({"compression.type": "uncompressed"}, None, 0),
        ({}, {"compression.type": "none"}, 0),
    ],
)
def test_a_codec_that_is_asked_for_is_what_batches_have(
    configs: Any, given: Any, codec: int
) -> None:
    (batch,), ways = copied(configs, given)
    assert HEADER.unpack_from(batch[2])[5] == 0x10 | codec
    assert read(batch[2]) == ROWS
    assert ways == [codec == 0]


def test_times_of_the_sources_broker_are_kept_by_opening_the_batch() -> None:
    raw = written(ROWS, 50, attributes=0x08)
    for configs, unopened in (
        ({"message.timestamp.type": "LogAppendTime"}, True),
        ({"x": "y"}, False),
    ):
        assert copied(configs, raw=raw)[1] == [unopened]


def test_a_batch_that_cannot_be_read_is_named() -> None:
    raw = written(ROWS, 50, 4)
    broken = sealed(raw[: HEADER.size + 4] + bytes(20) + raw[HEADER.size + 24 :])
    with pytest.raises(ConnectctlError, match="3:50 is in a batch that cannot be read"):
        copied({"compression.type": "gzip"}, raw=broken)
