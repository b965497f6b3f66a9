"""Record batches that a test writes, rewrites and reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from connectctl.ops.kafka.batch_headers import HEADER, LENGTH
from connectctl.ops.kafka.compression import NAMES, unpacked
from connectctl.ops.kafka.fetched_batches import CHECKED_AT, CODEC, BatchAt, CommittedBatches
from connectctl.ops.kafka.record_batch_decoder import PADDING
from connectctl.ops.kafka.record_batch_encoder import ProducerState
from crc32c import crc32c
from hypothesis import strategies as st
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder

Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""A timestamp, a key, a value, headers."""


RAW = st.none() | st.binary(max_size=200)


HEADERS = st.lists(st.tuples(st.text(max_size=5), RAW), max_size=3)


ROWS = st.lists(st.tuples(st.integers(-1, 1 << 45), RAW, RAW, HEADERS), min_size=1, max_size=20)


STAMP = ProducerState(77, 5, 1234)


CODECS = {"none": 0, "gzip": 1, "lz4": 3, "zstd": 4}


def sealed(batch: bytes) -> bytes:
    """A batch with its checksum."""
    return batch[:17] + crc32c(batch[CHECKED_AT:]).to_bytes(4) + batch[CHECKED_AT:]


def repacked(batch: bytes, offset: int, attributes: int, body: bytes) -> bytes:
    """A batch with another offset, other attributes and another body."""
    fields = list(HEADER.unpack_from(batch))
    fields[:3] = offset, HEADER.size - LENGTH.size + len(body), 11
    fields[5] = attributes
    return sealed(HEADER.pack(*fields) + body)


def written(
    rows: list[Row], offset: int, codec: int = 0, attributes: int = 0, producer: int = 9
) -> bytes:
    """A batch as a broker has it in its log."""
    builder = DefaultRecordBatchBuilder(2, 0, False, producer, 1, 3, 1 << 20)
    for n, (time, key, value, headers) in enumerate(rows):
        assert builder.append(n, time, key, value, headers) is not None
    batch = bytes(builder.build())
    body = batch[HEADER.size :]
    if codec:
        body = pa.compress(body, NAMES[codec], asbytes=True)
    return repacked(batch, offset, codec | attributes, body)


def found(raw: bytes, **more: Any) -> tuple[Any, list[BatchAt]]:
    data = np.frombuffer(raw + bytes(PADDING), np.uint8)
    return data, list(CommittedBatches(data, len(raw), [], **more))


def read(raw: bytes) -> list[Row]:
    """What another library reads, which checks the checksum."""
    batch = MemoryRecords(raw).next_batch()
    assert batch.validate_crc()
    attributes = HEADER.unpack_from(raw)[5]
    if codec := attributes & CODEC:
        raw = repacked(raw, 0, attributes & ~CODEC, unpacked(raw[HEADER.size :], codec))
    return [(r.timestamp, r.key, r.value, r.headers) for r in MemoryRecords(raw).next_batch()]
