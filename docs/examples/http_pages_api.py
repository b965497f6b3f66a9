"""An API of pages on this machine, for tests of HttpPages."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Api(HTTPServer):
    """An API of two resources; it first returns the statuses in ``answers``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.items: dict[str, list[dict[str, Any]]] = {}
        for name in ("orders", "customers"):
            self.items[name] = [{"id": n, "of": name} for n in range(1, 6)]
        self.answers: list[int] = []
        self.tokens: set[str | None] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/api"


class Handler(BaseHTTPRequestHandler):
    server: Api

    def do_GET(self) -> None:
        self.server.tokens.add(self.headers["Authorization"])
        if self.server.answers:
            self.send_error(self.server.answers.pop())
            return
        address = urlsplit(self.path)
        query = parse_qs(address.query)
        after, limit = int(query.get("after", ["0"])[0]), int(query["limit"][0])
        items = self.server.items[address.path.removeprefix("/api/")]
        body = json.dumps(
            {"items": [each for each in items if each["id"] > after][:limit]}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Do not log."""
