"""Arrow's record batches as pieces, each of one source partition: where a row belongs, found by
columns and not by rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.partitioner import stable_order
from connectctl.ops.kafka.record_batch_encoder import RecordColumns

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.spi.schema import Schema

BytesOf = Callable[[str, Any, Callable[[int], str]], Any]
"""Makes bytes of a column of keys or values (``column_conversion.ColumnConverter.bytes_of``)."""


@dataclass(frozen=True)
class FrameColumns:
    """Which columns of a frame are what. ``partition`` and ``offset`` have the same names in the
    offsets topic.

    ``timestamp`` is a column of milliseconds since the epoch, ``headers`` one as Spark's Kafka sink
    takes it. ``converters`` are the properties ``key.converter`` and ``value.converter`` with those
    below them, and ``schemas`` what the driver found for these parts
    (``column_conversion.with_schemas``).
    """

    partition: tuple[str, ...]
    offset: str
    value: str = "value"
    key: str | None = None
    timestamp: str | None = None
    headers: str | None = None
    converters: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[str, Schema] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        records = self.key, self.value, self.timestamp, self.headers
        return list(dict.fromkeys(filter(None, [*self.partition, self.offset, *records])))

    def row_name(self, batch: Any, row: int) -> str:
        """Return a row of ``batch`` by its source partition and offset."""
        partition = {name: batch.column(name)[row].as_py() for name in self.partition}
        offset = {self.offset: batch.column(self.offset)[row].as_py()}
        return f"The row of {connect_json(partition)} at {connect_json(offset)}"

    def disorder(self, partition: tuple[Any, ...], before: Any, after: Any) -> ConnectctlError:
        """Return the error of ``after``, which comes after ``before``."""
        values = dict(zip(self.partition, partition, strict=True))
        return ConnectctlError(
            f"The column {self.offset} is not ordered: {after!r} comes after {before!r}",
            why=f"in the source partition {connect_json(values)}",
            next_step="Use a column that is increasing within a source partition.",
            code="not-ordered",
        )


class PartitionSlice(NamedTuple):
    """``rows`` rows of one source partition from ``start`` on in ``batch``, ordered by offsets from
    ``first`` to ``last``.

    There may be as many of them as rows, so that nothing is cut out of the batch before it has to
    be.
    """

    partition: tuple[Any, ...]
    first: Any
    last: Any
    batch: Any
    start: int
    rows: int
    offset: str

    def slice(self, start: int, length: int | None = None) -> PartitionSlice:
        """Some of the rows, at least one."""
        rows = self.rows - start if length is None else length
        if rows == self.rows:
            return self
        offsets = self.batch.column(self.offset)
        at = self.start + start
        return self._replace(
            first=offsets[at].as_py(), last=offsets[at + rows - 1].as_py(), start=at, rows=rows
        )

    def up_to(self, offset: Any) -> int:
        """Return the number of rows at or before ``offset``; they are the first ones, as the rows
        are ordered.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.first > offset:
            return 0
        if self.last <= offset:
            return self.rows
        offsets = self.batch.column(self.offset).slice(self.start, self.rows)
        return int(pc.sum(pc.less_equal(offsets, pa.scalar(offset, offsets.type))).as_py())


