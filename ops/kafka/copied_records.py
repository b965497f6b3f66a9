"""The records that a copy takes from a topic: batches as they were fetched, opened only if
necessary. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from connectctl.ops.kafka import batch_rewrite
from connectctl.ops.kafka.batch_rewrite import TargetTopic, codec_of, fits, is_complete
from connectctl.ops.kafka.compression import CODECS
from connectctl.ops.kafka.fetched_batches import CODEC, BatchAt, check
from connectctl.ops.kafka.old_messages import opened_old
from connectctl.ops.kafka.record_batch_decoder import Columns
from connectctl.ops.kafka.record_batch_encoder import ProducerState

SMALL = {
    CODECS[name]: k << 10
    for name, k in (("none", 96), ("gzip", 4), ("snappy", 16), ("lz4", 16), ("zstd", 16))
}
"""Bytes of a batch, by the number of its codec, up to which it is put together with others sooner
than sent alone, and bytes of its records without a codec up to which it is.
"""
MOST_TOGETHER, BYTES_TOGETHER = 1000, 4 << 20
"""Small batches, and bytes of their records before compression, that are put together at once."""
Encode = Callable[[ProducerState], list[bytes | memoryview]]
"""Makes the bytes of a batch for the state of its producer, in parts."""


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A batch for a topic: the number of its records, the number of the first one among those that
    were copied, and its bytes. ``unopened``: it is the fetched batch with another header.
    """

    records: int
    first: int
    encode: Encode
    unopened: bool


@dataclass(frozen=True, slots=True)
class CopiedRecords:
    """The records of a fetched ``batch`` in ``data`` that are copied to ``partition``; ``rows`` if
    it was opened, also of the batches after it, ``batches`` in all.
    """

    partition: int
    data: Any
    batch: BatchAt
    rows: Columns | None = None
    batches: int = 1
    together: int = 0
    """Bytes of batches that were put together, before compression."""

    def __len__(self) -> int:
        return self.batch.records if self.rows is None else len(self.rows)

    @property
    def size(self) -> int:
        """Return the bytes that are kept until it is sent: of opened records before compression."""
        if self.rows is None or not self.batch.attributes & CODEC:
            return self.together or self.batch.end - self.batch.start
        return int(self.rows.data.nbytes)

    @property
    def last_offset(self) -> int:
        return self.batch.next_offset - 1 if self.rows is None else int(self.rows.offsets[-1])

    def offset_of(self, record: int) -> int:
        """Return the offset of a record by its number among these."""
        return self.batch.offset + record if self.rows is None else int(self.rows.offsets[record])

    def sent_to(self, target: TargetTopic) -> list[SentBatch]:
        """Return the batches for a topic: the fetched one if the topic accepts it, else its records
        in new ones.
        """
        if self.rows is None and fits(self.batch, target):
            return [
                SentBatch(
                    len(self),
                    0,
                    partial(batch_rewrite.restamped, self.data, self.batch),
                    unopened=True,
                )
            ]
        rows = (
            batch_rewrite.opened(self.data, self.batch, self.batch.offset)
            if self.rows is None
            else self.rows
        )
        used = "none" if self.batch.is_old else codec_of(self.batch)
        codec = target.codec or used
        known = codec if codec in CODECS else "none"
        return [
            SentBatch(len(each), each.start, partial(each.encode, codec=known), unopened=False)
            for each in batch_rewrite.remade(rows, target.largest)
        ]


def copied_records(
    partition: int, data: Any, batches: Sequence[BatchAt], wanted: int, together: bool = False
) -> Iterator[CopiedRecords]:
    """Yield the records of fetched ``batches`` at or after the offset ``wanted``, batch by batch;
    with ``together`` consecutive small ones in one. Raises ``ValueError`` and ``OSError`` for
    invalid records.
    """
    small = _SmallBatches(partition, data)
    for batch in batches:
        if not batch.is_old:
            check(data, batch)
        complete = is_complete(batch, wanted)
        raw = small.opened(batch) if together and complete else None
        if small.batches and (
            raw is None or small.is_full or codec_of(batch) != codec_of(small.batches[0])
        ):
            yield small.put_together()
        if raw is not None:
            small.add(batch, raw)
            continue
        if complete:
            yield CopiedRecords(partition, data, batch)
            continue
        rows = (
            opened_old(data, batch, wanted)
            if batch.is_old
            else batch_rewrite.opened(data, batch, wanted)
        )
        if len(rows):
            yield CopiedRecords(partition, data, batch, rows)
    if small.batches:
        yield small.put_together()


class _SmallBatches:
    """Consecutive batches that become one."""

    def __init__(self, partition: int, data: Any):
        self._partition, self._data = partition, data
        self._most = dict(SMALL)
        self._begin()

    def _begin(self) -> None:
        self.batches, self._raw, self._size = list[BatchAt](), list[bytes](), 0

    @property
    def is_full(self) -> bool:
        return len(self.batches) >= MOST_TOGETHER or self._size >= BYTES_TOGETHER

    def opened(self, batch: BatchAt) -> bytes | None:
        """Return the decompressed records of a small batch, nothing if they are not compressed;
        None for a large batch.
        """
        codec, size = batch.attributes & CODEC, batch.end - batch.start
        if size > self._most.get(codec, 0):
            return None
        raw = batch_rewrite.uncompressed(self._data, batch)
        if len(raw) <= SMALL[CODECS["none"]]:
            return raw
        # others of its size hold as much, most likely: it costs to see
        self._most[codec] = size - 1
        return None

    def add(self, batch: BatchAt, raw: bytes) -> None:
        self.batches.append(batch)
        self._raw.append(raw)
        self._size += len(raw) or batch.end - batch.start

    def put_together(self) -> CopiedRecords:
        """Return the batches that were added as one, and begin the next."""
        found, raw, size = self.batches, self._raw, self._size
        self._begin()
        if len(found) == 1:
            return CopiedRecords(self._partition, self._data, found[0])
        rows = batch_rewrite.opened_together(self._data, found, raw)
        return CopiedRecords(self._partition, self._data, found[0], rows, len(found), size)
