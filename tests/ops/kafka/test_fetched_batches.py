"""Which batches of a response are committed: as the index of aborted transactions has it, whatever
lies between.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from connectctl.ops.kafka.batch_headers import HEADER, LENGTH
from connectctl.ops.kafka.fetched_batches import CommittedBatches
from connectctl.ops.kafka.record_batch_decoder import PADDING
from hypothesis import given
from hypothesis import strategies as st

PLAIN, TRANSACTIONAL = 0x00, 0x10


def batch(
    offset: int, producer: int, attributes: int, records: int = 2, body: bytes = b"body"
) -> bytes:
    length = HEADER.size - LENGTH.size + len(body)
    return (
        HEADER.pack(offset, length, 6, 2, 0, attributes, records - 1, 5, 9, producer, 0, 0, records)
        + body
    )


def marker(offset: int, producer: int, *, commit: bool) -> bytes:
    record = (
        b"\x00\x00\x00\x08"
        + struct.pack(">hh", 0, int(commit))
        + b"\x0c"
        + struct.pack(">hi", 0, 3)
        + b"\x00"
    )
    return batch(offset, producer, 0x30, 1, bytes([len(record) * 2]) + record)


def offsets(raw: bytes, aborted: list[tuple[int, int]]) -> tuple[list[int], int | None]:
    data: Any = np.frombuffer(raw + bytes(PADDING), np.uint8)
    found = CommittedBatches(data, len(raw), aborted)
    return [each.offset for each in found], found.next_offset


def test_batches_of_an_aborted_transaction_are_passed_over_up_to_its_marker() -> None:
    log = (
        batch(0, 7, TRANSACTIONAL),
        batch(2, 8, TRANSACTIONAL),
        batch(4, 7, PLAIN),
        marker(6, 7, commit=False),
        batch(7, 7, TRANSACTIONAL),
        marker(9, 8, commit=True),
        marker(10, 7, commit=True),
    )
    assert offsets(b"".join(log), [(7, 0)]) == ([2, 4, 7], 11)
    assert offsets(b"".join(log), []) == ([0, 2, 4, 7], 11)


def test_what_was_aborted_before_the_response_begins_is_passed_over_too() -> None:
    assert offsets(batch(50, 7, TRANSACTIONAL) + batch(52, 9, TRANSACTIONAL), [(7, 3)]) == (
        [52],
        54,
    )


@given(st.integers(0, 400))
def test_a_response_that_is_cut_anywhere_has_the_batches_before_the_cut(cut: int) -> None:
    log = [batch(2 * n, 7, PLAIN) for n in range(5)]
    whole = min(cut // len(log[0]), 5)
    found, behind = offsets(b"".join(log)[:cut], [])
    assert found == [2 * n for n in range(whole)]
    assert behind == (2 * whole or None)


def test_the_leader_epoch_of_the_last_batch_is_known() -> None:
    raw = batch(0, 7, PLAIN)
    committed = CommittedBatches(np.frombuffer(raw, np.uint8), len(raw), [])
    assert committed.epoch == -1
    assert len(list(committed)) == 1
    assert committed.epoch == 6


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["records", "commit", "abort"])), max_size=30
    )
)
def test_what_is_left_is_what_was_committed_or_of_no_transaction(
    events: list[tuple[int, str]],
) -> None:
    log, aborted, committed = [], [], []
    running: dict[int, list[int]] = {}
    for offset, (producer, kind) in enumerate(events):
        if producer == 2:  # which has no transactions
            log.append(batch(offset, -1, PLAIN, 1))
            committed.append(offset)
        elif kind == "records":
            log.append(batch(offset, producer, TRANSACTIONAL, 1))
            running.setdefault(producer, []).append(offset)
        else:
            log.append(marker(offset, producer, commit=kind == "commit"))
            given_ = running.pop(producer, [])
            if kind == "commit":
                committed += given_
            elif given_:
                aborted.append((producer, given_[0]))
    stable = min((some[0] for some in running.values()), default=len(log))
    assert offsets(b"".join(log[:stable]), aborted)[0] == sorted(
        each for each in committed if each < stable
    )
