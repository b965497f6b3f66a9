"""A connector's configuration gets nothing of the context's credentials."""

from __future__ import annotations

import json
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live.real import FILE_SOURCE, connectctl
from live.securedcluster import rest

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
COMMANDS: dict[tuple[str, ...], int | None] = {
    ("offsets", "show"): 1,
    ("offsets", "backup", "--out", "backup.jsonl"): 5,
    ("preflight",): 1,
    ("fence", "--dry-run"): 5,
    ("upgrade", "plan", "--to", "enabled"): None,
}
"""Commands with their exit codes; None for one that is about all connectors."""


class Listener:
    """A server that a connector names, and the first bytes of each connection."""

    def __init__(self, server: socket.socket):
        self._server, self.seen = server, list[bytes]()
        self.address = f"127.0.0.1:{server.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        try:
            while True:
                with self._server.accept()[0] as connection:
                    connection.settimeout(1)
                    self.seen.append(connection.recv(1000))
        except OSError:
            return


@contextmanager
def listener() -> Iterator[Listener]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Listener(server)


def test_a_server_that_only_a_connector_names_gets_no_credentials_and_the_offsets_are_not_seen(
    secured: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, workers = f"e{uuid.uuid4().hex[:8]}", rest(secured)
    monkeypatch.chdir(tmp_path)
    with listener() as elsewhere:
        override = {
            "bootstrap.servers": elsewhere.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
        }
        config = {
            "connector.class": FILE_SOURCE,
            "file": "x",
            "topic": name,
            "offsets.storage.topic": f"{name}-o",
        }
        config |= {f"producer.override.{key}": value for key, value in override.items()}
        (tmp_path / "c.json").write_text(json.dumps({"name": name, "config": config}))
        workers.create(name, config, "STOPPED")
        context = ("--context", "sandbox-secured", "--timeout", "60")
        try:
            for command, code in COMMANDS.items():
                at = 1 if command[0] in ("fence", "preflight") else 2
                subject = () if code is None else (name,)
                ran = connectctl(*context, *command[:at], *subject, *command[at:])
                assert code in (None, ran.code), (command, ran.out, ran.err)
                assert code is None or "under clusters:" in ran.out + ran.err, command
            assert "CONFIG029" in connectctl(*context, "validate", "-f", "c.json").out
        finally:
            workers.delete(name)
        assert elsewhere.seen == []
