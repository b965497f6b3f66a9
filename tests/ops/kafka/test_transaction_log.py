"""Records of the transaction log: read as they were written, in both versions; whatever else it may
be is told.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transaction_log import STATES, LogEntry, Unreadable, parse, producer_of
from fakes.transactionlog import key_of, value_of
from hypothesis import given
from hypothesis import strategies as st

LONG = st.integers(-(1 << 63), (1 << 63) - 1)
SHORT = st.integers(-(1 << 15), (1 << 15) - 1)
TOPIC = st.text("abc.-_ü", min_size=1, max_size=200)
PLACE = st.builds(TopicPartition, TOPIC, st.integers(0, 200))
ENTRY = st.builds(
    LogEntry,
    id=st.text(min_size=1, max_size=40),
    producer_id=LONG,
    epoch=SHORT,
    timeout_ms=st.integers(0, (1 << 31) - 1),
    state=st.sampled_from(STATES),
    topic_partitions=st.frozensets(PLACE, max_size=12),
    updated_ms=LONG,
    started_ms=LONG,
    previous_producer_id=LONG,
    next_producer_id=LONG,
    client_version=SHORT,
)
PLAIN = LogEntry(
    "a", 3, 2831, 60_000, "CompleteCommit", frozenset(), 1_700_000_000_000, -1, client_version=2
)


@given(ENTRY, st.lists(st.tuples(st.integers(3, 300), st.binary(max_size=5)), max_size=2))
def test_an_entry_is_read_as_it_was_written_whatever_fields_are_added(
    entry: LogEntry, more: list[tuple[int, bytes]]
) -> None:
    assert parse(key_of(entry.id), value_of(entry, 1, more)) == entry
    old = replace(entry, previous_producer_id=-1, next_producer_id=-1, client_version=0)
    assert parse(key_of(entry.id), value_of(old, 0)) == old
    assert producer_of(value_of(entry, 1)) == producer_of(value_of(old, 0)) == entry.producer_id


def test_what_a_real_broker_wrote_is_read() -> None:
    """A transaction of a KIP-890 client on 4.3.1, from the producer's initialisation to the
    decision.
    """
    key = bytes.fromhex("00000015") + b"connect-prod-orders-0"
    head, tail = "00010000000000000001", "020008000000000000000102020002"
    topic = "020e" + b"orders-55e662".hex() + "020000000000"
    values = [
        f"{head} 0000 0000ea60 00 00 000001a200b03d48 ffffffffffffffff 010008 0000000000000001",
        f"{head} 0000 0000ea60 01 {topic} 000001a200b03d65 000001a200b03d65 {tail}",
        f"{head} 0001 0000ea60 02 {topic} 000001a200b03e65 000001a200b03d65 {tail}",
    ]
    at, began = 0x1A200B03E65, 0x1A200B03D65
    place = frozenset({TopicPartition("orders-55e662", 0)})
    name, none = "connect-prod-orders-0", frozenset[TopicPartition]()
    assert [parse(key, bytes.fromhex(value)) for value in values] == [
        LogEntry(name, 1, 0, 60_000, "Empty", none, 0x1A200B03D48, -1, previous_producer_id=1),
        LogEntry(
            name,
            1,
            0,
            60_000,
            "Ongoing",
            place,
            began,
            began,
            previous_producer_id=1,
            client_version=2,
        ),
        LogEntry(
            name,
            1,
            1,
            60_000,
            "PrepareCommit",
            place,
            at,
            began,
            previous_producer_id=1,
            client_version=2,
        ),
    ]


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        (
            key_of("a", version=1),
            value_of(PLAIN, 1),
            Unreadable(None, "a key has the unknown version 1"),
        ),
        (
            key_of("a"),
            b"\x00\x02" + b"?" * 40,
            Unreadable("a", "a value has the unknown version 2"),
        ),
        (key_of("a"), b"\xff\xff", Unreadable("a", "a value has the unknown version -1")),
        (
            key_of("a"),
            value_of(PLAIN, 0)[:16] + b"\x09" + value_of(PLAIN, 0)[17:],
            Unreadable("a", "a value has the unknown state 9"),
        ),
    ],
)
def test_what_is_not_known_is_told(key: bytes, value: bytes, told: Unreadable) -> None:
    assert parse(key, value) == told


def test_an_id_that_has_expired_is_no_entry() -> None:
    assert parse(key_of("a"), None) is None
    assert isinstance(parse(None, None), Unreadable)


@given(ENTRY, st.sampled_from([0, 1]), st.data())
def test_a_record_that_is_cut_off_is_told(
    entry: LogEntry, version: int, data: st.DataObject
) -> None:
    value = value_of(entry, version)
    cut = value[: data.draw(st.integers(0, len(value) - 1))]
    found = parse(key_of(entry.id), cut)
    assert isinstance(found, Unreadable)
    assert found.id == entry.id


@given(st.binary(max_size=60), st.binary(max_size=80))
def test_no_bytes_make_it_fail(key: bytes, value: bytes) -> None:
    parse(key, value)
    parse(key_of("a"), value)
    producer_of(value)
