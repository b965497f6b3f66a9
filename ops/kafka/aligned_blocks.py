"""Sorted records of several places side by side: blocks that hold the same range of keys, compared many rows at once.

To look at a row of a million at a time takes Python microseconds, to compare two lists of rows a tenth of one for each. So
what is alike in large is never looked at row by row, and what is not is halved until only keys that differ are left.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import eq, itemgetter
from typing import Any

from connectctl.ops.kafka.records import GROUP, KEY, Row

Blocks = Sequence[list[Row]]
"""Rows of one range of keys, of each place those that it has: none of a key is elsewhere."""
FEW = 32
"""Rows from which on they are gone through key by key, and not halved any more."""

_PLACE = itemgetter(GROUP, KEY)


def aligned(streams: Sequence[Iterable[list[Row]]]) -> Iterator[Blocks]:
    """The blocks of each place, all cut where the first of them ends.

    The rows of a stream are in the order of groups and keys, and no block of it ends amid a key.
    """
    ahead = [_Ahead(iter(stream)) for stream in streams]
    while ends := [each.end for each in ahead if each.rows]:
        # What is not beyond the first end is there of all of them: what they have not given yet comes later.
        end = min(ends)
        yield [each.until(end) for each in ahead]


class _Ahead:
    """A stream, one block of it in memory: ``rows``, none at its end, and ``end``, the key of the last of them."""

    def __init__(self, blocks: Iterator[list[Row]]) -> None:
        self._blocks, self._next = blocks, 0
        self.rows: list[Row] = []
        self.end = b"", b""
        self._load()

    def until(self, end: tuple[bytes, bytes]) -> list[Row]:
        """Takes the rows whose keys are not beyond ``end``."""
        if not self.rows:
            return []
        if self.end <= end:
            found = self.rows[self._next :] if self._next else self.rows
            self._load()
            return found
        begin, self._next = self._next, bisect_right(self.rows, end, self._next, key=_PLACE)
        return self.rows[begin : self._next]

    def _load(self) -> None:
        self.rows = next((rows for rows in self._blocks if rows), [])
        self._next = 0
        if self.rows:
            self.end = _PLACE(self.rows[-1])


def left_over(streams: Sequence[Iterable[list[Row]]], handled: Callable[[Blocks], bool]) -> Iterator[Blocks]:
    """The rows of each key that are not ``handled``, key by key, in order.

    ``handled`` is asked about whole blocks, then about halves of those it refused, and at last about single keys.
    """
    for blocks in aligned(streams):
        yield from _left_over(blocks, handled)


def _left_over(blocks: Blocks, handled: Callable[[Blocks], bool]) -> Iterator[Blocks]:
    if handled(blocks):
        return
    longest = max(blocks, key=len)
    middle = _PLACE(longest[len(longest) // 2])
    cuts = [bisect_left(rows, middle, key=_PLACE) for rows in blocks]
    if are_many(blocks) and any(cuts):
        yield from _left_over([rows[:cut] for rows, cut in zip(blocks, cuts, strict=True)], handled)
        yield from _left_over([rows[cut:] for rows, cut in zip(blocks, cuts, strict=True)], handled)
        return
    parts = list(_by_key(blocks))
    yield from (part for part in parts if len(parts) == 1 or not handled(part))


def are_many(blocks: Blocks) -> bool:
    """Whether it is worth the while to look at the rows together."""
    return max(map(len, blocks)) > FEW


def _by_key(blocks: Blocks) -> Iterator[Blocks]:
    starts = [0] * len(blocks)
    while firsts := [_PLACE(rows[at]) for rows, at in zip(blocks, starts, strict=True) if at < len(rows)]:
        key = min(firsts)
        ends = [bisect_right(rows, key, at, key=_PLACE) for rows, at in zip(blocks, starts, strict=True)]
        yield [rows[at:end] for rows, at, end in zip(blocks, starts, ends, strict=True)]
        starts = ends


def column(rows: Iterable[Row], number: int) -> list[Any]:
    """What the rows have in one place: ``KEY``, ``VALUE`` and the like."""
    return list(map(itemgetter(number), rows))


def have_same(left: list[Row], right: list[Row], *numbers: int) -> bool:
    """Whether two places have the same rows, as far as these columns tell."""
    return len(left) == len(right) and all(column(left, n) == column(right, n) for n in numbers)


def are_single(rows: Sequence[Row]) -> bool:
    """Whether no key is in two of the rows, which are in the order of their keys."""
    keys = column(rows, KEY)
    return not any(map(eq, keys, islice(keys, 1, None)))
