"""Decodes Kafka's record batches (format 2) to columns: the positions of the keys and values of all
records in the bytes.

The inverse of ``record_batch_encoder``. Python handles no record by itself, unless batches are few
and large, and nothing is copied. Layout: ``DefaultRecordBatch`` and ``DefaultRecord`` of Kafka's
clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from connectctl.ops.kafka.batch_headers import HEADER, LOG_APPEND_TIME
from connectctl.ops.kafka.fetched_batches import BatchAt

LANES = 64
"""From so many batches on for each record of the largest, all batches are gone through side by
side.
"""
PADDING = 8
"""Bytes after the records that may be read and belong to no record."""


class Body(NamedTuple):
    """The records of a batch, from ``start`` to before ``end``, and what its header has about them:
    their number, the offset and the time of the first, in ms, and the time of all if the broker has
    set it.
    """

    start: int
    end: int
    records: int
    offset: int
    first_time: int
    append_time: int | None = None


def body_of(batch: BatchAt) -> Body:
    """Return the body of ``batch``, which is not compressed."""
    base, _, _, _, _, attributes, _, first_time, last_time, _, _, _, count = batch.fields
    append_time = last_time if attributes & LOG_APPEND_TIME else None
    return Body(batch.start + HEADER.size, batch.end, count, base, first_time, append_time)


class Garbled(ValueError):
    """Bytes are not the records that their header promises."""


@dataclass(frozen=True)
class Columns:
    """Records of one partition in the order of the log; each column is a NumPy array with a number
    for each record.

    ``data`` are the bytes, in which keys and values begin ``at`` a position and have a ``size``, -1
    for null. ``tails`` are the positions of the lengths of keys, ``heads`` those of the headers.
    ``times`` are relative to those of their batches, which are ``batches`` at the index ``of``.
    """

    data: Any
    offsets: Any
    key_at: Any
    key_size: Any
    value_at: Any
    value_size: Any
    tails: Any
    heads: Any
    times: Any
    of: Any
    batches: Sequence[Body] = field(repr=False)

    def __len__(self) -> int:
        return len(self.offsets)

    def between(self, start: int, end: int) -> Columns:
        """Return the records with offsets from ``start`` to before ``end``."""
        import numpy as np

        first, last = np.searchsorted(self.offsets, (start, end))
        if first == 0 and last == len(self):
            return self
        names = (
            "offsets",
            "key_at",
            "key_size",
            "value_at",
            "value_size",
            "tails",
            "heads",
            "times",
            "of",
        )
        return replace(self, **{name: getattr(self, name)[first:last] for name in names})

    def value(self, row: int) -> bytes | None:
        return self._bytes(int(self.value_at[row]), int(self.value_size[row]))

    def key(self, row: int) -> bytes | None:
        return self._bytes(int(self.key_at[row]), int(self.key_size[row]))

    def timestamp(self, row: int) -> int:
        """Return the timestamp of a record, in milliseconds since the epoch."""
        batch: Body = self.batches[self.of[row]]
        if batch.append_time is not None:
            return batch.append_time
        return batch.first_time + int(self.times[row])

    def headers(self, row: int) -> list[tuple[str, bytes | None]]:
        count, at = self._number(int(self.heads[row]))
        found = []
        for _ in range(count):
            size, at = self._number(at)
            name = bytes(self.data[at : at + size]).decode("utf-8", "replace")
            size, at = self._number(at + size)
            found.append((name, self._bytes(at, size)))
            at += max(0, size)
        return found

    @property
    def timestamps(self) -> Any:
        """Return the timestamp of each record, in milliseconds since the epoch."""
        import numpy as np

        first = np.array([batch.first_time for batch in self.batches], np.int64)[self.of]
        appended = np.array(
            [-1 if b.append_time is None else b.append_time for b in self.batches], np.int64
        )[self.of]
        by_broker = np.array([batch.append_time is not None for batch in self.batches], bool)[
            self.of
        ]
        return np.where(by_broker, appended, first + self.times)

    @property
    def ends(self) -> Any:
        """Return the position after each record and its headers."""
        import numpy as np

        count, at = _numbers(self.data, self.heads)
        more = np.flatnonzero(count > 0)
        while more.size:
            size, name = _numbers(self.data, at[more])
            size, value = _numbers(self.data, name + size)
            at[more] = value + np.maximum(size, 0)
            count[more] -= 1
            more = more[count[more] > 0]
        return at

    @property
    def keys(self) -> Any:
        """Return the keys as an Arrow array of bytes."""
        return binaries(self.data, self.key_at, self.key_size)

    def lines(self) -> tuple[Any, Any]:
        """Return the values that are not empty as lines of a text, in an Arrow buffer, and their
        rows.
        """
        import numpy as np

        # After each value there is at least the count of headers, which makes room for the end of its
        # line.
        rows = np.flatnonzero(self.value_size > 0)
        at, size = self.value_at[rows], self.value_size[rows]
        data = self.data.copy()
        data[at + size] = ord("\n")
        _, _, text = binaries(data, at, size + 1).buffers()
        return text, rows

    def records(self) -> list[DecodedMessage]:
        """Return each record as an object, for work that is done record by record."""
        return [DecodedMessage(self, row) for row in range(len(self))]

    def _bytes(self, at: int, size: int) -> bytes | None:
        return None if size < 0 else bytes(self.data[at : at + size])

    def _number(self, at: int) -> tuple[int, int]:
        import numpy as np

        value, after = _numbers(self.data, np.array([at]))
        return int(value[0]), int(after[0])


@dataclass(frozen=True, slots=True)
class DecodedMessage:
    """A record among ``columns``, with the methods of librdkafka's messages."""

    columns: Columns
    row: int

    def offset(self) -> int:
        return int(self.columns.offsets[self.row])

    def value(self) -> bytes | None:
        return self.columns.value(self.row)

    def key(self) -> bytes | None:
        return self.columns.key(self.row)

    def headers(self) -> list[tuple[str, bytes | None]]:
        return self.columns.headers(self.row)

    def timestamp(self) -> tuple[int, int]:
        """Return librdkafka's type of timestamp, and the timestamp."""
        batch = self.columns.batches[self.columns.of[self.row]]
        return 1 if batch.append_time is None else 2, self.columns.timestamp(self.row)


