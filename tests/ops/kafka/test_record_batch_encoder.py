"""Columns as Kafka's batches: read back by another library's code, they are the records that went
in.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from connectctl.ops.kafka.compression import CODECS
from connectctl.ops.kafka.record_batch_encoder import (
    ProducerState,
    RecordColumns,
    RowBatch,
    batches,
)
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords

STAMP = ProducerState(producer_id=4_000_000_001, epoch=7, sequence=11)
VALUES = st.none() | st.binary(max_size=80) | st.integers(8_000, 9_000).map(bytes)
TIMES = st.integers(1, 1 << 45)


def columnar(rows: list[tuple[Any, Any, int]], *, keyed: bool, timed: bool) -> RecordColumns:
    keys = pa.array([key for key, _, _ in rows], pa.binary()) if keyed else None
    times = np.array([at for _, _, at in rows], np.int64) if timed else None
    return RecordColumns(pa.array([value for _, value, _ in rows], pa.binary()), keys, times)


def read(encoded: bytes) -> tuple[Any, list[Any]]:
    batch = MemoryRecords(encoded).next_batch()
    assert batch.validate_crc()
    return batch, list(batch)


@given(
    st.lists(st.tuples(VALUES, VALUES, TIMES), min_size=1, max_size=40),
    st.booleans(),
    st.booleans(),
)
def test_what_is_read_is_what_was_written(
    rows: list[tuple[Any, Any, int]], keyed: bool, timed: bool
) -> None:
    found = batches(columnar(rows, keyed=keyed, timed=timed), 20_000)
    records = [record for batch in found for record in read(b"".join(batch.encode(STAMP)))[1]]
    assert [record.value for record in records] == [value for _, value, _ in rows]
    assert [record.key for record in records] == [key if keyed else None for key, _, _ in rows]
    assert [len(record.headers) for record in records] == [0] * len(rows)
    if timed:
        assert [record.timestamp for record in records] == [at for _, _, at in rows]
    assert [record.offset for record in records] == [
        n for batch in found for n in range(len(batch))
    ]


HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@given(
    st.lists(
        st.none() | st.lists(st.tuples(st.text(max_size=70), VALUES), max_size=4),
        min_size=1,
        max_size=40,
    ),
    st.integers(0, 3),
    st.booleans(),
)
def test_headers_are_those_of_their_record_however_the_column_is_cut(
    given_: list[Any], cut: int, taken: bool
) -> None:
    column = pa.array(
        [
            None if some is None else [{"key": key, "value": value} for key, value in some]
            for some in given_
        ],
        HEADERS,
    ).slice(cut)
    values = pa.array([b"%d" % n for n in range(len(given_))]).slice(cut)
    rows = RecordColumns(values, values, None, column)
    if taken and len(rows):
        rows = rows.take(pa.array(range(len(rows))))
    found = batches(rows, 20_000)
    assert all(len(b"".join(batch.encode(STAMP))) <= 20_000 or len(batch) == 1 for batch in found)
    records = [record for batch in found for record in read(b"".join(batch.encode(STAMP)))[1]]
    assert [(record.value, record.headers) for record in records] == [
        (b"%d" % n, some or []) for n, some in enumerate(given_) if n >= cut
    ]
    assert rows.header_lists() == [some or [] for some in given_[cut:]]


@given(
    st.lists(st.binary(max_size=300), min_size=1, max_size=100),
    st.integers(400, 3_000),
    st.sets(st.integers(0, 99)),
)
def test_no_batch_is_larger_than_the_limit_or_goes_over_a_cut(
    values: list[bytes], limit: int, cuts: set[int]
) -> None:
    found = batches(RecordColumns(pa.array(values, pa.binary())), limit, sorted(cuts))
    assert [n for batch in found for n in range(batch.start, batch.end)] == list(range(len(values)))
    assert all(len(b"".join(batch.encode(STAMP))) <= limit for batch in found)
    assert {cut for cut in cuts if 0 < cut < len(values)} <= {batch.start for batch in found}


def test_a_record_that_is_larger_than_the_limit_is_alone() -> None:
    found = batches(RecordColumns(pa.array([b"a", bytes(1_000), b"b", b"c"])), 500)
    assert [(batch.start, batch.end) for batch in found] == [(0, 1), (1, 2), (2, 4)]


# This reader has no Zstandard; of that tests/live/test_runtime_kernel.py tells.
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_batch_is_of_its_producer_and_its_transaction(codec: str) -> None:
    batch = whole(
        RecordColumns(pa.array([b"one" * 500, None, b"three"]), pa.array([b"k", None, b"k"]))
    )
    header, records = read(b"".join(batch.encode(STAMP, codec)))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (
        4_000_000_001,
        7,
        11,
    )
    assert (header.is_transactional, header.is_control_batch, header.last_offset_delta) == (
        True,
        False,
        2,
    )
    assert header.compression_type == CODECS[codec]
    assert [(record.key, record.value) for record in records] == [
        (b"k", b"one" * 500),
        (None, None),
        (b"k", b"three"),
    ]


def test_records_without_a_time_have_that_of_now_and_the_last_time_is_the_latest() -> None:
    before = int(time.time() * 1000)
    header, (first, second) = read(
        b"".join(
            whole(RecordColumns(pa.array([b"a", b"b"]), None, np.array([1 << 45, -1]))).encode(
                STAMP
            )
        )
    )
    assert first.timestamp == header.max_timestamp == 1 << 45
    assert before <= second.timestamp <= int(time.time() * 1000)


def test_a_time_of_0_is_a_time() -> None:
    header, records = read(
        b"".join(whole(RecordColumns(pa.array([b"a", b"b"]), None, np.array([0, 1]))).encode(STAMP))
    )
    assert ([record.timestamp for record in records], header.max_timestamp) == ([0, 1], 1)


def test_slices_of_large_columns_are_written_as_what_they_are() -> None:
    values = pa.array([b"%d" % n for n in range(200)], pa.large_binary()).slice(150, 3)
    _, records = read(
        b"".join(
            whole(RecordColumns(values, pa.array([b"x", b"y", b"z"]).slice(0, 3))).encode(STAMP)
        )
    )
    assert [record.value for record in records] == [b"150", b"151", b"152"]


def test_nothing_is_no_batch() -> None:
    assert batches(RecordColumns(pa.array([], pa.binary())), 1_000) == []


def whole(rows: RecordColumns) -> RowBatch:
    (found,) = batches(rows, 1_000_000)
    return found
