"""What a copy takes from a topic, batch by batch; small batches in a row become one, with the same
records.
"""

from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.kafka.batch_headers import HEADER
from connectctl.ops.kafka.batch_rewrite import TargetTopic, uncompressed
from connectctl.ops.kafka.copied_records import (
    BYTES_TOGETHER,
    MOST_TOGETHER,
    SMALL,
    CopiedRecords,
    copied_records,
)
from connectctl.ops.kafka.fetched_batches import BatchAt
from fakes.rewrittenbatches import CODECS, ROWS, STAMP, Row, found, read, repacked, written
from hypothesis import given
from hypothesis import strategies as st

LARGE: list[Row] = [(5, None, b"x" * SMALL[CODECS["none"]], [])]


def log(batches: list[list[Row]], codec: int = 0, begin: int = 0) -> bytes:
    """Batches behind each other, with offsets that go on."""
    raw, offset = b"", begin
    for rows in batches:
        raw += written(rows, offset, codec)
        offset += len(rows)
    return raw


def copies(raw: bytes, wanted: int = 0, together: bool = True) -> list[CopiedRecords]:
    data, batches = found(raw)
    return list(copied_records(3, data, batches, wanted, together))


def rows_of(some: CopiedRecords) -> list[Row]:
    return [
        row for sent in some.sent_to(TargetTopic()) for row in read(b"".join(sent.encode(STAMP)))
    ]


@given(
    st.lists(ROWS, min_size=2, max_size=8), st.sampled_from(sorted(CODECS)), st.integers(0, 1 << 40)
)
def test_small_batches_in_a_row_are_one_with_the_same_records(
    batches: list[list[Row]], codec: str, begin: int
) -> None:
    raw = log(batches, CODECS[codec], begin)
    some = copies(raw, begin)
    wanted = [row for rows in batches for row in rows]
    assert [row for each in some for row in rows_of(each)] == wanted
    assert sum(each.batches for each in some) == len(batches)
    assert some[-1].last_offset == begin + len(wanted) - 1
    if len(raw) <= min(SMALL.values()):
        assert len(some) == 1


@pytest.mark.parametrize("together", [True, False])
def test_a_large_batch_stays_as_it_is_between_small_ones(together: bool) -> None:
    rows: list[Row] = [(5, b"k", b"v", [])]
    some = copies(log([rows, rows, LARGE, rows, LARGE, rows, rows]), together=together)
    assert [each.batches for each in some] == ([2, 1, 1, 1, 2] if together else [1] * 7)
    assert [each.rows is not None for each in some] == (
        [True, False, False, False, True] if together else [False] * 7
    )
    assert [each.last_offset for each in some][-1] == 6


def test_batches_of_another_codec_are_not_put_together() -> None:
    rows: list[Row] = [(5, b"k", b"v" * 50, [])]
    raw = (
        written(rows, 0)
        + written(rows, 1)
        + written(rows, 2, CODECS["zstd"])
        + written(rows, 3, CODECS["zstd"])
    )
    some = copies(raw)
    assert [(each.batches, each.offset_of(1)) for each in some] == [(2, 1), (2, 3)]


def test_so_many_are_put_together_at_once() -> None:
    some = copies(log([[(5, None, b"v", [])]] * (MOST_TOGETHER + 2)))
    assert [each.batches for each in some] == [MOST_TOGETHER, 2]


def test_so_many_bytes_are_put_together_at_once_however_well_they_were_compressed() -> None:
    """A batch of a few hundred bytes may hold a megabyte: a thousand of them would be more than a
    task has.
    """
    rows: list[Row] = [(5, None, b"x" * (SMALL[0] - 100), [])]
    for codec in (CODECS["none"], CODECS["lz4"], CODECS["gzip"]):
        some = copies(log([rows] * 100, codec))
        assert len(some) > 1
        assert max(each.size for each in some) <= BYTES_TOGETHER + SMALL[0]
        assert sum(each.size for each in some) >= 100 * (SMALL[0] - 100)


def test_a_small_batch_of_many_bytes_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which costs to see, and so those behind it that are no smaller are taken for such ones
    unseen.
    """
    seen: list[int] = []

    def counted(data: Any, batch: BatchAt) -> bytes:
        seen.append(batch.offset)
        return uncompressed(data, batch)

    monkeypatch.setattr("connectctl.ops.kafka.batch_rewrite.uncompressed", counted)
    large: list[Row] = [(5, None, b"x" * SMALL[0], [])]
    small: list[Row] = [(5, None, b"v", [])]
    some = copies(log([large, large, small, small, large], CODECS["lz4"]))
    assert [(each.batches, each.rows is None) for each in some] == [
        (1, True),
        (1, True),
        (2, False),
        (1, True),
    ]
    assert seen == [0, 2, 3]


def test_what_lies_before_the_wanted_offset_is_left_out_of_the_first() -> None:
    rows: list[Row] = [(n, b"%d" % n, None, []) for n in range(4)]
    some = copies(log([rows, rows, rows]), wanted=2)
    assert [(len(each), each.batches, each.offset_of(0)) for each in some] == [(2, 1, 2), (8, 2, 4)]


def test_batches_of_a_codec_that_is_not_known_stay_as_they_are() -> None:
    raw = log([[(5, b"k", b"v", [])]] * 3)
    size = len(raw) // 3
    unknown = [
        repacked(raw[n : n + size], n // size, 5, raw[n + HEADER.size : n + size])
        for n in range(0, len(raw), size)
    ]
    some = copies(b"".join(unknown))
    assert [(each.batches, each.rows) for each in some] == [(1, None)] * 3
