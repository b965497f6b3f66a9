"""Headers and markers, byte by byte."""

from __future__ import annotations

import struct

import pytest
from connectctl.ops.kafka.batch_headers import ABORT, COMMIT, Batch, marker_of


def fields(**known: int) -> tuple[int, ...]:
    base = {
        "offset": 7,
        "delta": 2,
        "attributes": 0x10,
        "first": 100,
        "last": 120,
        "pid": 5,
        "epoch": 3,
        "seq": 40,
    }
    has = base | {"count": 3} | known
    return (has["offset"], 99, 0, 2, 0, has["attributes"], has["delta"], has["first"], has["last"], has["pid"],
            has["epoch"], has["seq"], has["count"])  # fmt: skip


def test_a_header_tells_producer_sequence_and_time() -> None:
    assert Batch.of(fields()) == Batch(7, 9, 3, 5, 3, 40, 100, 120, True)
    assert Batch.of(fields()).next_offset == 10
    appended = Batch.of(fields(attributes=0x08))
    assert (appended.first_ts, appended.append_time, appended.transactional) == (120, True, False)


@pytest.mark.parametrize("outcome", [ABORT, COMMIT])
def test_a_marker_tells_its_outcome_and_its_coordinator(outcome: int) -> None:
    key, value = struct.pack(">hh", 0, outcome), struct.pack(">hi", 0, 11)
    record = (
        b"\x00\x00\x00" + bytes([len(key) * 2]) + key + bytes([len(value) * 2]) + value + b"\x00"
    )
    marker = marker_of(fields(delta=0, count=1), bytes([len(record) * 2]) + record)
    assert (marker.outcome, marker.coordinator_epoch, marker.offset, marker.timestamp) == (
        outcome,
        11,
        7,
        120,
    )


def test_a_control_batch_that_compaction_emptied_ends_nothing() -> None:
    assert marker_of(fields(delta=0, count=0), b"").outcome == -1
