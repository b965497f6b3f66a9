"""A Schema Registry in memory on the loopback address, which can fail in the ways of real ones."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class FakeRegistry:
    """``failing`` is the next answers' status and body; None answers as a registry."""

    def __init__(self) -> None:
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[tuple[str, str]] = []
        self.logins: list[str | None] = []
        self.failing: list[tuple[int, bytes]] = []
        self.url = ""

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        words = path.partition("?")[0].strip("/").split("/")
        if words[0] == "schemas":
            known = int(words[2]) - 1 < len(self.schemas)
            missing = (404, {"error_code": 40403, "message": "Schema not found"})
            return (200, self.schemas[int(words[2]) - 1]) if known else missing
        subject = words[1]
        if method == "POST":
            schema = {"schema": body["schema"], "schemaType": body.get("schemaType", "AVRO")}
            if schema not in self.schemas:
                self.schemas.append(schema)
            number = self.schemas.index(schema) + 1
            self.subjects.setdefault(subject, []).append(number)
            return 200, {"id": number}
        number = self.subjects[subject][-1]
        return 200, {"subject": subject, "version": 1, "id": number, **self.schemas[number - 1]}


@contextmanager
def schema_registry() -> Iterator[FakeRegistry]:
    """A registry for the time of a test."""
    registry = FakeRegistry()

    class Handler(BaseHTTPRequestHandler):
        def _respond(self) -> None:
            registry.requests.append((self.command, self.path))
            registry.logins.append(self.headers.get("Authorization"))
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if registry.failing:
                status, body = registry.failing.pop(0)
            else:
                status, found = registry.answer(self.command, self.path, json.loads(raw or b"{}"))
                body = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _respond

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
