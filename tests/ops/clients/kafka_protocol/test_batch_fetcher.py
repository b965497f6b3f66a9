"""A fetcher's partitions: where each stands, which are refused for now, and when that is told."""

from __future__ import annotations

from collections.abc import Iterator
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
from fakes.fetchleaders import Leaders
from fakes.openfiles import many_open_files

A, B = TopicPartition("a", 0), TopicPartition("b", 1)
MOVED, UNKNOWN_TOPIC, UNKNOWN_ID = 6, 3, 100
"""Codes of partitions that a leader refuses: NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION
and UNKNOWN_TOPIC_ID.
"""
TIMEOUT = 30.0


@pytest.fixture
def leaders(monkeypatch: pytest.MonkeyPatch) -> Iterator[Leaders]:
    """Leader 1 has both partitions."""
    made = Leaders(monkeypatch, TopicLayouts({A: 1, B: 1}))
    yield made
    made.close()


def fetcher(**more: Any) -> BatchFetcher:
    made = BatchFetcher({"bootstrap.servers": "x:1", **more}, timeout=TIMEOUT, committed=True)
    made.begin({A: 4, B: 0})
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


def fetched(made: BatchFetcher, leaders: Leaders, *parts: Any, leader: int = 1) -> Any:
    """What one fetch gives of an answer."""
    leaders.answer(leader, *parts)
    return made.fetch(60)


def test_what_was_fetched_is_the_position_of_the_next_request_and_goes_behind_the_others(
    leaders: Leaders,
) -> None:
    made = fetcher()
    (found,) = fetched(made, leaders, part(A, batches=batch(2, 3) + batch(5, 1)))
    assert ([each.offset for each in found.batches], found.wanted) == ([2, 5], 4)
    assert leaders.requests == [
        (1, [(A, Position(4)), (B, Position(0))]),
        (1, [(B, Position(0)), (A, Position(6, 6))]),
    ]
    assert (made.position(A), made.has_more, made.lag) == (6, True, None)
    fetched(made, leaders, part(B, end=0))
    assert (made.has_more, made.lag) == (True, 3)
    fetched(made, leaders, part(A, end=6))
    assert (made.has_more, made.lag) == (False, 0)


def test_an_answer_is_read_however_many_files_are_open(leaders: Leaders) -> None:
    leaders.layouts = TopicLayouts({A: 1, B: 2})
    with many_open_files():
        made = fetcher()
        assert made.fetch(0.01) == []
        assert [leader for leader, _ in leaders.requests] == [1, 2]
        (found,) = fetched(made, leaders, part(B, batches=batch(0, 1)), leader=2)
        assert found.topic_partition == B


def test_a_batch_that_is_cut_off_is_asked_for_first(leaders: Leaders) -> None:
    assert fetched(fetcher(), leaders, part(A, batches=batch(4, 3)[:-1])) == []
    assert leaders.requests[-1] == (1, [(A, Position(4)), (B, Position(0))])


def test_a_leader_that_names_an_end_before_what_was_read_may_have_more(leaders: Leaders) -> None:
    made = fetcher()
    fetched(made, leaders, part(B, end=0), part(A, end=3))
    assert made.has_more
    fetched(made, leaders, part(A, end=4))
    assert not made.has_more


def test_a_leader_that_moves_leaves_its_partition_behind_until_another_answers(
    leaders: Leaders,
) -> None:
    made = fetcher()
    fetched(made, leaders, part(A, end=4), part(B, end=0))
    assert not made.has_more
    assert fetched(made, leaders, part(B, code=MOVED)) == []
    assert made.has_more
    leaders.layouts = TopicLayouts({A: 1, B: 2})
    fetched(made, leaders, part(B, end=0), leader=2)
    assert not made.has_more


@pytest.mark.parametrize("more", [{"code": 1}, {"diverged": True}])
def test_an_offset_that_the_log_does_not_have_is_told(leaders: Leaders, more: Any) -> None:
    with pytest.raises(OutOfRange) as raised:
        fetched(fetcher(), leaders, part(A, **more))
    assert (raised.value.topic_partition, raised.value.offset, raised.value.diverged) == (
        A,
        4,
        "diverged" in more,
    )


