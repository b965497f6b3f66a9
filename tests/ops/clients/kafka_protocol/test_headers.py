"""Answers to raw Fetch, byte by byte: cut off, refused, and from a log that begins later than it
did.
"""

from __future__ import annotations

import socket
import struct
import threading
from typing import Any

import pytest
from connectctl.ops.clients.kafka_protocol import headers
from connectctl.ops.clients.kafka_protocol.raw_connection import Broken, RawConnection
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized
from connectctl.ops.kafka.batch_headers import AFTER_LENGTH, HEADER, Batch, Marker
from connectctl.ops.kafka.topic_partition import TopicPartition

PLACE = TopicPartition("t", 0)


def batch(
    offset: int, count: int, body: int = 5000, attributes: int = 0x10, magic: int = 2
) -> bytes:
    length = AFTER_LENGTH + body
    head = HEADER.pack(
        offset, length, 0, magic, 0, attributes, count - 1, 1, 2, 9, 0, offset, count
    )
    return head + b"x" * body


def marker(offset: int) -> bytes:
    record = (
        b"\x00\x00\x00\x08"
        + struct.pack(">hh", 0, 1)
        + b"\x0c"
        + struct.pack(">hi", 0, 3)
        + b"\x00"
    )
    body = bytes([len(record) * 2]) + record
    length = AFTER_LENGTH + len(body)
    return HEADER.pack(offset, length, 0, 2, 0, 0x30, 0, 1, 2, 9, 0, -1, 1) + body


def answer(records: bytes, code: int = 0, first: int = 0) -> bytes:
    top = struct.pack(">ihii", 0, 0, 0, 1) + struct.pack(">h", 1) + b"t" + struct.pack(">i", 1)
    part = (
        struct.pack(">ihqqqi", 0, code, 99, 99, first, -1)
        + struct.pack(">i", -1)
        + struct.pack(">i", len(records))
    )
    return top + part + records


def connection(data: bytes) -> RawConnection:
    """A connection on which this answer comes, in pieces."""
    ours, theirs = socket.socketpair()

    def send() -> None:
        with theirs:
            for at in range(0, len(data), 777):
                theirs.sendall(data[at : at + 777])

    threading.Thread(target=send, daemon=True).start()
    raw = object.__new__(RawConnection)
    raw._socket, raw._buffer, raw.left = ours, bytearray(4096), len(data)
    raw._view = memoryview(raw._buffer)
    raw._at = raw._filled = 0
    return raw


@pytest.fixture(autouse=True)
def small_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectctl.ops.clients.kafka_protocol.raw_connection._BUFFER", 4096)


def walked(data: bytes) -> list[Any]:
    raw = connection(data)
    try:
        found = list(headers._walk(raw, PLACE))
        raw.skip(raw.left)
        return found
    finally:
        raw._socket.close()


def test_bodies_are_passed_over_however_big_and_markers_are_read() -> None:
    found = walked(
        answer(batch(0, 10) + batch(10, 3, body=20_000) + marker(13) + batch(14, 1, body=0))
    )
    assert [(type(f), f.offset, f.next_offset) for f in found] == [
        (Batch, 0, 10),
        (Batch, 10, 13),
        (Marker, 13, 14),
        (Batch, 14, 15),
    ]
    assert (found[2].outcome, found[2].coordinator_epoch) == (1, 3)


def test_of_a_batch_that_is_cut_off_the_header_will_do_and_of_a_marker_it_will_not() -> None:
    assert [f.offset for f in walked(answer(batch(0, 10) + batch(10, 3)[:70]))] == [0, 10]
    assert [f.offset for f in walked(answer(batch(0, 10) + batch(10, 3)[:40]))] == [0]
    assert [f.offset for f in walked(answer(batch(0, 10) + marker(10)[:-3]))] == [0]


@pytest.mark.parametrize(
    ("code", "first", "error"),
    [
        (1, 50, headers._Start),
        (6, 0, headers._Moved),
        (29, 0, NotAuthorized),
        (2, 0, ConnectctlError),
    ],
)
def test_errors_move_on_try_again_or_end(code: int, first: int, error: type[Exception]) -> None:
    with pytest.raises(error) as told:
        walked(answer(b"", code, first))
    if isinstance(told.value, headers._Start):
        assert told.value.offset == 50


def test_an_answer_that_ends_too_early_is_a_broken_connection() -> None:
    raw = connection(answer(batch(0, 10))[:100])
    raw.left = 5000
    with pytest.raises(Broken):
        list(headers._walk(raw, PLACE))
    raw._socket.close()