def partition_slices(batch: Any, columns: FrameColumns) -> list[PartitionSlice]:
    """Return ``batch`` by source partition, each piece in the batch's order.

    Raises ``ConnectctlError`` for an offset that is null, or before its predecessor.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    _check_offsets(batch, columns)
    batch, starts = _by_partition(batch, columns.partition)
    ends = np.append(starts[1:], batch.num_rows)
    offsets = batch.column(columns.offset)
    goes_back = pc.less(offsets[1:], offsets[:-1]).to_numpy(zero_copy_only=False).copy()
    goes_back[starts[1:] - 1] = False  # from one source partition to the next
    at = pa.array(starts)
    partitions = list(
        zip(*(batch.column(name).take(at).to_pylist() for name in columns.partition), strict=True)
    )
    if goes_back.any():
        row = int(np.flatnonzero(goes_back)[0])
        partition = partitions[int(np.searchsorted(starts, row, side="right")) - 1]
        raise columns.disorder(partition, offsets[row].as_py(), offsets[row + 1].as_py())
    firsts, lasts = offsets.take(at).to_pylist(), offsets.take(pa.array(ends - 1)).to_pylist()
    found = zip(partitions, firsts, lasts, starts.tolist(), (ends - starts).tolist(), strict=True)
    return [
        PartitionSlice(partition, first, last, batch, start, rows, columns.offset)
        for partition, first, last, start, rows in found
    ]


def _check_offsets(batch: Any, columns: FrameColumns) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    name, offsets = columns.offset, batch.column(columns.offset)
    known = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string)
    if offsets.null_count or not any(is_it(offsets.type) for is_it in known):
        has = "a null" if offsets.null_count else f"a {offsets.type}"
        row = pc.index(offsets.is_null(), True).as_py() if offsets.null_count else 0
        raise ConnectctlError(
            f"The column {name} contains {has}, which is not a valid source offset",
            why=columns.row_name(batch, row),
            next_step="Use a column of integers or strings, without nulls.",
            code="bad-offset",
        )


def _by_partition(batch: Any, names: tuple[str, ...]) -> tuple[Any, Any]:
    """Return the rows of ``batch`` with those of a source partition beside each other, and where
    each begins.
    """
    import numpy as np
    import pyarrow as pa

    codes: Any = None
    distinct = 1
    for name in names:
        encoded = batch.column(name).dictionary_encode(null_encoding="encode")
        if len(encoded.dictionary) == 1:
            continue
        indices = encoded.indices.to_numpy().astype(np.int64)
        if codes is None:
            codes, distinct = indices, len(encoded.dictionary)
        else:
            # Made dense again each time: no product of dictionaries is larger than the square of a
            # batch.
            found, codes = np.unique(codes * len(encoded.dictionary) + indices, return_inverse=True)
            distinct = len(found)
    if codes is None:
        return batch, np.zeros(1, np.int64)
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    if len(starts) > distinct:
        order = stable_order(codes, distinct)
        batch, codes = batch.take(pa.array(order)), codes[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
    return batch, starts


def adjacent(taken: Iterable[PartitionSlice]) -> Iterator[tuple[Any, int, int]]:
    """Yield the batches of ``taken``, each with its first row and the one after its last:
    neighbouring slices are joined.
    """
    batch: Any = None
    start = end = 0
    for piece in taken:
        if batch is not piece.batch or piece.start != end:
            if batch is not None:
                yield batch, start, end
            batch, start = piece.batch, piece.start
        end = piece.start + piece.rows
    if batch is not None:
        yield batch, start, end


def columnar(
    taken: Iterable[PartitionSlice], columns: FrameColumns, bytes_of: BytesOf
) -> Iterator[tuple[RecordColumns, Callable[[int], str]]]:
    """Yield the records of ``taken``, and what names the row of each; those of pieces that lie
    beside each other together.
    """
    for batch, start, end in adjacent(taken):
        rows = batch.slice(start, end - start)
        row_name = partial(columns.row_name, rows)
        yield _columnar(rows, columns, bytes_of, row_name), row_name


def _columnar(
    batch: Any, columns: FrameColumns, bytes_of: BytesOf, row_name: Callable[[int], str]
) -> RecordColumns:
    times = None
    if columns.timestamp is not None:
        times = batch.column(columns.timestamp).fill_null(-1).to_numpy()
    keys = None
    if columns.key:
        keys = bytes_of("key", batch.column(columns.key), row_name)
    values = bytes_of("value", batch.column(columns.value), row_name)
    headers = _headers(batch.column(columns.headers), columns.headers) if columns.headers else None
    return RecordColumns(values, keys, times, headers)


def _headers(lists: Any, name: str) -> Any:
    flat = lists.flatten()
    if flat.null_count or flat.field("key").null_count:
        raise ConnectctlError(
            f"The column {name} has a header without a key, which Kafka does not allow",
            next_step="Set a key for every header; only the value may be null.",
            code="bad-header",
        )
    return lists