def test_a_right_that_is_missing_is_named(leaders: Leaders) -> None:
    with pytest.raises(NotAuthorized, match="Not authorized to read the topic a"):
        fetched(fetcher(), leaders, part(A, code=29))


def test_an_error_that_no_leader_mends_is_told(leaders: Leaders) -> None:
    with pytest.raises(Unreachable, match="a-0 cannot be read: error 2: CORRUPT_MESSAGE"):
        fetched(fetcher(), leaders, part(A, code=2))


def refused(leaders: Leaders, code: int, layouts: TopicLayouts) -> BatchFetcher:
    """A fetcher whose leader has refused A, where brokers now tell ``layouts``."""
    made = fetcher()
    fetched(made, leaders, part(A, code=code))
    leaders.layouts = layouts
    leaders.requests.clear()
    return made


def test_leaders_of_what_was_refused_are_looked_up(leaders: Leaders) -> None:
    made = refused(leaders, MOVED, TopicLayouts({B: 3}))
    fetched(made, leaders, part(B, end=0))
    assert leaders.requests == [(1, [(B, Position(0))])]
    leaders.layouts = TopicLayouts({A: 2, B: 3})
    fetched(made, leaders, part(A, end=9), leader=2)
    assert leaders.requests[1:] == [(2, [(A, Position(4))])] * 2
    assert (made.has_more, made.lag) == (True, 5)


def test_what_is_refused_for_longer_than_the_time_out_is_told_with_the_reason(
    leaders: Leaders,
) -> None:
    made = refused(leaders, MOVED, TopicLayouts())
    leaders.seconds += TIMEOUT + 1
    with pytest.raises(Unreachable, match="a-0 cannot be read: NOT_LEADER_OR_FOLLOWER"):
        made.fetch(0)


def test_a_topic_with_another_id_is_another_topic(leaders: Leaders) -> None:
    made = refused(leaders, UNKNOWN_ID, TopicLayouts({A: 2}, {"a": UUID(int=1)}))
    fetched(made, leaders, part(A, code=UNKNOWN_ID), leader=2)
    leaders.layouts = TopicLayouts({A: 2}, {"a": UUID(int=2)})
    with pytest.raises(TopicGone) as raised:
        made.fetch(0)
    assert (raised.value.topic, raised.value.replaced) == ("a", True)


def test_a_topic_is_gone_when_brokers_lack_it_for_a_while(leaders: Leaders) -> None:
    made = refused(leaders, UNKNOWN_TOPIC, TopicLayouts(gone=frozenset({"a"})))
    assert made.fetch(0) == []
    leaders.seconds += batch_fetcher.GONE_AFTER + 0.1
    with pytest.raises(TopicGone) as raised:
        made.fetch(0)
    assert not raised.value.replaced


def test_a_topic_that_may_not_be_described_is_named(leaders: Leaders) -> None:
    made = refused(leaders, MOVED, TopicLayouts(forbidden=frozenset({"a"})))
    with pytest.raises(NotAuthorized, match="Not authorized to describe the topic a"):
        made.fetch(0)


def test_a_connection_that_broke_refuses_its_leaders_partitions(leaders: Leaders) -> None:
    leaders.layouts = TopicLayouts({A: 1, B: 2})
    made = fetcher()
    assert fetched(made, leaders, OSError("the broker closed the connection")) == []
    leaders.layouts = TopicLayouts({A: 3})
    fetched(made, leaders, part(B, end=0), leader=2)
    assert [leader for leader, _ in leaders.requests] == [1, 2, 3, 2]
    leaders.seconds += TIMEOUT + 1
    with pytest.raises(Unreachable, match="a-0 cannot be read: the broker closed the connection"):
        made.fetch(0)


def test_how_much_is_fetched_is_bounded_by_what_a_person_gives(leaders: Leaders) -> None:
    fetcher().fetch(0)
    assert leaders.limits == (8 << 20, 8 << 20, 100)
    given = {
        "fetch.max.bytes": "5000",
        "max.partition.fetch.bytes": "9000",
        "fetch.wait.max.ms": "7",
    }
    fetcher(**given).fetch(0)
    assert leaders.limits == (5000, 5000, 7)
