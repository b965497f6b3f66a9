"""A reading of topics reaches every end, or raises an error that names those that it did not."""

from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.clients.librdkafka import read as readingmodule
from connectctl.ops.clients.librdkafka.read import TopicReading
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.kafka import memory
from connectctl.ops.kafka.records import UnreadTail
from connectctl.ops.kafka.sentinels import Offset
from connectctl.ops.kafka.topics import OffsetRange
from fakes.admin import FakeAdmin, FakeKafka
from fakes.consumer import Consumer, Event, Kept, Message
from hypothesis import given
from hypothesis import strategies as st


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


def reading_of(ends: dict[int, int], *batches: list[Any], **more: Any) -> TopicReading:
    offsets = {"t": {p: Offset(end) for p, end in ends.items()}}
    found = TopicReading(FakeKafka(FakeAdmin(), timeout=0.05), offsets, **more)
    consumer: Any = Consumer(*batches)
    found.run(consumer, None)
    return found


@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([b"a", b"b", None])), max_size=12),
    st.integers(1, 5),
    st.lists(st.integers(0, 12), max_size=3),
)
def test_the_newest_record_of_each_key_below_the_ends_is_kept_whatever_the_batches(
    records: list[tuple[int, Any]], size: int, events: list[int]
) -> None:
    ends, at = {0: 6, 1: 3}, {0: -1, 1: -1}
    messages: list[Any] = []
    for partition, key in records:
        at[partition] += 1
        messages.append(Kept(at[partition], partition, key))
    newest = {
        (m.partition(), m.key()): m.offset() for m in messages if m.offset() < ends[m.partition()]
    }
    for place in sorted(events):
        messages.insert(place, Event(0, 0))
    messages += [Event(end, partition) for partition, end in ends.items()]
    batches = [messages[n : n + size] for n in range(0, len(messages), size)]
    found = reading_of(ends, *batches)
    latest = {(r.partition, r.key): r.offset for r in found.image("t").latest}
    read_before_the_ends = {k: o for k, o in latest.items() if newest.get(k) != o}
    assert not read_before_the_ends
    assert latest.keys() == newest.keys()


def test_of_a_topic_that_is_kept_whole_each_record_is_kept_once() -> None:
    batch = [Kept(n, 0, key) for n, key in enumerate((b"a", b"b", b"a", None))]
    found = reading_of({0: 4}, batch, keep_all=True)
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
    batch = [Kept(n, 0, key) for n, key in enumerate(keys)]
    image = reading_of({0: 6}, batch, includes={"t": lambda name: name == "a"}).image("t")
    assert [record.key for record in image.latest] == [keys[0], keys[2], keys[4], keys[5]]
    assert (image.records, image.left_out) == (6, frozenset("bc"))
