"""Every kind that a command prints has a schema in docs/schema, and what is printed keeps to it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from connectctl.cli.main import app
from typer.testing import CliRunner

ROOT = Path(__file__).parents[2]
SCHEMAS = {
    path.name: json.loads(path.read_text())
    for path in sorted((ROOT / "docs/schema").glob("*.json"))
}
KINDS = {schema["properties"]["kind"]["const"]: schema for schema in SCHEMAS.values()}


def printed(stream: str) -> Any:
    data = json.loads(stream)
    jsonschema.validate(data, KINDS[data["kind"]])
    return data


def test_every_kind_that_the_program_prints_has_a_schema() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "cli").glob("*.py"))
    assert set(re.findall(r'\bemit\(\s*"(\w+)"', sources)) | {"Error"} <= KINDS.keys()


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_a_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])


def test_contexts_keep_to_their_schemas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = tmp_path / "config.yaml"
    path.write_text("current: a\ncontexts: {a: {bootstrap_servers: 'x:1'}, b: {group_id: g}}")
    shown = printed(
        CliRunner().invoke(app, ["--config", str(path), "context", "show", "-o", "json"]).stdout
    )
    assert {"name": "bootstrap_servers", "value": "x:1", "origin": f"{path} line 2"} in shown[
        "settings"
    ]
    listed = printed(
        CliRunner().invoke(app, ["--config", str(path), "context", "list", "-o", "json"]).stdout
    )
    assert [(c["name"], c["current"]) for c in listed["contexts"]] == [("a", True), ("b", False)]


def test_errors_keep_to_their_schema() -> None:
    result = CliRunner().invoke(app, ["--context", "nowhere", "context", "show", "-o", "json"])
    assert printed(result.stderr)["error"]["exitCode"] == result.exit_code == 2


@pytest.mark.live
def test_sandboxes_keep_to_their_schemas() -> None:
    try:
        up = printed(
            CliRunner()
            .invoke(app, ["sandbox", "up", "--name", "schemas", "--workers", "1", "-o", "json"])
            .stdout
        )
        assert up["context"] == "sandbox-schemas"
        status = printed(
            CliRunner().invoke(app, ["sandbox", "status", "--name", "schemas", "-o", "json"]).stdout
        )
        assert [p["state"] for p in status["sandboxes"][0]["processes"]] == ["RUNNING", "RUNNING"]
    finally:
        removed = printed(
            CliRunner().invoke(app, ["sandbox", "down", "--name", "schemas", "-o", "json"]).stdout
        )
    assert removed["sandboxes"] == [{"name": "schemas", "removed": True}]
