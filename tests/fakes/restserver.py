"""A worker's REST server whose every answer is scripted: real sockets, no Connect."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any]
Script = Callable[["Asked"], Answer]


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    method: str
    path: str
    body: Any
    headers: Mapping[str, str]


@dataclass
class RestServer:
    """``answers`` maps ``"GET /path"`` to answers given in turn, the last one for ever; others are
    404 like Connect's.

    An answer is ``(status, body)``: an object is sent as JSON, text as it is; a status of 0 hangs
    for ``body`` seconds or until the server is closed. A function gets the ``Asked`` and returns an
    answer.
    """

    answers: dict[str, list[Answer | Script]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    url: str = ""
    closed: threading.Event = field(default_factory=threading.Event)

    def on(self, request: str, *answers: Answer | Script) -> None:
        """Answer ``request`` with ``answers``, in turn."""
        self.answers[request] = list(answers)

    def requests(self) -> list[str]:
        """All requests so far, as ``"GET /path"``."""
        return [f"{a.method} {a.path}" for a in self.asked]

    def reply(self, asked: Asked) -> Answer:
        """The answer whose turn it is."""
        self.asked.append(asked)
        script = self.answers.get(f"{asked.method} {asked.path}")
        if not script:
            return 404, {"error_code": 404, "message": f"Nothing at {asked.path}"}
        answer = script.pop(0) if len(script) > 1 else script[0]
        return answer(asked) if callable(answer) else answer


def conflict(_: Asked | None = None) -> Answer:
    """What a worker answers during a rebalance."""
    message = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
    return 409, {"error_code": 409, "message": message}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: RestServer

    def _handle(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        status, content = self.script.reply(
            Asked(self.command, self.path, body, dict(self.headers))
        )
        if status == 0:
            self.script.closed.wait(content)
            self.close_connection = True
            return
        data = (
            b""
            if content is None
            else (content if isinstance(content, str) else json.dumps(content)).encode()
        )
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        if 300 <= status < 400:
            self.send_header("Location", str(content))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = _handle

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


@contextmanager
def rest_server(
    answers: Mapping[str, Answer] | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    script: RestServer | None = None,
) -> Iterator[RestServer]:
    """A server on a free port of this machine, which answers as ``script`` does."""
    script = script or RestServer({name: [answer] for name, answer in (answers or {}).items()})
    handler = type("Handler", (_Handler,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.block_on_close = False
    if tls:
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    script.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield script
    finally:
        script.closed.set()
        server.shutdown()
        server.server_close()
        thread.join()
