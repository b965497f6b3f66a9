"""A worker's answer ends in time and in size, whatever the server does."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from connectctl.ops.clients.rest import http_answer
from connectctl.ops.clients.rest.connect import Connect
from connectctl.ops.core.errors import ConnectctlError, TimedOut

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Answer = Callable[[socket.socket], None]


@contextmanager
def worker(answer: Answer) -> Iterator[str]:
    """A server that gives every connection to ``answer``; yields its URL."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    def one(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65536)
                answer(connection)
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.close()


def calls(url: str, timeout: float = 1.0) -> Connect:
    return Connect([url], auth={}, tls={}, timeout=timeout)


def drip(connection: socket.socket, text: bytes) -> None:
    for byte in text:
        connection.sendall(bytes([byte]))
        time.sleep(0.1)


def slow_body(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n[")
    drip(connection, b" " * 1000)


def slow_head(connection: socket.socket) -> None:
    drip(connection, b"HTTP/1.1 200 OK\r\nX-Padding: " + b"x" * 1000)


def silent(connection: socket.socket) -> None:
    connection.recv(1)


@pytest.mark.parametrize("answer", [slow_body, slow_head, silent])
def test_an_answer_that_does_not_end_is_late_as_a_whole(answer: Answer) -> None:
    with (
        worker(answer) as url,
        pytest.raises(TimedOut, match=r"did not answer GET /connectors within (1|0\.\d) s"),
    ):
        calls(url).get("/connectors")


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_an_answer_that_is_too_large_is_not_read_to_its_end(
    packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_answer, "LARGEST", 1 << 20)
    content = b"[" + b" " * (4 << 20) + b"]"

    def large(connection: socket.socket) -> None:
        body = gzip.compress(content) if packed else content
        kind = b"Content-Encoding: gzip\r\n" if packed else b""
        connection.sendall(HEAD + kind + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)

    with (
        worker(large) as url,
        pytest.raises(ConnectctlError, match="is too large: it has more than 1 MiB"),
    ):
        calls(url, 120).get("/connectors")


def test_what_is_packed_is_unpacked() -> None:
    body = gzip.compress(json.dumps({"a": ["b"] * 100}).encode())

    def answer(connection: socket.socket) -> None:
        connection.sendall(
            HEAD + f"Content-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )

    with worker(answer) as url:
        assert calls(url, 120).get("/") == {"a": ["b"] * 100}


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000, "NaN"])
def test_json_without_end_is_one_error(text: str) -> None:
    def answer(connection: socket.socket) -> None:
        connection.sendall(HEAD + f"Content-Length: {len(text)}\r\n\r\n{text}".encode())

    with worker(answer) as url, pytest.raises(ConnectctlError, match="is not JSON") as caught:
        calls(url, 120).get("/connectors")
    assert caught.value.code == "not-connect"
    assert "\n" not in str(caught.value)
