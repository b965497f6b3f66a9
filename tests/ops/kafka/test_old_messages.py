"""Messages of before Kafka 0.11, as another library writes them, are records with their offsets and
times.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from connectctl.ops.kafka.copied_records import copied_records
from connectctl.ops.kafka.fetched_batches import CommittedBatches
from connectctl.ops.kafka.old_messages import NO_TIME, opened_old
from connectctl.ops.kafka.record_batch_decoder import PADDING, Garbled
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatchBuilder

RAW = st.none() | st.binary(max_size=100)
ROWS = st.lists(st.tuples(st.integers(0, 1 << 45), RAW, RAW), min_size=1, max_size=8)


def written(rows: list[Any], magic: int, codec: int, offset: int) -> bytes:
    """A message set as a broker has it in its log: a compressed one has the offset of its last
    message.
    """
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    inner = [n + (offset if magic == 0 or not codec else 0) for n in range(len(rows))]
    for n, (time, key, value) in zip(inner, rows, strict=True):
        assert (
            builder.append(n, timestamp=time if magic else None, key=key, value=value) is not None
        )
    raw = bytearray(builder.build())
    if codec:
        raw[:8] = (offset + len(rows) - 1).to_bytes(8, "big")
    return bytes(raw)


@given(
    ROWS,
    st.sampled_from([0, 1]),
    st.sampled_from([0, 1]),
    st.integers(0, 1 << 40),
    st.integers(0, 8),
)
def test_old_messages_are_records_from_the_wanted_offset_on(
    rows: list[Any], magic: int, codec: int, offset: int, behind: int
) -> None:
    raw = written(rows, magic, codec, offset)
    data = np.frombuffer(raw + bytes(PADDING), np.uint8)
    committed = CommittedBatches(data, len(raw), [], old=True)
    batches = list(committed)
    assert committed.next_offset == offset + len(rows)
    assert len(batches) == (1 if codec else len(rows))
    found = [
        (row.offset(), row.timestamp()[1], row.key(), row.value())
        for some in copied_records(0, data, batches, offset + behind)
        for row in some.rows.records()  # type: ignore[union-attr]
    ]
    expected = [(offset + n, t if magic else NO_TIME, k, v) for n, (t, k, v) in enumerate(rows)]
    assert found == expected[behind:]


def test_a_message_that_is_not_as_long_as_it_says_is_refused() -> None:
    raw = bytearray(written([(5, b"key", b"value")], 1, 0, 0))
    data = np.frombuffer(bytes(raw) + bytes(PADDING), np.uint8)
    (batch,) = CommittedBatches(data, len(raw), [], old=True)
    raw[26 + 3] = 2
    with pytest.raises(Garbled):
        opened_old(np.frombuffer(bytes(raw) + bytes(PADDING), np.uint8), batch, 0)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_whose_bytes_changed_is_refused(magic: int) -> None:
    raw = bytearray(written([(5, b"key", b"value")], magic, 0, 3))
    raw[-1] ^= 1
    data = np.frombuffer(bytes(raw) + bytes(PADDING), np.uint8)
    (batch,) = CommittedBatches(data, len(raw), [], old=True)
    with pytest.raises(
        Garbled, match="the checksum of the message at offset 3 does not match its bytes"
    ):
        opened_old(data, batch, 0)
