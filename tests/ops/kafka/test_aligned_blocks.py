"""Blocks of several places hold the same keys, however they were cut; and what is handled in large is not given again."""

from __future__ import annotations

from itertools import pairwise

import pytest
from connectctl.ops.kafka import aligned_blocks
from connectctl.ops.kafka.aligned_blocks import Blocks, aligned, are_single, have_same, left_over
from connectctl.ops.kafka.records import GROUP, KEY, PARTITION, VALUE, Row
from hypothesis import given
from hypothesis import strategies as st

KEYS = [(group, key) for group in (b"a", b"b") for key in (b"k", b"l", b"m", b"n", b"o")]
ROWS = st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 2), st.sampled_from([b"1", b"2", None])), max_size=20)
Given = list[tuple[tuple[bytes, bytes], int, bytes | None]]
STREAM = st.tuples(ROWS, st.integers(1, 6))


def cut(rows: Given, size: int) -> list[list[Row]]:
    """Blocks of at least ``size`` rows, of which none ends amid a key, in order; some are empty."""
    blocks: list[list[Row]] = [[]]
    newest = {(place, partition): value for place, partition, value in rows}
    for ((group, key), partition), value in sorted(newest.items(), key=lambda item: item[0]):
        if len(blocks[-1]) >= size and blocks[-1][-1][:2] != (group, key):
            blocks += [[], []]
        blocks[-1].append((group, key, False, partition, 7, None, value))
    return blocks


def flat(blocks: list[list[Row]]) -> list[Row]:
    return [row for rows in blocks for row in rows]


@given(st.lists(STREAM, max_size=4))
def test_every_row_comes_once_and_a_key_comes_from_all_places_together(given_: list[tuple[Given, int]]) -> None:
    streams = [cut(rows, size) for rows, size in given_]
    found = list(aligned(streams))
    assert [flat([blocks[n] for blocks in found]) for n in range(len(streams))] == list(map(flat, streams))
    keys = [{row[:2] for rows in blocks for row in rows} for blocks in found]
    assert all(keys)
    assert all(max(these) < min(those) for these, those in pairwise(keys))


@given(STREAM, STREAM, st.integers(1, 5))
def test_what_is_left_over_are_the_keys_that_are_not_alike(
    one: tuple[Given, int], other: tuple[Given, int], few: int
) -> None:
    streams = [cut(*one), cut(*other)]

    def are_alike(blocks: Blocks) -> bool:
        return have_same(blocks[0], blocks[1], GROUP, KEY, PARTITION, VALUE)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aligned_blocks, "FEW", few)
        found = list(left_over(streams, are_alike))
    by_key = [{place: [r for r in flat(blocks) if r[:2] == place] for place in KEYS} for blocks in streams]
    assert found == [[by_key[0][place], by_key[1][place]] for place in KEYS if by_key[0][place] != by_key[1][place]]


def test_rows_are_single_where_no_key_has_two() -> None:
    rows = flat(cut([(KEYS[0], 0, b"1"), (KEYS[1], 0, b"1"), (KEYS[1], 2, b"1"), (KEYS[2], 0, b"1")], 1))
    assert [are_single(some) for some in (rows, rows[:2], rows[2:], [])] == [False, True, True, True]
