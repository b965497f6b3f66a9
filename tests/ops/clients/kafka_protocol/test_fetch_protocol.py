"""Fetch responses as another library encodes them, by names and by ids, are read field by field as
they arrive.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from connectctl.ops.clients.kafka_protocol.fetch_protocol import (
    BY_ID,
    BY_NAME,
    FetchLimits,
    PartitionData,
    Position,
    fetch_request,
    read_response,
)
from connectctl.ops.clients.kafka_protocol.raw_connection import Broken
from connectctl.ops.kafka.topic_partition import TopicPartition
from kafka.protocol.consumer.fetch import FetchRequest, FetchResponse

IDS = {"orders": UUID(int=7), "bills": UUID(int=1 << 100)}
LIMITS = FetchLimits(1000, 900, 50)


class Arrived:
    """An answer that is there as a whole, read as ``RawConnection`` gives it."""

    def __init__(self, raw: bytes):
        self._raw, self.left = raw, len(raw)

    def take(self, layout: Any) -> Any:
        return layout.unpack(self.bytes(layout.size))

    def bytes(self, count: int) -> bytes:
        assert count <= self.left
        at = len(self._raw) - self.left
        self.left -= count
        return self._raw[at : at + count]

    def into(self, place: memoryview) -> None:
        place[:] = self.bytes(len(place))

    def skip(self, count: int) -> None:
        self.bytes(count)


def answer(version: int, *topics: tuple[str, list[dict[str, Any]]], code: int = 0) -> Arrived:
    kind = FetchResponse.FetchableTopicResponse
    told = []
    for name, parts in topics:
        partitions = [
            kind.PartitionData(**{"log_start_offset": 0, "preferred_read_replica": -1, **each})
            for each in parts
        ]
        who = {"topic_id": IDS[name]} if version == BY_ID else {"topic": name}
        told.append(kind(partitions=partitions, **who))
    response = FetchResponse[version](
        throttle_time_ms=0, error_code=code, session_id=0, responses=told
    )
    body = response.encode()
    return Arrived((b"\0" if version == BY_ID else b"") + body)


def part(
    index: int, records: bytes | None = None, aborted: Any = None, code: int = 0, **more: Any
) -> dict[str, Any]:
    kind = FetchResponse.FetchableTopicResponse.PartitionData.AbortedTransaction
    gone = (
        None if aborted is None else [kind(producer_id=who, first_offset=at) for who, at in aborted]
    )
    told = {
        "partition_index": index,
        "error_code": code,
        "high_watermark": 90,
        "last_stable_offset": 80,
    }
    return told | {"aborted_transactions": gone, "records": records} | more


def read(raw: Arrived, version: int, *, committed: bool = True) -> tuple[int, list[PartitionData]]:
    connection: Any = raw
    code, parts = read_response(connection, IDS if version == BY_ID else {}, committed=committed)
    found = [
        each._replace(data=None if each.data is None else bytes(each.data[: each.size]))
        for each in parts
    ]
    assert raw.left == 0
    return code, found


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_batches_aborted_transactions_and_errors_are_told_by_partition(version: int) -> None:
    raw = answer(
        version,
        ("orders", [part(0, b"x" * 300, [(7, 5), (8, 9)]), part(3, None, None, 6)]),
        ("bills", [part(1, b"", []), part(2, b"last")]),
    )
    assert read(raw, version) == (
        0,
        [
            PartitionData(TopicPartition("orders", 0), 0, 80, 0, b"x" * 300, 300, [(7, 5), (8, 9)]),
            PartitionData(TopicPartition("orders", 3), 6, 80, 0, None, 0, []),
            PartitionData(TopicPartition("bills", 1), 0, 80, 0, None, 0, []),
            PartitionData(TopicPartition("bills", 2), 0, 80, 0, b"last", 4, []),
        ],
    )


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_batches_that_are_not_held_may_be_read_from_the_connection(version: int) -> None:
    raw: Any = answer(
        version, ("orders", [part(0, b"x" * 300, [(7, 5)]), part(1, b"y" * 5), part(2, b"last")])
    )
    ids = IDS if version == BY_ID else {}
    _, parts = read_response(raw, ids, committed=True, hold=False)
    found = [
        (p.topic_partition.partition, p.size, p.data, raw.bytes(min(p.size, 4))) for p in parts
    ]
    assert found == [(0, 300, None, b"xxxx"), (1, 5, None, b"yyyy"), (2, 4, None, b"last")]
    assert raw.left == 0


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_readers_of_uncommitted_records_end_at_the_high_watermark(version: int) -> None:
    _, (only,) = read(answer(version, ("orders", [part(0)])), version, committed=False)
    assert only.end == 90


def test_a_log_that_no_longer_has_what_was_fetched_is_told() -> None:
    kind = FetchResponse.FetchableTopicResponse.PartitionData
    diverging = kind.EpochEndOffset(epoch=4, end_offset=12)
    raw = answer(BY_ID, ("orders", [part(0, diverging_epoch=diverging), part(1)]))
    assert [each.diverged for each in read(raw, BY_ID)[1]] == [True, False]


def test_an_error_of_the_whole_is_told() -> None:
    assert read(answer(BY_ID, code=103), BY_ID) == (103, [])


def test_a_topic_that_was_not_asked_for_is_no_answer() -> None:
    raw: Any = answer(BY_ID, ("orders", [part(0)]))
    _, parts = read_response(raw, {"bills": IDS["bills"]}, committed=True)
    with pytest.raises(Broken, match="was not requested"):
        list(parts)


@pytest.mark.parametrize(("ids", "version", "epoch"), [({}, BY_NAME, -1), (IDS, BY_ID, 4)])
def test_a_request_names_its_partitions_in_their_order(
    ids: dict[str, UUID], version: int, epoch: int
) -> None:
    positions = {
        TopicPartition("orders", 3): Position(9, 4),
        TopicPartition("bills", 0): Position(1),
        TopicPartition("orders", 1): Position(0),
    }
    request = fetch_request(positions, ids, LIMITS, committed=True)
    again = FetchRequest[version].decode(request.encode())
    assert (again.max_bytes, again.max_wait_ms, again.isolation_level) == (1000, 50, 1)
    told = [
        [(p.partition, p.fetch_offset, p.partition_max_bytes) for p in t.partitions]
        for t in again.topics
    ]
    assert told == [[(3, 9, 900), (1, 0, 900)], [(0, 1, 900)]]
    assert again.topics[0].partitions[0].last_fetched_epoch == epoch
    named = [str(t.topic_id) if ids else t.topic for t in again.topics]
    assert named == ([str(IDS["orders"]), str(IDS["bills"])] if ids else ["orders", "bills"])
