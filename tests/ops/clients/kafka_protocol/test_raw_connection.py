"""A connection whose answers are larger than its buffer."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest
from connectctl.ops.clients.kafka_protocol.raw_connection import RawConnection

ROOM = 16


@pytest.fixture
def ends() -> Iterator[tuple[RawConnection, socket.socket]]:
    """A connection with a small buffer, and the broker's end of it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(30)
        made = RawConnection.__new__(RawConnection)
        made._socket, made._buffer, made.left = ours, bytearray(ROOM), 0
        made._view, made._at, made._filled = memoryview(made._buffer), 0, 0
        made._asked = made._answered = 0
        yield made, theirs


def test_an_answer_that_is_larger_than_the_buffer_is_read_to_its_end(
    ends: tuple[RawConnection, socket.socket],
) -> None:
    connection, broker = ends
    for number, size in enumerate((5, ROOM + 1, 1000, 3), 1):
        body = bytes(n % 251 for n in range(size))
        broker.sendall(struct.pack(">ii", 4 + size, number) + body)
        connection.await_answer(number)
        assert connection.bytes(connection.left) == body
