"""Records that come as columns tell what the same records tell as librdkafka's messages."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from connectctl.ops.audit.field_extractor import by_spec, sequence_spec
from connectctl.ops.audit.sequences import SequenceRange
from connectctl.ops.clients.kafka_protocol import column_reader
from connectctl.ops.clients.kafka_protocol.column_reader import portions_of
from connectctl.ops.jobs.audit_sequences import Runs, Wanted
from connectctl.ops.kafka import record_batch_decoder
from connectctl.ops.kafka.batch_headers import HEADER, LENGTH
from connectctl.ops.kafka.compression import unpacked
from connectctl.ops.kafka.fetched_batches import CommittedBatches
from connectctl.ops.kafka.record_batch_decoder import PADDING, Body, Columns, Garbled, columns
from connectctl.ops.kafka.topic_partition import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""A key, a value, headers."""
RAW = st.none() | st.binary(max_size=70)
ROWS = st.lists(
    st.tuples(RAW, RAW, st.lists(st.tuples(st.text(max_size=5), RAW), max_size=2)), max_size=12
)
CODECS: dict[int, Callable[[bytes], bytes]] = {
    0: bytes,
    1: gzip.compress,
    3: lambda raw: bytes(pa.compress(raw, "lz4", asbytes=True)),
    4: lambda raw: bytes(pa.compress(raw, "zstd", asbytes=True)),
}


def varint(number: int) -> bytes:
    rest, found = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*found, rest))


def sized(raw: bytes | None) -> bytes:
    return varint(-1) if raw is None else varint(len(raw)) + raw


def batch(
    rows: list[Row], offset: int, *, codec: int = 0, attributes: int = 0, producer: int = -1
) -> bytes:
    """A batch from ``offset`` on, a record every two offsets and a second."""
    body = b""
    for n, (key, value, headers) in enumerate(rows):
        many = varint(len(headers)) + b"".join(
            sized(name.encode()) + sized(raw) for name, raw in headers
        )
        record = b"\0" + varint(1000 * n) + varint(2 * n) + sized(key) + sized(value) + many
        body += varint(len(record)) + record
    packed = CODECS[codec](body)
    length, delta = HEADER.size - LENGTH.size + len(packed), max(0, 2 * len(rows) - 1)
    return (
        HEADER.pack(
            offset, length, 0, 2, 0, attributes | codec, delta, 5, 9, producer, 0, -1, len(rows)
        )
        + packed
    )


def marker(offset: int, producer: int, outcome: int) -> bytes:
    record = (
        b"\x00\x00\x00\x08"
        + struct.pack(">hh", 0, outcome)
        + b"\x0c"
        + struct.pack(">hi", 0, 3)
        + b"\x00"
    )
    body = bytes([len(record) * 2]) + record
    length = HEADER.size - LENGTH.size + len(body)
    return HEADER.pack(offset, length, 0, 2, 0, 0x30, 0, 1, 2, producer, 0, -1, 1) + body


def padded(raw: bytes) -> Any:
    return np.frombuffer(raw + bytes(PADDING), np.uint8)


def read(raw: bytes, aborted: list[tuple[int, int]] | None = None) -> list[Columns]:
    data = padded(raw)
    return [
        some for some, _ in portions_of(data, list(CommittedBatches(data, len(raw), aborted or [])))
    ]


def told(some: Columns) -> list[Any]:
    return [(r.offset(), r.key(), r.value(), r.headers(), r.timestamp()) for r in some.records()]


@given(
    st.lists(ROWS, max_size=5),
    st.sampled_from(list(CODECS)),
    st.sampled_from([1, 10_000]),
    st.integers(1, 100),
)
def test_what_is_read_is_what_was_written(
    batches: list[list[Row]], codec: int, lanes: int, portion: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_batch_decoder, "LANES", lanes)
        patch.setattr(column_reader, "UNPACKED", portion)
        found = read(b"".join(batch(rows, 100 * n, codec=codec) for n, rows in enumerate(batches)))
    assert [row for some in found for row in told(some)] == [
        (100 * n + 2 * at, key, value, headers, (1, 5 + 1000 * at))
        for n, rows in enumerate(batches)
        for at, (key, value, headers) in enumerate(rows)
    ]
    keys = [key for some in found for key in some.keys.to_pylist()]
    assert keys == [key for rows in batches for key, _, _ in rows]


def test_a_record_that_is_long_or_late_has_numbers_of_many_bytes() -> None:
    rows: list[Row] = [(b"k" * 200, b"v" * 70_000, [("h", b"x" * 300)])] * 9_000
    (some,) = read(
        batch(rows[:3], 1 << 60)
        + batch([(None, b"%d" % n, []) for n in range(9_000)], (1 << 60) + 6)
    )
    assert told(some.between(1 << 60, (1 << 60) + 6)) == [
        ((1 << 60) + 2 * n, *rows[0], (1, 5 + 1000 * n)) for n in range(3)
    ]
    assert told(some)[-1] == ((1 << 60) + 6 + 2 * 8_999, None, b"8999", [], (1, 5 + 8_999_000))


def test_the_time_is_the_brokers_where_it_sets_it() -> None:
    (some,) = read(batch([(None, b"a", []), (None, b"b", [])], 0, attributes=0x08))
    assert [record.timestamp() for record in some.records()] == [(2, 9), (2, 9)]


