"""Rewrites fetched batches of records for another producer: with a new header, or with their
records in a new batch.

Unopened, a batch keeps its records and their compression; of the 61 bytes of its header, the
producer's fields and the checksum are replaced. A broker refuses a batch whose offsets do not match
its count because of compaction, and one that is too large for its topic. It would keep the times of
a batch with ``LogAppendTime``. Such batches are opened, and those of which only a part is copied.

Layout: ``DefaultRecordBatch`` of Kafka's clients; rules: ``LogValidator`` of its broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from connectctl.ops.kafka import record_batch_encoder as encoder
from connectctl.ops.kafka.batch_headers import HEADER, LOG_APPEND_TIME
from connectctl.ops.kafka.compression import NAMES, unpacked
from connectctl.ops.kafka.fetched_batches import CODEC, BatchAt
from connectctl.ops.kafka.record_batch_decoder import (
    PADDING,
    Columns,
    Garbled,
    binaries,
    body_of,
    columns,
)
from connectctl.ops.kafka.record_batch_encoder import ProducerState, RowBatch
from connectctl.ops.kafka.varints import joined, varints

DELETE_HORIZON = 0x40
"""The bit of a batch that compaction has marked (KIP-534): its first timestamp is then no
record's.
"""
LARGEST = 1_048_588
"""The default of ``max.message.bytes``."""


@dataclass(frozen=True)
class TargetTopic:
    """The properties of a topic that decide whether a batch can be written unopened:
    ``max.message.bytes``, whether its broker sets timestamps, and the codec of its records, None
    for the producer's.
    """

    largest: int = LARGEST
    append_time: bool = False
    codec: str | None = None


def is_complete(batch: BatchAt, wanted: int) -> bool:
    """Return whether a producer could have sent ``batch`` unchanged, and all of it is at or after
    the offset ``wanted``.
    """
    return (
        not batch.is_old
        and batch.offset >= wanted
        and batch.next_offset - batch.offset == batch.records
        and not batch.attributes & DELETE_HORIZON
    )


def fits(batch: BatchAt, target: TargetTopic) -> bool:
    """Return whether ``target`` accepts ``batch``, which is complete, unopened."""
    append_time = bool(batch.attributes & LOG_APPEND_TIME)
    return (
        batch.end - batch.start <= target.largest
        and (target.append_time or not append_time)
        and target.codec in (None, codec_of(batch))
    )


def codec_of(batch: BatchAt) -> str:
    """Return the compression of ``batch`` as a value of ``compression.type``."""
    return NAMES.get(batch.attributes & CODEC, "none")


def restamped(data: Any, batch: BatchAt, stamp: ProducerState) -> list[bytes | memoryview]:
    """Return ``batch`` in ``data`` as one of a transaction of ``stamp``: a new header, and its
    records, which are not copied.
    """
    _, _, _, _, _, attributes, _, first, last, _, _, _, count = batch.fields
    body = memoryview(data)[batch.start + HEADER.size : batch.end]
    return encoder.framed([body], attributes & CODEC, count, first, last, stamp)


def opened(data: Any, batch: BatchAt, wanted: int) -> Columns:
    """Return the records of ``batch`` from the offset ``wanted`` on. Raises ``ValueError`` and
    ``OSError`` for invalid records.
    """
    return opened_together(data, [batch], [uncompressed(data, batch)]).between(
        wanted, batch.next_offset
    )


def uncompressed(data: Any, batch: BatchAt) -> bytes:
    """Return the records of ``batch`` decompressed; nothing if they are not compressed, because
    they are read in place. Raises ``ValueError`` and ``OSError``.
    """
    codec = batch.attributes & CODEC
    return unpacked(bytes(data[batch.start + HEADER.size : batch.end]), codec) if codec else b""


def opened_together(data: Any, batches: Sequence[BatchAt], raw: Sequence[bytes]) -> Columns:
    """Return the records of ``batches`` of one codec; ``raw`` has them if they are compressed.
    Raises ``ValueError`` for invalid records.
    """
    import numpy as np

    bodies = [body_of(batch) for batch in batches]
    if not batches[0].attributes & CODEC:
        return columns(data, bodies)
    ends = list(accumulate(map(len, raw)))
    starts = [0, *ends]
    bodies = [
        body._replace(start=start, end=end)
        for body, start, end in zip(bodies, starts, ends, strict=False)
    ]
    return columns(np.frombuffer(b"".join([*raw, bytes(PADDING)]), np.uint8), bodies)


def remade(rows: Columns, limit: int) -> list[RowBatch]:
    """Return ``rows`` as batches of at most ``limit`` bytes before compression; a larger record is
    alone.

    The bytes of key, value and headers stay the same; of the fields before them in a record only
    times and offsets are new.
    """
    import numpy as np

    if not len(rows):
        return []
    ends = rows.ends
    if np.any(ends > np.array([body.end for body in rows.batches], np.int64)[rows.of]):
        raise Garbled("a record extends beyond its batch")
    sizes = ends - rows.tails
    starts = encoder.batch_starts(sizes + encoder.LONGEST_HEAD, limit - HEADER.size, ())
    stops = [*starts[1:], len(rows)]
    first = np.repeat(starts, np.subtract(stops, starts))
    times = rows.timestamps
    time, offset = varints(times - times[first]), varints(np.arange(len(rows)) - first)
    plain = varints(np.zeros(len(rows), np.int64))
    heads = joined([varints(plain.width + time.width + offset.width + sizes), plain, time, offset])
    at, data = encoder.layout(encoder.strung([heads, binaries(rows.data, rows.tails, sizes)]))
    return [
        RowBatch(
            start,
            stop,
            int(times[start]),
            int(times[start:stop].max()),
            [data[at[start] : at[stop]]],
        )
        for start, stop in zip(starts, stops, strict=True)
    ]
