"""Encodes Arrow's columns as Kafka's record batches (format 2), column by column: Python handles no
record by itself.

Layout: ``DefaultRecordBatch`` and ``DefaultRecord`` of Kafka's clients.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from connectctl.ops.kafka.batch_headers import AFTER_LENGTH, HEADER, TRANSACTIONAL
from connectctl.ops.kafka.compression import CODECS, compressed
from connectctl.ops.kafka.varints import joined, varints

LONGEST_HEAD = 30
"""Bytes of a record besides its key, value and headers, at most: five varints, attributes and that
there are no headers.
"""
_UNCHECKED, _CHECKED = struct.Struct(">qiibI"), struct.Struct(">hiqqqhii")
"""The two parts of ``HEADER``, of which the first ends with the checksum of the second and of the
records.
"""
_NO_HEADERS = b"\0"


@dataclass(frozen=True)
class ProducerState:
    """The producer of a batch: producer id and epoch, and the sequence number of the first record."""

    producer_id: int
    epoch: int
    sequence: int


@dataclass(frozen=True)
class RecordColumns:
    """Records as columns of the same length. ``values`` and ``keys`` are Arrow's, of bytes; None:
    no record has a key. ``timestamps`` are milliseconds as NumPy's int64, -1 or None for the time
    at which a batch is made. ``headers`` are Arrow's lists of structs of ``key``, text, and
    ``value``, bytes, as Spark's Kafka sink takes them.
    """

    values: Any
    keys: Any = None
    timestamps: Any = None
    headers: Any = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Any) -> RecordColumns:
        """Return the rows with these numbers, in this order."""
        keys, headers = (
            None if column is None else column.take(rows) for column in (self.keys, self.headers)
        )
        return RecordColumns(
            self.values.take(rows),
            keys,
            None if self.timestamps is None else self.timestamps[rows],
            headers,
        )

    def messages(self) -> list[dict[str, Any]]:
        """Return the dictionaries that librdkafka takes for many messages, which cannot have
        headers: ``value`` and, if there are such columns, ``key`` and ``timestamp``.
        """
        names, columns = ["value"], [self.values.to_pylist()]
        if self.keys is not None:
            names, columns = [*names, "key"], [*columns, self.keys.to_pylist()]
        if self.timestamps is not None:
            times = self.timestamps + (self.timestamps == -1)  # librdkafka takes 0 for no timestamp
            names, columns = [*names, "timestamp"], [*columns, times.tolist()]
        if len(names) == 1:
            return [{"value": value} for value in columns[0]]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def header_lists(self) -> list[list[tuple[str, bytes | None]]]:
        """Return the headers of each record, as librdkafka takes them."""
        if self.headers is None:
            return [[] for _ in range(len(self))]
        return [
            [(each["key"], each["value"]) for each in headers or ()]
            for headers in self.headers.to_pylist()
        ]


@dataclass(frozen=True)
class RowBatch:
    """Rows ``start`` to before ``end`` of columns: the part of a batch that does not depend on its
    producer. Times are in ms.
    """

    start: int
    end: int
    first_time: int
    last_time: int
    records: Sequence[memoryview | bytes]

    def __len__(self) -> int:
        return self.end - self.start

    def encode(self, stamp: ProducerState, codec: str = "none") -> list[bytes | memoryview]:
        """Return the batch as one of a transaction, in parts. Raises ``KeyError`` for a codec that
        is not in ``CODECS``.
        """
        records = compressed(self.records, codec)
        return framed(records, CODECS[codec], len(self), self.first_time, self.last_time, stamp)


def framed(
    records: Sequence[Any],
    codec: int,
    count: int,
    first_time: int,
    last_time: int,
    stamp: ProducerState,
) -> list[bytes | memoryview]:
    """Return ``count`` compressed ``records`` after the header of a batch of a transaction."""
    from crc32c import crc32c

    checked = _CHECKED.pack(
        codec | TRANSACTIONAL,
        count - 1,
        first_time,
        last_time,
        stamp.producer_id,
        stamp.epoch,
        stamp.sequence,
        count,
    )
    crc = crc32c(checked)
    for part in records:
        crc = crc32c(part, crc)
    length = AFTER_LENGTH + sum(map(len, records))
    return [_UNCHECKED.pack(0, length, -1, 2, crc) + checked, *records]


def batches(rows: RecordColumns, limit: int, cuts: Sequence[int] = ()) -> list[RowBatch]:
    """Return ``rows`` as batches of at most ``limit`` bytes before compression, a record that is
    larger alone. One ends at each of ``cuts``.
    """
    import numpy as np

    if not len(rows):
        return []
    values = _lengths(rows.values)
    keys = np.full(len(rows), -1) if rows.keys is None else _lengths(rows.keys)
    tails = None if rows.headers is None else _headers(rows.headers)
    weights = (
        np.maximum(values, 0) + np.maximum(keys, 0) + (1 if tails is None else _lengths(tails))
    )
    starts = batch_starts(weights + LONGEST_HEAD, limit - HEADER.size, cuts)
    ends = [*starts[1:], len(rows)]
    now = int(time.time() * 1000)
    times = (
        np.full(len(rows), now)
        if rows.timestamps is None
        else np.where(rows.timestamps >= 0, rows.timestamps, now)
    )
    firsts = np.repeat(starts, np.subtract(ends, starts))
    records = _records(
        rows, keys, values, times - times[firsts], np.arange(len(rows)) - firsts, tails
    )
    at, data = layout(records)
    # Without headers, the byte that a record begins with belongs to the record before it: see
    # _records.
    first, last = (0, []) if rows.headers is not None else (1, [_NO_HEADERS])
    return [
        RowBatch(
            start,
            end,
            int(times[start]),
            int(times[start:end].max()),
            [data[at[start] + first : at[end]], *last],
        )
        for start, end in zip(starts, ends, strict=True)
    ]


def layout(column: Any) -> tuple[Any, memoryview]:
    """Return the position of each value of a column of large binary in its bytes, and these bytes."""
    import numpy as np

    _, offsets, data = column.buffers()
    return np.frombuffer(offsets, np.int64)[
        column.offset : column.offset + len(column) + 1
    ], memoryview(data or b"")


def batch_starts(sizes: Any, limit: int, cuts: Sequence[int]) -> list[int]:
    """Return the positions of the first records of batches: after ``limit`` bytes, and at each cut."""
    import numpy as np

    ends = np.cumsum(sizes)
    starts: list[int] = []
    start = 0
    for cut in (*sorted({cut for cut in cuts if 0 < cut < len(sizes)}), len(sizes)):
        while start < cut:
            starts.append(start)
            before = int(ends[start - 1]) if start else 0
            start = min(
                cut, max(start + 1, int(np.searchsorted(ends, before + limit, side="right")))
            )
    return starts


def _records(
    rows: RecordColumns, keys: Any, values: Any, times: Any, offsets: Any, tails: Any
) -> Any:
    """Return each row as a record of its batch. Without headers: all but its last byte, after the
    last one of the row before.

    That byte is the count of headers, 0. So a record is made of one part less.
    """
    import numpy as np

    time, offset, key, value = numbers = [varints(each) for each in (times, offsets, keys, values)]
    size = np.maximum(values, 0) + np.maximum(keys, 0) + sum(each.width for each in numbers)
    zero = varints(np.zeros(len(rows), np.int64))
    head = [varints(1 + size + (1 if tails is None else _lengths(tails))), zero, time, offset, key]
    if tails is None:
        head.insert(0, zero)
    if rows.keys is None:
        parts = [joined([*head, value]), rows.values]
    else:
        parts = [joined(head), rows.keys, joined([value]), rows.values]
    return strung(parts if tails is None else [*parts, tails])


def _headers(lists: Any) -> Any:
    """Return the bytes of each row's headers at the end of its record: their number, then the key
    and the value of each.

    The headers of all rows follow each other in the column, so that those of a row are a slice of
    them.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    counts = pc.list_value_length(lists).fill_null(0).to_numpy().astype(np.int64)
    flat = lists.flatten()
    if not len(flat):
        return joined([varints(counts)])
    keys, values = (flat.field(name).cast(pa.large_binary()) for name in ("key", "value"))
    each = strung(
        [joined([varints(_lengths(keys))]), keys, joined([varints(_lengths(values))]), values]
    )
    at, data = layout(each)
    ends = at[np.concatenate(([0], np.cumsum(counts)))]
    buffers = [None, pa.py_buffer(np.ascontiguousarray(ends)), pa.py_buffer(data)]
    return strung(
        [joined([varints(counts)]), pa.Array.from_buffers(pa.large_binary(), len(lists), buffers)]
    )


def strung(parts: Sequence[Any]) -> Any:
    """Return row by row the values of several columns, one after the other; a null is empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    filled = [_filled(part.cast(pa.large_binary())) for part in parts]
    return pc.binary_join_element_wise(*filled, pa.scalar(b"", pa.large_binary()))


def _filled(column: Any) -> Any:
    return column.fill_null(b"") if column.null_count else column


def _lengths(column: Any) -> Any:
    """Return the length of each value, -1 for null."""
    import numpy as np
    import pyarrow.compute as pc

    return pc.binary_length(column).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