def binaries(data: Any, at: Any, size: Any) -> Any:
    """Return the bytes of ``data`` at the positions ``at`` as an Arrow array, null where ``size``
    is below 0.
    """
    import numpy as np
    import pyarrow as pa

    # Every other one of these is a stretch, and those between lie between them.
    edges = np.empty(2 * len(at), np.int32)
    edges[0::2], edges[1::2] = at, at + np.maximum(size, 0)
    both = pa.Array.from_buffers(
        pa.binary(), max(0, len(edges) - 1), [None, pa.py_buffer(edges), pa.py_buffer(data)]
    )
    values = pa.array(np.arange(0, len(edges), 2, dtype=np.int32), mask=size < 0)
    return both.take(values)


def columns(data: Any, batches: Sequence[Body]) -> Columns:
    """Return the records of ``batches`` in ``data``, an array of uint8 with ``PADDING`` at its end.
    Raises ``Garbled``.
    """
    import numpy as np

    batches = [batch for batch in batches if batch.records]
    counts = np.array([batch.records for batch in batches], np.int64)
    of = np.repeat(np.arange(len(batches)), counts)
    try:
        at = _starts(data, batches, counts) + 1  # after the attributes
        times, at = _numbers(data, at)
        deltas, tails = _numbers(data, at)
        key_size, key_at = _numbers(data, tails)
        value_size, value_at = _numbers(data, key_at + np.maximum(key_size, 0))
    except IndexError as e:
        raise Garbled("a record extends beyond its batch") from e
    heads = value_at + np.maximum(value_size, 0)
    if np.any(heads >= np.array([batch.end for batch in batches], np.int64)[of]):
        raise Garbled("a record extends beyond its batch")
    offsets = np.array([batch.offset for batch in batches], np.int64)[of] + deltas
    return Columns(
        data, offsets, key_at, key_size, value_at, value_size, tails, heads, times, of, batches
    )


def _starts(data: Any, batches: Sequence[Body], counts: Any) -> Any:
    """Return the position of each record after its length. Only the length of a record leads to the
    next one.
    """
    import numpy as np

    if not batches:
        return np.zeros(0, np.int64)
    if counts.sum() >= LANES * counts.max():
        return _side_by_side(data, batches, counts)
    found: list[int] = []
    add = found.append
    plain = data.data  # a memoryview's items are Python's numbers
    for batch in batches:
        at = batch.start
        for _ in range(batch.records):
            size = shift = 0
            while True:
                byte = plain[at]
                at += 1
                size |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
            add(at)
            at += (size >> 1) ^ -(size & 1)
        if at != batch.end:
            raise Garbled("the records of a batch do not have the length of the batch")
    return np.array(found, np.int64)


def _side_by_side(data: Any, batches: Sequence[Body], counts: Any) -> Any:
    """Return the first records of all batches, then the second ones of those that have one, and so
    on.
    """
    import numpy as np

    order = np.argsort(-counts, kind="stable")
    rows = (np.cumsum(counts) - counts)[order]
    at = np.array([batch.start for batch in batches], np.int64)[order]
    # How many batches have a record of that number: with the largest first, they are the first so
    # many.
    remaining = len(batches) - np.searchsorted(
        np.sort(counts), np.arange(counts.max()), side="right"
    )
    found = np.empty(int(counts.sum()), np.int64)
    for number, many in enumerate(remaining.tolist()):
        size, after = _numbers(data, at[:many])
        found[rows[:many] + number] = after
        at[:many] = after + size
    if np.any(at != np.array([batch.end for batch in batches], np.int64)[order]):
        raise Garbled("the records of a batch do not have the length of the batch")
    return found


def _numbers(data: Any, at: Any) -> tuple[Any, Any]:
    """Return the zigzag variable-length numbers at the positions ``at``, and the position after
    each.
    """
    import numpy as np

    byte = data[at]
    found = (byte & 0x7F).astype(np.int64)
    after = at + 1
    more = np.flatnonzero(byte > 0x7F)
    shift = 7
    while more.size:
        byte = data[after[more]]
        found[more] |= (byte & 0x7F).astype(np.int64) << shift
        after[more] += 1
        shift += 7
        more = more[byte > 0x7F]
        if shift > 63 and more.size:
            raise Garbled("a number has no end")
    return ((found >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(found & 1), after
