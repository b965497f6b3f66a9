"""A fetcher's partitions: where each stands, which are refused for now, and when that is told."""

from __future__ import annotations

import socket
import time
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from connectctl.ops.clients.kafka_protocol import batch_fetcher
from connectctl.ops.clients.kafka_protocol.batch_fetcher import BatchFetcher, OutOfRange, TopicGone
from connectctl.ops.clients.kafka_protocol.fetch_protocol import PartitionData, Position
from connectctl.ops.clients.kafka_protocol.leaders import TopicLayouts
from connectctl.ops.core.errors import NotAuthorized, Unreachable
from connectctl.ops.kafka.batch_headers import HEADER, LENGTH
from connectctl.ops.kafka.topic_partition import TopicPartition
from fakes.openfiles import many_open_files

A, B = TopicPartition("a", 0), TopicPartition("b", 1)


def fetcher(**more: Any) -> BatchFetcher:
    made = BatchFetcher({"bootstrap.servers": "x:1", **more}, timeout=30.0, committed=True)
    made._positions = {A: Position(4), B: Position(0)}
    return made


def part(
    place: TopicPartition, *, code: int = 0, end: int = 9, batches: bytes = b"", **more: Any
) -> PartitionData:
    data = np.frombuffer(batches + bytes(8), np.uint8) if batches else None
    return PartitionData(place, code, end, 0, data, len(batches), **more)


def batch(offset: int, records: int, epoch: int = 6) -> bytes:
    return HEADER.pack(
        offset, HEADER.size - LENGTH.size, epoch, 2, 0, 0, records - 1, 5, 5, -1, -1, -1, records
    )


def test_what_was_fetched_is_the_position_of_the_next_request_and_goes_behind_the_others() -> None:
    made = fetcher()
    found = made._took(part(A, batches=batch(2, 3) + batch(5, 1)))
    assert found is not None
    assert ([each.offset for each in found.batches], found.wanted) == ([2, 5], 4)
    assert list(made._positions.items()) == [(B, Position(0)), (A, Position(6, 6))]
    assert (made.position(A), made.behind, made.lag) == (6, True, None)
    made._took(part(B, end=0))
    assert (made.behind, made.lag) == (True, 3)
    made._took(part(A, end=6))
    assert (made.behind, made.lag) == (False, 0)


def test_an_answer_is_read_however_many_files_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fetcher()
    answered: list[int] = []

    def answer(leader: int) -> list[Any]:
        answered.append(leader)
        return []

    monkeypatch.setattr(made, "_answer", answer)
    monkeypatch.setattr(made, "_ask", lambda leader: None)
    with many_open_files():
        pairs = {leader: socket.socketpair() for leader in (1, 2)}
        made._connections = {leader: ours for leader, (ours, _) in pairs.items()}  # type: ignore[misc]
        made._asked = {leader: (7, time.monotonic()) for leader in pairs}
        assert (made.fetch(0.01), answered) == ([], [])
        pairs[2][1].sendall(b"answer")
        assert (made.fetch(60), answered) == ([], [2])
        for each in (end for pair in pairs.values() for end in pair):
            each.close()


def test_a_batch_that_is_cut_off_is_asked_for_first() -> None:
    made = fetcher()
    assert made._took(part(A, batches=batch(4, 3)[:-1])) is None
    assert list(made._positions.items()) == [(A, Position(4)), (B, Position(0))]


def test_a_leader_that_names_an_end_before_what_was_read_may_have_more() -> None:
    made = fetcher()
    made._took(part(B, end=0))
    made._took(part(A, end=3))
    assert made.behind
    made._took(part(A, end=4))
    assert not made.behind


def test_a_leader_that_moves_leaves_its_partition_behind_until_another_answers() -> None:
    made = fetcher()
    for place, end in ((A, 4), (B, 0)):
        made._took(part(place, end=end))
    assert not made.behind
    assert made._took(part(B, code=6)) is None
    assert made.behind
    made._unled.clear()
    made._took(part(B, end=0))
    assert not made.behind


