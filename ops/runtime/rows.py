"""The rows of a DataFrame as a supply of the kernel: what is at or before the committed offset is not sent again.

Whether a row was delivered is decided by its own place in the source, never by Spark's attempts, batch ids or numbers of
partitions. So a source partition's rows come to one task, in the order of an offset that only ever grows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from connectctl.ops.errors import ConnectctlError
from connectctl.ops.model.sourcekey import connect_json
from connectctl.ops.runtime.polling import Offsets
from connectctl.ops.runtime.step import Bulk, Step

if TYPE_CHECKING:
    from connectctl.ops.runtime.step import Stored

OFFSET_TYPES = (int, str)
"""What can be a source offset: values that JSON keeps exactly and that have an order."""


class Row(NamedTuple):
    """One record to be, and its place: ``partition`` are the values of the source partition's columns."""

    partition: tuple[Any, ...]
    offset: Any
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Columns:
    """The names that source partition and offset have in the offsets topic: those of their columns."""

    partition: tuple[str, ...]
    offset: str


class Rows:
    """The rows of one task for ``topic``, ``size`` of them in a transaction. Raises ``ConnectctlError`` for a row that has
    no place, or one that is before its predecessor.
    """

    def __init__(self, rows: Iterable[Row], connector: str, topic: str, columns: Columns, size: int):
        self._rows = iter(rows)
        self._connector, self._topic, self._columns, self._size = connector, topic, columns, size
        self._in_hand: list[Row] = []
        self._waiting: deque[Row] = deque()
        self._ahead: Row | None = None
        self._seen: dict[tuple[Any, ...], Any] = {}
        self._stored: dict[tuple[Any, ...], Any] = {}
        self._over = False
        self.skipped = 0

    def resume(self, stored: Stored) -> None:
        """Begin, or begin again: what is in hand is sent once more, unless it turns out to be committed."""
        self._offsets = Offsets(self._connector, stored)
        self._stored = {}
        ahead = [self._ahead] if self._ahead is not None else []
        self._waiting, self._in_hand, self._ahead = deque([*self._in_hand, *ahead, *self._waiting]), [], None

    def step(self) -> Step | None:
        """The next rows; those with one offset are never parted."""
        taken: list[Row] = []
        while (row := self._next()) is not None:
            if len(taken) >= self._size and not self._together(taken[-1], row):
                self._ahead = row
                break
            if self._is_committed(row):
                self.skipped += 1
                continue
            taken.append(row)
        self._in_hand = taken
        if not taken:
            return None
        newest = {row.partition: row.offset for row in taken}
        offsets = {self._key(partition): self._value(offset) for partition, offset in newest.items()}
        return Step(bulks=[Bulk(self._topic, [{"key": row.key, "value": row.value} for row in taken])], offsets=offsets)

    def last(self) -> Step | None:
        """Nothing: every step is a transaction of its own."""
        return None

    def committed(self, step: Step) -> None:
        """The rows in hand are delivered."""
        self._in_hand = []

    @property
    def ended(self) -> bool:
        """Whether every row is delivered or was before."""
        return self._over and self._ahead is None and not self._in_hand and not self._waiting

    def _next(self) -> Row | None:
        if self._ahead is not None:
            ahead, self._ahead = self._ahead, None
            return ahead
        if self._waiting:
            return self._waiting.popleft()
        row = next(self._rows, None)
        if row is None:
            self._over = True
            return None
        self._check(row)
        return row

    def _check(self, row: Row) -> None:
        name = self._columns.offset
        if isinstance(row.offset, bool) or not isinstance(row.offset, OFFSET_TYPES):
            raise ConnectctlError(
                f"The column {name} has {row.offset!r}, which is no source offset",
                next_step="Give a column of whole numbers or text, without nulls.",
                code="bad-offset",
            )
        before: Any = self._seen.get(row.partition)
        offset: Any = row.offset
        if before is not None and (type(before) is not type(offset) or offset < before):
            raise ConnectctlError(
                f"The column {name} is not ordered: {row.offset!r} comes after {before!r}",
                why=f"in the source partition {connect_json(self._partition(row.partition))}",
                next_step="Give a column that only grows within a source partition.",
                code="not-ordered",
            )
        self._seen[row.partition] = row.offset

    def _together(self, one: Row, other: Row) -> bool:
        return one.partition == other.partition and one.offset == other.offset

    def _is_committed(self, row: Row) -> bool:
        if row.partition not in self._stored:
            stored = self._offsets.offset(self._partition(row.partition)) or {}
            self._stored[row.partition] = stored.get(self._columns.offset)
        committed = self._stored[row.partition]
        if committed is None:
            return False
        if type(committed) is not type(row.offset):
            raise ConnectctlError(
                f"The committed offset {committed!r} and the column {self._columns.offset} cannot be compared",
                why=f"the column has {type(row.offset).__name__}, the offset is {type(committed).__name__}",
                next_step=f"See connectctl offsets show {self._connector}",
                code="bad-offset",
            )
        return bool(row.offset <= committed)

    def _partition(self, values: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(self._columns.partition, values, strict=True))

    def _key(self, partition: tuple[Any, ...]) -> bytes:
        return self._offsets.key(self._partition(partition))

    def _value(self, offset: Any) -> bytes:
        return connect_json({self._columns.offset: offset}).encode()


def rows_of(batches: Iterable[Any], columns: Columns, key: str | None, value: str) -> Iterator[Row]:
    """The rows of Arrow record batches. ``key`` and ``value`` are columns of text or bytes."""
    for batch in batches:
        parts = [batch.column(name).to_pylist() for name in columns.partition]
        partitions = list(zip(*parts, strict=True)) if parts else [()] * batch.num_rows
        offsets = batch.column(columns.offset).to_pylist()
        keys = batch.column(key).to_pylist() if key else [None] * batch.num_rows
        values = batch.column(value).to_pylist()
        for partition, offset, k, v in zip(partitions, offsets, keys, values, strict=True):
            yield Row(partition, offset, _bytes(k), _bytes(v))


def _bytes(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
