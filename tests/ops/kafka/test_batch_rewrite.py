"""A fetched batch as another producer's: the same records, whether it is opened or not, as another
library reads them.
"""

from __future__ import annotations

import pytest
from connectctl.ops.kafka.batch_headers import HEADER
from connectctl.ops.kafka.batch_rewrite import (
    TargetTopic,
    codec_of,
    fits,
    is_complete,
    opened,
    remade,
    restamped,
)
from connectctl.ops.kafka.fetched_batches import BatchAt
from connectctl.ops.kafka.record_batch_decoder import Garbled
from connectctl.ops.kafka.record_batch_encoder import ProducerState
from fakes.rewrittenbatches import CODECS, ROWS, STAMP, Row, found, read, written
from hypothesis import given
from hypothesis import strategies as st


@given(ROWS, st.sampled_from(sorted(CODECS)), st.integers(0, 1 << 40), st.sampled_from([0, 0x10]))
def test_an_unopened_batch_has_its_records_and_the_producer_of_ours(
    rows: list[Row], codec: str, offset: int, attributes: int
) -> None:
    raw = written(rows, offset, CODECS[codec], attributes)
    data, (batch,) = found(raw)
    assert is_complete(batch, offset)
    assert (batch.offset, batch.next_offset, codec_of(batch)) == (offset, offset + len(rows), codec)
    sent = b"".join(restamped(data, batch, STAMP))
    assert read(sent) == rows
    fields, before = HEADER.unpack_from(sent), HEADER.unpack_from(raw)
    assert fields[:1] + fields[2:4] + fields[9:] == (0, -1, 2, 77, 5, 1234, len(rows))
    assert fields[5] == CODECS[codec] | 0x10
    assert fields[6:9] == before[6:9]
    assert sent[HEADER.size :] == raw[HEADER.size :]


@given(
    ROWS, st.sampled_from(sorted(CODECS)), st.integers(0, 20), st.integers(100, 2000), st.booleans()
)
def test_an_opened_batch_has_the_records_from_the_wanted_offset_on(
    rows: list[Row], codec: str, behind: int, limit: int, compressed: bool
) -> None:
    data, (batch,) = found(written(rows, 1000, CODECS[codec]))
    behind = min(behind, len(rows))
    some = opened(data, batch, 1000 + behind)
    assert some.offsets.tolist() == list(range(1000 + behind, 1000 + len(rows)))
    made = remade(some, limit)
    sent, sequence = [], 40
    for each in made:
        sent.append(
            b"".join(each.encode(ProducerState(77, 5, sequence), "zstd" if compressed else "none"))
        )
        sequence += len(each)
        assert compressed or len(sent[-1]) <= limit or len(each) == 1
    assert [row for each in sent for row in read(each)] == rows[behind:]
    offsets = [HEADER.unpack_from(each) for each in sent]
    assert all((f[0], f[6] + 1) == (0, f[12]) for f in offsets)
    assert all(
        f[8] == max(time for time, *_ in read(each)) for f, each in zip(offsets, sent, strict=True)
    )


@pytest.mark.parametrize(
    ("count", "attributes", "wanted", "complete"),
    [
        (3, 0, 50, True),
        (3, 0x10, 0, True),
        (2, 0, 50, False),
        (3, 0x40, 50, False),
        (3, 0, 51, False),
        (3, 8, 50, True),
    ],
)
def test_what_compaction_has_thinned_or_begins_before_the_wanted_offset_is_opened(
    count: int, attributes: int, wanted: int, complete: bool
) -> None:
    fields = (50, 99, 0, 2, 0, attributes, 2, 0, 0, -1, -1, -1, count)
    assert is_complete(BatchAt(0, 111, fields), wanted) is complete


@pytest.mark.parametrize(
    ("attributes", "target", "fit"),
    [
        (0, TargetTopic(), True),
        (0, TargetTopic(largest=111), True),
        (0, TargetTopic(largest=110), False),
        (8, TargetTopic(), False),
        (8, TargetTopic(append_time=True), True),
        (4, TargetTopic(codec="zstd"), True),
        (3, TargetTopic(codec="zstd"), False),
        (0, TargetTopic(codec="none"), True),
        (2, TargetTopic(codec="none"), False),
    ],
)
def test_another_size_codec_or_type_of_timestamps_at_the_target_opens_a_batch(
    attributes: int, target: TargetTopic, fit: bool
) -> None:
    fields = (50, 99, 0, 2, 0, attributes, 2, 0, 0, -1, -1, -1, 3)
    assert fits(BatchAt(0, 111, fields), target) is fit


def test_times_that_a_broker_has_set_are_those_of_the_records() -> None:
    raw = bytearray(written([(5, None, b"a", []), (9, None, b"b", [])], 7, attributes=8))
    fields = list(HEADER.unpack_from(raw))
    fields[8] = 123_456
    HEADER.pack_into(raw, 0, *fields)
    data, (batch,) = found(bytes(raw))
    (made,) = remade(opened(data, batch, 0), 1000)
    assert read(b"".join(made.encode(STAMP))) == [
        (123_456, None, b"a", []),
        (123_456, None, b"b", []),
    ]


def test_a_batch_without_records_is_none() -> None:
    data, (batch,) = found(HEADER.pack(4, HEADER.size - 12, 0, 2, 0, 0, 5, 0, 0, 9, 0, 0, 0))
    assert (is_complete(batch, 0), batch.next_offset) == (False, 10)
    assert remade(opened(data, batch, 0), 1000) == []


def test_a_record_that_is_longer_than_its_batch_is_refused() -> None:
    raw = bytearray(written([(5, b"k", b"v", [("h", b"value")])], 0))
    raw[-6] = 0x40  # the length of the header's value
    data, (batch,) = found(bytes(raw))
    with pytest.raises((Garbled, IndexError)):
        remade(opened(data, batch, 0), 1000)
