"""What a copy takes from a topic: batches as they were fetched, opened where that cannot be avoided. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from connectctl.ops.kafka.batch_rewrite import (
    TargetTopic,
    codec_of,
    fits,
    is_complete,
    opened,
    opened_together,
    remade,
    restamped,
)
from connectctl.ops.kafka.compression import CODECS as NUMBERS
from connectctl.ops.kafka.fetched_batches import CODEC, BatchAt, check
from connectctl.ops.kafka.old_messages import opened_old
from connectctl.ops.kafka.record_batch_decoder import Columns
from connectctl.ops.kafka.record_batch_encoder import CODECS, ProducerState

SMALL = {NUMBERS[name]: k << 10 for name, k in (("none", 96), ("snappy", 16), ("lz4", 16), ("gzip", 4), ("zstd", 4))}
"""Bytes of a batch, by the number of its codec, up to which it is put together with others sooner than sent alone."""
MOST_TOGETHER = 1000
"""Small batches that are put together at once."""
Encode = Callable[[ProducerState], list[bytes | memoryview]]
"""Makes the bytes of a batch for the state of its producer, in parts."""


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A batch for a topic: how many records it has, the first one's number among those that it was made of, and its bytes.
    ``unopened``: it is the fetched one but for its header.
    """

    records: int
    first: int
    encode: Encode
    unopened: bool


@dataclass(frozen=True, slots=True)
class CopiedRecords:
    """The records of a fetched ``batch`` in ``data`` that are copied to ``partition``; as ``rows`` where it was opened, and
    with it those that follow it, ``batches`` in all.
    """

    partition: int
    data: Any
    batch: BatchAt
    rows: Columns | None = None
    batches: int = 1

    def __len__(self) -> int:
        return self.batch.records if self.rows is None else len(self.rows)

    @property
    def last_offset(self) -> int:
        """The offset of its last record."""
        return self.batch.next_offset - 1 if self.rows is None else int(self.rows.offsets[-1])

    def offset_of(self, record: int) -> int:
        """The offset of a record by its number among these."""
        return self.batch.offset + record if self.rows is None else int(self.rows.offsets[record])

    def sent_to(self, target: TargetTopic) -> list[SentBatch]:
        """The batches for a topic: the fetched one where that fits it, else its records in new ones."""
        if self.rows is None and fits(self.batch, target):
            return [SentBatch(len(self), 0, partial(restamped, self.data, self.batch), unopened=True)]
        rows = opened(self.data, self.batch, self.batch.offset) if self.rows is None else self.rows
        own = "none" if self.batch.is_old else codec_of(self.batch)
        codec = target.codec or own
        known = codec if codec in CODECS else "none"
        return [
            SentBatch(len(each), each.start, partial(each.encode, codec=known), unopened=False)
            for each in remade(rows, target.largest)
        ]


def copied_records(
    partition: int, data: Any, batches: Sequence[BatchAt], wanted: int, together: bool = False
) -> Iterator[CopiedRecords]:
    """What of fetched ``batches`` lies at or behind the offset ``wanted``, batch by batch; small ones in a row
    ``together``. Raises ``ValueError`` and ``OSError`` for bytes that are no records.
    """
    small: list[BatchAt] = []
    for batch in batches:
        if not batch.is_old:
            check(data, batch)
        complete = is_complete(batch, wanted)
        is_small = together and complete and batch.end - batch.start <= SMALL.get(batch.attributes & CODEC, 0)
        if small and not (is_small and len(small) < MOST_TOGETHER and codec_of(batch) == codec_of(small[0])):
            yield _put_together(partition, data, small)
            small = []
        if is_small:
            small.append(batch)
            continue
        if complete:
            yield CopiedRecords(partition, data, batch)
            continue
        rows = opened_old(data, batch, wanted) if batch.is_old else opened(data, batch, wanted)
        if len(rows):
            yield CopiedRecords(partition, data, batch, rows)
    if small:
        yield _put_together(partition, data, small)


def _put_together(partition: int, data: Any, small: Sequence[BatchAt]) -> CopiedRecords:
    if len(small) == 1:
        return CopiedRecords(partition, data, small[0])
    return CopiedRecords(partition, data, small[0], opened_together(data, small), len(small))
