"""A REST server that misbehaves in one way, whatever it is asked: real sockets, as in front of a
worker that is ill.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from connectctl.ops.core.errors import ConnectctlError
from fakes.adminworkers import SOURCE, AdminWorkers

JETTY = "<html><head><title>Error</title></head><body><h2>HTTP ERROR</h2></body></html>"
TRICKLE = 0.05
"""Seconds between two bytes of a slow answer."""


@dataclass
class Misbehaving:
    """A server on ``url``. ``fault`` answers a request; ``asked`` are the requests so far; ``over``
    ends those that hang.
    """

    fault: Callable[[_Handler], None]
    url: str = ""
    asked: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of: Misbehaving

    def answer(
        self, status: int, content: bytes, *, length: int | None = None, location: str | None = None
    ) -> None:
        """Send a whole answer; or, where it is said to be longer, a part, and the end of the
        connection.
        """
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(content)
        self.close_connection = length is not None

    def _handle(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server_of.asked.append(f"{self.command} {self.path}")
        self.server_of.fault(self)

    do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = _handle

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def shutdown_request(self, request: Any) -> None:
        """Close without the half-close that would turn a reset into an end."""
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet: clients hang up on what they do not understand."""


def _reset(asked: _Handler) -> None:
    asked.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    asked.close_connection = True


def _hang(asked: _Handler) -> None:
    asked.server_of.over.wait()
    asked.close_connection = True


def _trickle(asked: _Handler) -> None:
    asked.send_response(200)
    asked.send_header("Content-Length", "100000")
    asked.end_headers()
    while not asked.server_of.over.wait(TRICKLE):
        asked.wfile.write(b" ")


def _connects(status: int, message: str) -> Callable[[_Handler], None]:
    """An error in Connect's own words."""
    return lambda asked: asked.answer(
        status, json.dumps({"error_code": status, "message": message}).encode()
    )


def _with(status: int, content: str) -> Callable[[_Handler], None]:
    return lambda asked: asked.answer(status, content.encode())


def _elsewhere(asked: _Handler) -> None:
    asked.answer(302, b"", location=f"http://login.example.com/sso?for={asked.path}")


def workers_of_others(asked: _Handler) -> None:
    """Answer as a healthy worker of another group does, which has none of these connectors."""
    url = asked.server_of.url
    workers = AdminWorkers({}, (url,), plugins={url: [SOURCE]}, levels={url: {"root": "INFO"}})
    body = json.loads(asked.body) if asked.body else None
    try:
        get = asked.command == "GET"
        told = workers.get(asked.path) if get else workers.send(asked.command, asked.path, body)
    except (ConnectctlError, KeyError):
        _connects(404, "Connector not found")(asked)
        return
    asked.answer(200, json.dumps(told).encode())


REFUSED, NO_TLS, OTHERS = "refused", "TLS on plain", "another group"
FAULTS: dict[str, Callable[[_Handler], None]] = {
    REFUSED: _hang,
    "reset": _reset,
    "time-out": _hang,
    "slow": _trickle,
    "401": _with(401, JETTY),
    "403": _with(403, JETTY),
    "404": _with(404, JETTY),
    "409": _connects(
        409, "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
    ),
    "500": _connects(500, "java.lang.NullPointerException"),
    "503": _with(503, JETTY),
    "HTML": _with(200, "<!doctype html><title>Log in</title>"),
    "truncated": lambda asked: asked.answer(200, b'{"plain":{"status":{"name":"pl'),
    "cut off": lambda asked: asked.answer(200, b'{"plain":{', length=5000),
    "wrong type": _with(200, '[[{"name": 7}], null, "RUNNING"]'),
    "empty": _with(200, ""),
    "redirect": _elsewhere,
    NO_TLS: _hang,
    OTHERS: workers_of_others,
}
"""What the server does, by the name of the fault."""


@contextmanager
def misbehaving(fault: str) -> Iterator[Misbehaving]:
    """A server with the fault of this name on a port of this machine."""
    found = Misbehaving(FAULTS[fault])
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"server_of": found}))
    found.url = f"{'https' if fault == NO_TLS else 'http'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    if fault != REFUSED:
        thread.start()
    else:
        server.server_close()
    try:
        yield found
    finally:
        found.over.set()
        if fault != REFUSED:
            server.shutdown()
            server.server_close()
            thread.join()
