"""Messages of the formats before Kafka 0.11 (magic 0 and 1) as records of the current format. Pure.

The value of a compressed message has others: their offsets are relative to the last one's with
magic 1, absolute with 0. Layout: ``LegacyRecord`` and ``AbstractLegacyRecordBatch`` of Kafka's
clients.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple
from zlib import crc32

from connectctl.ops.kafka.batch_headers import LENGTH, LOG_APPEND_TIME
from connectctl.ops.kafka.compression import unpacked
from connectctl.ops.kafka.fetched_batches import CODEC, MAGIC_AT, BatchAt
from connectctl.ops.kafka.record_batch_decoder import PADDING, Body, Columns, Garbled, columns
from connectctl.ops.kafka.small_batches import record

_HEAD = struct.Struct(">qiIbb")
_TIME = struct.Struct(">q")
_SIZE = struct.Struct(">i")
NO_TIME = -1


class OldMessage(NamedTuple):
    """A message; its ``time`` is in milliseconds, ``NO_TIME`` with magic 0."""

    offset: int
    time: int
    key: bytes | None
    value: bytes | None


def opened_old(data: Any, batch: BatchAt, wanted: int) -> Columns:
    """Return the records of ``batch`` in ``data`` from the offset ``wanted`` on. Raises
    ``ValueError`` for invalid messages.
    """
    import numpy as np

    try:
        messages = [
            m for m in _messages(bytes(data[batch.start : batch.end])) if m.offset >= wanted
        ]
    except struct.error as e:
        raise Garbled("a message extends beyond its set") from e
    first = messages[0] if messages else OldMessage(batch.offset, NO_TIME, None, None)
    raw = b"".join(
        record(m.time - first.time, m.offset - first.offset, m.key, m.value) for m in messages
    )
    body = Body(0, len(raw), len(messages), first.offset, first.time)
    return columns(np.frombuffer(raw + bytes(PADDING), np.uint8), [body])


def _messages(raw: bytes) -> Iterator[OldMessage]:
    at = 0
    while at < len(raw):
        offset, size, checksum, magic, attributes = _HEAD.unpack_from(raw, at)
        end, position, time = at + LENGTH.size + size, at + _HEAD.size, NO_TIME
        if crc32(memoryview(raw)[at + MAGIC_AT : end]) != checksum:
            raise Garbled(
                f"the checksum of the message at offset {offset:,} does not match its bytes"
            )
        if magic:
            (time,) = _TIME.unpack_from(raw, position)
            position += _TIME.size
        key, position = _bytes(raw, position)
        value, position = _bytes(raw, position)
        if position != end:
            raise Garbled("a message does not have the length that it declares")
        at = end
        if not attributes & CODEC or value is None:
            yield OldMessage(offset, time, key, value)
            continue
        inner = list(_messages(unpacked(value, attributes & CODEC)))
        shift = offset - inner[-1].offset if inner and magic else 0
        for each in inner:
            yield each._replace(
                offset=each.offset + shift, time=time if attributes & LOG_APPEND_TIME else each.time
            )


def _bytes(raw: bytes, at: int) -> tuple[bytes | None, int]:
    (size,) = _SIZE.unpack_from(raw, at)
    at += _SIZE.size
    return (None, at) if size < 0 else (raw[at : at + size], at + size)
