"""Arrow's record batches as pieces, each of one source partition: where a row belongs, found by columns and not by rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from connectctl.ops.errors import ConnectctlError

OFFSET_TYPES = (int, str)
"""What can be a source offset: values that JSON keeps exactly and that have an order."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a frame are what. ``partition`` and ``offset`` have the same names in the offsets topic.

    ``timestamp`` is a column of milliseconds since the epoch.
    """

    partition: tuple[str, ...]
    offset: str
    value: str = "value"
    key: str | None = None
    timestamp: str | None = None

    @property
    def names(self) -> list[str]:
        """All of them, each once."""
        return list(dict.fromkeys(filter(None, [*self.partition, self.offset, self.key, self.value, self.timestamp])))


@dataclass(frozen=True)
class Piece:
    """Rows of one source partition, in the order in which they came; ``batch`` has the columns of a frame."""

    partition: tuple[Any, ...]
    batch: Any
    columns: Columns

    @property
    def rows(self) -> int:
        """How many there are, at least one."""
        return int(self.batch.num_rows)

    @property
    def first(self) -> Any:
        """The first offset."""
        return self._offsets[0].as_py()

    @property
    def last(self) -> Any:
        """The last offset."""
        return self._offsets[-1].as_py()

    @property
    def _offsets(self) -> Any:
        return self.batch.column(self.columns.offset)

    def slice(self, start: int, length: int | None = None) -> Piece:
        """Some of the rows."""
        whole = start == 0 and length in (None, self.rows)
        return self if whole else Piece(self.partition, self.batch.slice(start, length), self.columns)

    def disorder(self) -> tuple[Any, Any] | None:
        """The first two neighbours whose offsets go back; None where there are none."""
        import pyarrow.compute as pc

        offsets = self._offsets
        back = pc.less(offsets[1:], offsets[:-1])
        if not pc.any(back).as_py():
            return None
        at = pc.index(back, True).as_py()
        return offsets[at].as_py(), offsets[at + 1].as_py()

    def up_to(self, offset: Any) -> int:
        """How many rows are at or before ``offset``; they are the first ones, as the rows are ordered."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.first > offset:
            return 0
        if self.last <= offset:
            return self.rows
        return int(pc.sum(pc.less_equal(self._offsets, pa.scalar(offset, self._offsets.type))).as_py())

    def messages(self) -> list[dict[str, Any]]:
        """The records, as librdkafka takes many at once."""
        columns = self.columns
        values = _bytes(self.batch.column(columns.value))
        if columns.timestamp is not None:
            # A producer takes 0 for the time at which it is given a record.
            times = self.batch.column(columns.timestamp).fill_null(0).to_pylist()
            keys = _bytes(self.batch.column(columns.key)) if columns.key else [None] * self.rows
            triples = zip(keys, values, times, strict=True)
            return [{"key": key, "value": value, "timestamp": time} for key, value, time in triples]
        if columns.key is not None:
            keys = _bytes(self.batch.column(columns.key))
            return [{"key": key, "value": value} for key, value in zip(keys, values, strict=True)]
        return [{"value": value} for value in values]


def _bytes(column: Any) -> list[bytes | None]:
    """Text as UTF-8, which is what Arrow keeps it as: nothing is copied for that."""
    import pyarrow as pa

    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    found: list[bytes | None] = column.to_pylist()
    return found


def pieces(batch: Any, columns: Columns) -> list[Piece]:
    """``batch`` by source partition, each piece in the batch's order. Raises ``ConnectctlError`` for a null offset."""
    import pyarrow as pa

    offsets = batch.column(columns.offset)
    known = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string)
    if offsets.null_count or not any(is_it(offsets.type) for is_it in known):
        has = "a null" if offsets.null_count else f"a {offsets.type}"
        raise ConnectctlError(
            f"The column {columns.offset} has {has}, which is no source offset",
            next_step="Give a column of whole numbers or text, without nulls.",
            code="bad-offset",
        )
    return [
        Piece(tuple(part.column(name)[0].as_py() for name in columns.partition), part, columns)
        for part in _by_partition(batch, columns.partition)
    ]


def _by_partition(batch: Any, names: tuple[str, ...]) -> Iterator[Any]:
    import numpy as np
    import pyarrow as pa

    codes = None
    for name in names:
        encoded = batch.column(name).dictionary_encode(null_encoding="encode")
        if len(encoded.dictionary) == 1:
            continue
        indices = encoded.indices.to_numpy().astype(np.int64)
        if codes is not None:
            # Made dense again each time: no product of dictionaries is larger than the square of a batch.
            _, codes = np.unique(codes, return_inverse=True)
            indices += codes * len(encoded.dictionary)
        codes = indices
    if codes is None:
        yield batch
        return
    starts = np.flatnonzero(np.diff(codes)) + 1
    if len(starts) + 1 > len(np.unique(codes)):
        # NumPy sorts two bytes by radix, many times as fast as eight, and that keeps the order of equal ones.
        _, codes = np.unique(codes, return_inverse=True)
        order = np.argsort(codes.astype(np.uint16) if codes.max() < 1 << 16 else codes, kind="stable")
        batch, codes = batch.take(pa.array(order)), codes[order]
        starts = np.flatnonzero(np.diff(codes)) + 1
    bounds = [0, *starts.tolist(), batch.num_rows]
    for start, end in pairwise(bounds):
        yield batch.slice(start, end - start)