def test_what_was_aborted_is_left_out_up_to_its_marker() -> None:
    log = [
        batch([(None, b"gone", [])], 0, attributes=0x10, producer=7),
        batch([(None, b"plain", [])], 2, producer=7),
        batch([(None, b"other", [])], 4, attributes=0x10, producer=8),
        marker(6, 7, 0),
        batch([(None, b"kept", [])], 7, attributes=0x10, producer=7),
        marker(9, 7, 1),
        marker(10, 8, 1),
    ]
    (some,) = read(b"".join(log), [(7, 0)])
    assert [record.value() for record in some.records()] == [b"plain", b"other", b"kept"]
    (later,) = read(b"".join(log), [(7, 7)])
    assert [record.value() for record in later.records()] == [b"gone", b"plain", b"other"]


def test_a_batch_that_is_cut_off_is_left_for_the_next_answer() -> None:
    log = batch([(None, b"a", [])], 0) + batch([(None, b"b", [])], 2)
    answer = CommittedBatches(padded(log[:-1]), len(log) - 1, [])
    assert len(list(answer)) == 1
    assert (answer.next_offset, answer.is_old) == (2, False)


def test_snappy_is_read_as_java_and_as_librdkafka_write_it() -> None:
    raw = b"record " * 1000
    block = pa.compress(raw, "snappy", asbytes=True)
    assert unpacked(block, 2) == raw
    framed = (
        b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + 2 * (struct.pack(">i", len(block)) + block)
    )
    assert unpacked(framed, 2) == raw + raw


@pytest.mark.parametrize("lanes", [1, 10_000])
@pytest.mark.parametrize(
    "raw",
    [
        b"\xff" * 40,
        b"\x02" * 40,
        b"\x7e" * 40,
        b"\x10\0\0\0\x01\x7e" + bytes(34),
        b"\x04\0\0" + bytes(37),
    ],
)
def test_bytes_that_are_no_records_are_refused(
    raw: bytes, lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_batch_decoder, "LANES", lanes)
    with pytest.raises(Garbled):
        columns(padded(raw), [Body(0, len(raw), 3, 0, 0), Body(0, len(raw), 2, 0, 0)])


# ----------------------------------------------------------------------------------- what they tell


class Message:
    """A record as librdkafka gives it."""

    def __init__(self, offset: int, row: Row, at: int) -> None:
        self._told, self._at = (offset, *row), at

    def offset(self) -> int:
        return self._told[0]

    def key(self) -> bytes | None:
        return self._told[1]

    def value(self) -> bytes | None:
        return self._told[2]

    def headers(self) -> list[tuple[str, bytes | None]]:
        return self._told[3]

    def timestamp(self) -> tuple[int, int]:
        return 1, self._at


NUMBER = st.integers(0, 5) | st.sampled_from(
    [2**63 - 1, -(2**63), "3", 3.0, None, True, "x", 2**70]
)
VALUE = st.fixed_dictionaries(
    {"seq": NUMBER}, optional={"by": st.sampled_from([0, 1, "1", "a", None, 1.5])}
).map(lambda each: json.dumps(each).encode()) | st.sampled_from(
    [None, b"", b"no json", b'{\n"seq":\n3}', b'{"payload":{"seq":4},"schema":null}', b"[1]", b"  "]
)
KEY = st.sampled_from([None, b"", b"a", b'{"by":1}', b"\xff"])
HEADED = st.lists(st.tuples(st.just("s"), st.sampled_from([b"1", b"2", None])), max_size=1)


def runs_of(wanted: Wanted, batches: list[Any]) -> list[SequenceRange]:
    runs = Runs(wanted)
    found = [run for some in batches for run in runs.take(TopicPartition("t", 3), some)]
    return sorted([*found, *runs.rest()], key=str)


@given(
    st.lists(st.lists(st.tuples(KEY, VALUE, HEADED), min_size=1, max_size=8), max_size=4),
    st.sampled_from(["$.seq", "header:s", r"text:(\d)", "$"]),
    st.sampled_from(["key", "partition", "$.by", "key:$.by", "header:s"]),
    st.booleans(),
)
def test_the_runs_in_columns_are_those_in_messages(
    batches: list[list[Row]], sequence: str, by: str, measure: bool
) -> None:
    wanted = Wanted(sequence_spec(sequence), by_spec(by), measure=measure)
    messages = [
        [Message(100 * n + 2 * at, row, 5 + 1000 * at) for at, row in enumerate(rows)]
        for n, rows in enumerate(batches)
    ]
    some = [each for n, rows in enumerate(batches) for each in read(batch(rows, 100 * n))]
    assert runs_of(wanted, some) == runs_of(wanted, messages)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=60))
def test_source_partitions_that_alternate_have_their_own_runs(told_: list[tuple[int, int]]) -> None:
    rows: list[Row] = [(b"task-%d" % task, b'{"seq":%d}' % n, []) for task, n in told_]
    wanted = Wanted(sequence_spec("$.seq"))
    messages = [Message(2 * n, row, 5 + 1000 * n) for n, row in enumerate(rows)]
    assert runs_of(wanted, read(batch(rows, 0))) == runs_of(wanted, [messages])