@pytest.mark.parametrize("more", [{"code": 1}, {"diverged": True}])
def test_an_offset_that_the_log_does_not_have_is_told(more: Any) -> None:
    with pytest.raises(OutOfRange) as raised:
        fetcher()._took(part(A, **more))
    assert (raised.value.place, raised.value.offset, raised.value.diverged) == (
        A,
        4,
        "diverged" in more,
    )


def test_a_right_that_is_missing_is_named() -> None:
    with pytest.raises(NotAuthorized, match="Not authorized to read the topic a"):
        fetcher()._took(part(A, code=29))


def test_an_error_that_no_leader_mends_is_told() -> None:
    with pytest.raises(Unreachable, match="a-0 cannot be read: error 2: CORRUPT_MESSAGE"):
        fetcher()._took(part(A, code=2))


def looking_up(made: BatchFetcher, found: TopicLayouts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_fetcher, "topic_layouts", lambda wire, topics: found)
    made._looked = -1.0
    made._look_up()


def test_leaders_of_what_was_refused_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fetcher()
    made._refuse(A, "NOT_LEADER_OR_FOLLOWER")
    looking_up(made, TopicLayouts({B: 3}), monkeypatch)
    assert (made._leaders, made._unled) == ({}, {A})
    looking_up(made, TopicLayouts({A: 2, B: 3}), monkeypatch)
    assert (made._leaders, made._unled, made.behind) == ({A: 2}, set(), True)


def test_what_is_refused_for_longer_than_the_time_out_is_told_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = fetcher()
    made._refuse(A, "NOT_LEADER_OR_FOLLOWER")
    made._timeout = -1.0
    with pytest.raises(Unreachable, match="a-0 cannot be read: NOT_LEADER_OR_FOLLOWER"):
        looking_up(made, TopicLayouts(), monkeypatch)


def test_a_topic_with_another_id_is_another_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fetcher()
    made._refuse(A, "UNKNOWN_TOPIC_ID")
    looking_up(made, TopicLayouts({A: 2}, {"a": UUID(int=1)}), monkeypatch)
    made._refuse(A, "UNKNOWN_TOPIC_ID")
    with pytest.raises(TopicGone) as raised:
        looking_up(made, TopicLayouts({A: 2}, {"a": UUID(int=2)}), monkeypatch)
    assert (raised.value.topic, raised.value.replaced) == ("a", True)


def test_a_topic_is_gone_when_brokers_lack_it_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fetcher()
    made._refuse(A, "UNKNOWN_TOPIC_OR_PARTITION")
    looking_up(made, TopicLayouts(gone=frozenset({"a"})), monkeypatch)
    monkeypatch.setattr(batch_fetcher, "GONE_AFTER", -1.0)
    with pytest.raises(TopicGone) as raised:
        looking_up(made, TopicLayouts(gone=frozenset({"a"})), monkeypatch)
    assert not raised.value.replaced


def test_a_topic_that_may_not_be_described_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fetcher()
    made._refuse(A, "x")
    with pytest.raises(NotAuthorized, match="Not authorized to describe the topic a"):
        looking_up(made, TopicLayouts(forbidden=frozenset({"a"})), monkeypatch)


def test_a_connection_that_broke_refuses_its_leaders_partitions() -> None:
    made = fetcher()
    made._leaders = {A: 1, B: 2}
    made._asked = {1: (7, 0.0)}
    made._lose(1, "the broker closed the connection")
    assert (made._unled, made._asked) == ({A}, {})
    assert made._failing[A][1] == "the broker closed the connection"


def test_how_much_is_fetched_is_bounded_by_what_a_person_gives() -> None:
    assert fetcher()._limits == (8 << 20, 8 << 20, 100)
    given = {
        "fetch.max.bytes": "5000",
        "max.partition.fetch.bytes": "9000",
        "fetch.wait.max.ms": "7",
    }
    assert fetcher(**given)._limits == (5000, 5000, 7)
