"""Batches of a few records: byte for byte those of columns."""

from __future__ import annotations

import time
from typing import Any

import pytest
from connectctl.ops.kafka import record_batch_encoder, small_batches
from connectctl.ops.kafka.record_batch_encoder import ProducerState, RowBatch, batches
from connectctl.ops.kafka.record_columns import Rows
from connectctl.ops.kafka.varints import joined, varint, varints
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords

STAMP = ProducerState(4_000_000_001, 7, 11)
VALUES = (
    st.none()
    | st.binary(max_size=80)
    | st.integers(60, 70).map(bytes)
    | st.integers(8_100, 8_200).map(bytes)
)
TIMES = st.none() | st.sampled_from([0, -1]) | st.integers(1, 1 << 45)
HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=70), VALUES), max_size=3)
RECORDS = st.lists(st.tuples(VALUES, VALUES, TIMES, HEADERS), min_size=1, max_size=20)


def rows_of(records: list[tuple[Any, Any, Any, Any]]) -> Rows:
    rows = Rows()
    for record in records:
        rows.add(*record)
    return rows


def encoded(found: list[RowBatch]) -> list[tuple[int, int, bytes]]:
    return [(batch.start, batch.end, b"".join(batch.encode(STAMP))) for batch in found]


@given(
    RECORDS,
    st.randoms(use_true_random=False),
    st.integers(1, 4),
    st.sampled_from([300, 9_000, 1_000_000]),
)
def test_they_are_those_of_columns_in_any_order_with_any_cuts_and_any_limit(
    records: list[tuple[Any, Any, Any, Any]], chance: Any, parts: int, limit: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module in (record_batch_encoder, small_batches):
            patch.setattr(module.time, "time", lambda: 1_700_000_000.0)
        rows, order = rows_of(records), list(range(len(records)))
        chance.shuffle(order)
        cuts = sorted(chance.randint(0, len(order)) for _ in range(parts))
        found = small_batches.small_batches(rows, order, cuts, limit)
        assert encoded(found) == encoded(
            batches(rows_of([records[n] for n in order]).columns(), limit, cuts)
        )


@pytest.mark.parametrize("size", range(160, 180))
def test_a_batch_without_headers_is_full_at_the_same_byte(size: int) -> None:
    records = [
        (None, bytes(5), None, None),
        (None, bytes(size // 2), None, None),
        (None, bytes(size // 3), None, None),
    ]
    rows = rows_of(records)
    found = [
        (batch.start, batch.end) for batch in small_batches.small_batches(rows, [0, 1, 2], [], 300)
    ]
    assert found == [(batch.start, batch.end) for batch in batches(rows.columns(), 300)]


def test_records_without_a_time_have_that_of_now_and_text_is_as_good_as_bytes() -> None:
    given: Any = ("ké", "wért", None, [("a", "é"), ("b", None)])
    rows = rows_of([given])
    before = int(time.time() * 1000)
    (batch,) = small_batches.small_batches(rows, [0], [], 1000)
    read: Any = MemoryRecords(b"".join(batch.encode(STAMP))).next_batch()
    (record,) = read
    assert before <= record.timestamp <= int(time.time() * 1000)
    assert (record.key, record.value, record.headers) == (
        "ké".encode(), "wért".encode(), [("a", "é".encode()), ("b", None)]
    )  # fmt: skip


@given(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-70, 70) | st.integers(8_180, 8_200))
def test_a_number_is_what_it_is_in_a_column(number: int) -> None:
    import numpy as np

    assert [varint(number)] == joined([varints(np.array([number]))]).to_pylist()
