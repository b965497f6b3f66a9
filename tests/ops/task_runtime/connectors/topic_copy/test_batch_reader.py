"""A reader of batches gives what is fetched in its order, bounded, and says what a person has to
know where it cannot.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from connectctl.ops.clients.kafka_protocol.batch_fetcher import FetchedPart, OutOfRange, TopicGone
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.kafka.batch_headers import HEADER, LENGTH
from connectctl.ops.kafka.fetched_batches import CommittedBatches
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.topic_copy.batch_reader import MOST_SENT, BatchReader
from connectctl.ops.task_runtime.connectors.topic_copy.source_starts import SourceCluster
from fakes.rewrittenbatches import sealed

RECORD = b"\x0c\0\0\0\x01\x01\0"  # neither key nor value


def fetched(
    topic: str, partition: int, *sizes: int, wanted: int = 0, body: bytes | None = None
) -> FetchedPart:
    """Batches of so many records behind each other."""
    raw, offset = b"", 0
    for size in sizes:
        records = body or b"".join(
            b"\x0c\0\0" + bytes([2 * n]) + b"\x01\x01\0" for n in range(size)
        )
        length = HEADER.size - LENGTH.size + len(records)
        raw += sealed(
            HEADER.pack(offset, length, 0, 2, 0, 0, size - 1, 5, 5, -1, -1, -1, size) + records
        )
        offset += size
    data = np.frombuffer(bytearray(raw + bytes(8)), np.uint8)
    return FetchedPart(
        TopicPartition(topic, partition), data, list(CommittedBatches(data, len(raw), [])), wanted
    )


def reader(*answers: Any, reset: str = "earliest") -> BatchReader:
    left = list(answers)

    def fetch(wait: float) -> Any:
        if not left:
            return []
        if isinstance(left[0], Exception):
            raise left.pop(0)
        return left.pop(0)

    made = BatchReader(SourceCluster("east", {}, {}, "read_committed", reset, 1.0))
    closed: Any = SimpleNamespace(fetch=fetch, close=lambda: None, has_more=False, lag=0)
    made._fetcher = closed
    return made


def read(made: BatchReader, most: int) -> list[tuple[str, list[int], dict[int, int]]]:
    return [(each.topic, list(map(len, each.records)), each.last) for each in made.read(most)]


def test_batches_are_given_until_there_are_enough_records_and_the_rest_comes_next() -> None:
    made = reader([fetched("orders", 0, 3, 4), fetched("orders", 1, 5), fetched("bills", 0, 2)])
    assert read(made, 4) == [("orders", [3, 4], {0: 6})]
    assert made.has_more
    assert read(made, 100) == [("orders", [5], {1: 4}), ("bills", [2], {0: 1})]
    assert not made.has_more
    assert read(made, 100) == []


def test_a_reading_ends_behind_so_many_batches_as_each_is_a_request() -> None:
    made = reader([fetched("orders", 0, *[1] * (MOST_SENT + 3))])
    assert [len(made.read(10_000)[0].records) for _ in range(2)] == [MOST_SENT, 3]


def test_whether_there_is_more_is_not_known_while_it_does_not_read() -> None:
    made = reader(Unreachable("t-0 cannot be read"))
    assert not made.has_more
    with pytest.raises(Unreachable):
        made.read(1)
    assert (made.opened, made.has_more) == (False, True)


def test_records_before_the_wanted_offset_are_left_out() -> None:
    made = reader([fetched("orders", 0, 3, 4, wanted=2)])
    (some,) = made.read(100)
    assert ([len(each) for each in some.records], some.last) == ([1, 4], {0: 6})
    assert [each.rows is not None for each in some.records] == [True, False]
    assert some.records[0].offset_of(0) == 2


@pytest.mark.parametrize(
    ("raised", "reset", "kind", "code", "says"),
    [
        (
            OutOfRange(TopicPartition("t", 0), 7),
            "earliest",
            Unreachable,
            "unreachable",
            "Offset 7 of t-0 is out of range",
        ),
        (
            OutOfRange(TopicPartition("t", 0), 7),
            "none",
            ConnectctlError,
            "no-offset",
            "t-0 of east has no start offset",
        ),
        (
            OutOfRange(TopicPartition("t", 0), 7, diverged=True),
            "earliest",
            ConnectctlError,
            "log-truncated",
            "The log of t-0 on east has changed before offset 7",
        ),
        (
            TopicGone("t", replaced=False),
            "earliest",
            ConnectctlError,
            "no-topic",
            "topic t no longer exists on",
        ),
        (
            TopicGone("t", replaced=True),
            "earliest",
            ConnectctlError,
            "topic-replaced",
            "deleted and created again",
        ),
        (
            Unreachable("x"),
            "earliest",
            Unreachable,
            "unreachable",
            "Cannot read the source cluster east",
        ),
    ],
)
def test_what_is_wrong_with_the_source_is_one_line(
    raised: Exception, reset: str, kind: type[ConnectctlError], code: str, says: str
) -> None:
    made = reader(raised, reset=reset)
    with pytest.raises(kind, match=says) as caught:
        made.read(10)
    assert caught.value.code == code
    assert not made.opened


def test_a_batch_whose_bytes_changed_is_named_and_what_is_before_it_is_given() -> None:
    part = fetched("t", 0, 2, 3)
    part.data[part.batches[1].end - 2] ^= 1
    made = reader([part])
    with pytest.raises(ConnectctlError, match="t-0 has records that cannot be read") as caught:
        made.read(10)
    assert caught.value.why == "the checksum of the batch at offset 2 does not match its bytes"


def test_a_batch_that_cannot_be_read_is_named() -> None:
    made = reader([fetched("t", 0, 3, wanted=1, body=b"\x02\0")])
    with pytest.raises(ConnectctlError, match="t-0 has records that cannot be read") as caught:
        made.read(10)
    assert caught.value.code == "garbled"
