"""A pass over topics gets to every end, or says which it did not get to and why."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError
from connectctl.ops.clients.librdkafka import read as readingmodule
from connectctl.ops.clients.librdkafka.read import TopicReading
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.kafka import memory
from connectctl.ops.kafka.records import UnreadTail
from connectctl.ops.kafka.sentinels import Offset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import OffsetRange
from fakes.admin import FakeAdmin, FakeKafka
from hypothesis import given
from hypothesis import strategies as st


class Message:
    """A record at ``offset``, or the end of the partition there."""

    def __init__(self, offset: int, *, end: bool = False):
        self._offset, self._end = offset, end

    def error(self) -> Any:
        return KafkaError(KafkaError._PARTITION_EOF) if self._end else None

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return b"%d" % self._offset

    def value(self) -> bytes:
        return b"v"

    def timestamp(self) -> tuple[int, int]:
        return 1, 1


class Consumer:
    """Gives one batch after the other, and then nothing."""

    def __init__(self, *batches: list[Message]):
        self._batches = list(batches)

    def assign(self, places: Any) -> None: ...

    def consume(self, most: int, wait: float) -> list[Message]:
        return self._batches.pop(0) if self._batches else []


def read(*batches: list[Message], patience: float | None, timeout: float = 0.05) -> TopicReading:
    found = TopicReading(FakeKafka(FakeAdmin(), timeout=timeout), {"t": {0: Offset(3)}})
    consumer: Any = Consumer(*batches)
    found.run(consumer, patience)
    return found


def extent(monkeypatch: pytest.MonkeyPatch, stable: int) -> None:
    monkeypatch.setattr(
        readingmodule, "read_extents", lambda kafka, topics: {"t": {0: OffsetRange(0, stable, 3)}}
    )


WHOLE = [Message(0), Message(1), Message(2)]


def test_a_reading_ends_at_the_end() -> None:
    assert len(read(WHOLE, patience=0.0).image("t").latest) == 3
    assert len(read(WHOLE[:2], [Message(3, end=True)], patience=0.0).image("t").latest) == 2, (
        "a marker was the last"
    )


def test_what_an_open_transaction_holds_back_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    extent(monkeypatch, 2)
    image = read([*WHOLE[:2], Message(2, end=True)], patience=0.0).image("t")
    assert (len(image.latest), image.held_back) == (2, (UnreadTail(0, 2, 3),))


def test_an_end_of_a_leader_that_has_not_caught_up_is_no_open_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    extent(monkeypatch, 3)
    image = read([*WHOLE[:2], Message(2, end=True)], [], [Message(2)], patience=0.0).image("t")
    assert (len(image.latest), image.held_back) == (3, ())
    with pytest.raises(Unreachable, match="t-0 was not read to its end"):
        read([*WHOLE[:2], Message(2, end=True)], patience=0.0)


def test_where_nothing_may_be_in_the_way_a_lower_end_is_none() -> None:
    with pytest.raises(Unreachable, match="t-0 was not read to its end"):
        read([*WHOLE[:2], Message(2, end=True)], patience=None)
    assert (
        len(read([*WHOLE[:2], Message(2, end=True)], [Message(2)], patience=None).image("t").latest)
        == 3
    )


class Kept(Message):
    """A record of some partition, with a key of few, or none."""

    asked = 0

    def __init__(self, offset: int, partition: int, key: bytes | None):
        super().__init__(offset)
        self._partition, self._key = partition, key

    def partition(self) -> int:
        return self._partition

    def key(self) -> Any:
        return self._key

    def offset(self) -> int:
        Kept.asked += 1
        return self._offset


def taken(batches: list[list[Kept]], *, singly: bool, keep_all: bool) -> Any:
    ends = {"t": {0: Offset(6), 1: Offset(3)}}
    found = TopicReading(FakeKafka(FakeAdmin(), timeout=1), ends, keep_all=keep_all)
    found._stuck = {TopicPartition("t", 0): 1}
    for batch in batches:
        (found._take_singly if singly else found._take)(batch)
    latest = {
        p: {key: m.offset() for key, m in by_key.items()}
        for p, by_key in found._latest["t"].items()
    }
    return latest, found.all, found._counts, found._pending, found._stuck


@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([b"a", b"b", None])), max_size=12),
    st.integers(1, 5),
)
def test_stretches_of_records_are_taken_as_each_record_would_be(
    records: list[tuple[int, Any]], size: int
) -> None:
    at = {0: -1, 1: -1}
    messages = []
    for partition, key in records:
        at[partition] += 1
        messages.append(Kept(at[partition], partition, key))
    batches = [messages[n : n + size] for n in range(0, len(messages), size)]
    for keep_all in (False, True):
        assert taken(batches, singly=False, keep_all=keep_all) == taken(
            batches, singly=True, keep_all=keep_all
        )


def test_of_a_stretch_of_records_only_the_last_is_asked_where_it_is() -> None:
    found = TopicReading(FakeKafka(FakeAdmin(), timeout=1), {"t": {0: Offset(10_000)}})
    Kept.asked = 0
    found._take([Kept(n, 0, b"%d" % n) for n in range(5_000)])
    assert Kept.asked == 1


def test_of_a_topic_that_is_kept_whole_each_record_is_kept_once() -> None:
    found = TopicReading(FakeKafka(FakeAdmin(), timeout=1), {"t": {0: Offset(4)}}, keep_all=True)
    found._take([Kept(n, 0, key) for n, key in enumerate((b"a", b"b", b"a", None))])
    image = found.image("t")
    assert sorted(r.offset for r in image.latest) == [1, 2, 3]
    assert [r.offset for r in image.superseded] == [0]
    assert {id(r) for r in (*image.latest, *image.superseded)} == {id(r) for r in found.all["t"]}


@pytest.mark.parametrize("left", [0, 2 * memory.WORK_BYTES, None])
def test_what_memory_does_not_hold_is_refused_before_more_is_read(
    monkeypatch: pytest.MonkeyPatch, left: int | None
) -> None:
    monkeypatch.setattr(memory, "available", lambda: left)
    found = TopicReading(FakeKafka(FakeAdmin(), timeout=0.05), {"t": {0: Offset(3)}})
    batches: list[Any] = [[Kept(n, 0, b"%d" % n)] for n in range(3)]
    consumer: Any = Consumer(*batches)
    if left is None:
        found.run(consumer, None)
        return
    with pytest.raises(ConnectctlError, match="Memory does not hold t") as refused:
        found.run(consumer, None)
    held = 3 if left else 1
    assert (
        refused.value.why
        == f"it holds {held} keys with {left // (1 << 20)} MB left, and there are more"
    )
    assert "--engine spark" in str(refused.value.next_step)
    assert found.held == held


def test_of_connectors_that_were_not_asked_for_nothing_is_held_and_their_names_are_told() -> None:
    keys = [b'["a",{"t":1}]', b'["b",{"t":1}]', b"odd", b'["c",{"t":1}]', None, b'["a",{"t":2}]']
    for singly in (False, True):
        found = TopicReading(
            FakeKafka(FakeAdmin(), timeout=1),
            {"t": {0: Offset(6)}},
            includes={"t": lambda name: name == "a"},
        )
        (found._take_singly if singly else found._take)(
            [Kept(n, 0, key) for n, key in enumerate(keys)]
        )
        image = found.image("t")
        assert [record.key for record in image.latest] == [keys[0], keys[2], keys[4], keys[5]]
        assert (image.records, image.left_out) == (6, frozenset("bc"))
