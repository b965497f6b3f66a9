"""Files of connectors, workers that validate them, and what `connectctl validate` says of both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
from connectctl.cli.main import app
from fakes.session import FakeSession
from fakes.workers import FakeWorkers
from typer.testing import CliRunner

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/validation.json").read_text())


FILE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


GOOD = {"name": "good", "config": {"connector.class": FILE, "topic": "t", "file": "f"}}


def run(*args: str, stdin: str | None = None, obj: Any = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["validate", *args], input=stdin, obj=obj)
    return result.exit_code, result.stdout, result.stderr


def report(*args: str, **more: Any) -> Any:
    _, out, _ = run(*args, "-o", "json", **more)
    data = json.loads(out)
    jsonschema.validate(data, SCHEMA)
    return data


def told(data: Any) -> list[tuple[str, str, str]]:
    return [(f["id"], f["severity"], f["subject"]) for f in data["findings"]]


class Validating(FakeWorkers):
    """Workers that know FileStreamSource; ``refusal`` is what they say of ``topic``, by URL."""

    refusal: dict[str, list[str]]

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        url: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        self._maybe_fail(path, url)
        errors = {"exactly.once.support": [], "topic": self.refusal.get(url or "", [])}
        return {
            "configs": [
                {"value": {"name": name, "errors": texts}} for name, texts in errors.items()
            ]
        }


def session(*urls: str, refusal: dict[str, list[str]] | None = None, **more: Any) -> FakeSession:
    workers = Validating(urls=urls, **more)
    workers.refusal = refusal or {}
    return FakeSession(
        told={"bootstrap_servers": None, "group_id": None, "rest": list(urls)}, calls=workers
    )
