"""Bundles of drawn clusters: none of their secrets leaves, none of their names with
``--redact-names``, and the verdict is that of the cluster.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from connectctl.cli.main import app
from connectctl.ops.config import masking
from connectctl.ops.operations.connectors import plugin_passwords
from depth import deep
from draws import drawn_by
from fakes.secretworlds import SecretWorld
from fakes.workers import FakeWorkers
from typer.testing import CliRunner, Result

BUNDLES = deep(100, 6)
"""Each commit draws other clusters."""


@pytest.fixture(autouse=True)
def state_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def forget_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this process know no secret, as one that was just started."""
    monkeypatch.setattr(masking, "seen_secrets", masking.SeenSecrets())
    monkeypatch.setattr(plugin_passwords, "_PASSWORDS_OF", {})


def run(world: SecretWorld, *args: str) -> Result:
    return CliRunner().invoke(app, list(args), obj=world.session)


def bundle(world: SecretWorld, file: Path, *more: str) -> tuple[Result, str]:
    """Return what ``bundle`` prints, and everything that is in the archive."""
    made = run(world, "bundle", "--out", str(file), "-o", "json", *more)
    assert made.exit_code == 0, made.output
    with zipfile.ZipFile(file) as archive:
        content = [archive.read(name).decode() for name in archive.namelist()]
    return made, "".join([*content, *archive.namelist()])


def findings(result: Result) -> list[tuple[Any, ...]]:
    assert result.exit_code in (0, 1), result.output
    found = json.loads(result.stdout)["findings"]
    return sorted((f["severity"], f["id"], f["subject"], f["message"]) for f in found)


@pytest.mark.parametrize("number", range(BUNDLES))
def test_no_secret_leaves_and_the_verdict_is_that_of_the_cluster(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, file = SecretWorld(f"{drawn_by()} {number}", tmp_path), tmp_path / "bundle.zip"
    forget_secrets(monkeypatch)
    live = findings(run(world, "doctor", "-o", "json"))
    forget_secrets(monkeypatch)
    made, content = bundle(world, file)
    assert set(world.planted.found_in(content + made.output)) <= world.untold
    said = any("x.y.Source" in what for what in json.loads(made.stdout)["leftOut"])
    assert said == bool(world.untold)
    forget_secrets(monkeypatch)
    page = tmp_path / "page.html"
    repeated = run(world, "doctor", "-f", str(file), "-o", "json", "--html", str(page))
    assert set(world.planted.found_in(repeated.output + page.read_text())) <= world.untold
    assert findings(repeated) == live


@pytest.mark.parametrize("number", range(BUNDLES))
def test_no_name_leaves_with_redact_names(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, file = SecretWorld(f"{drawn_by()} {number}", tmp_path), tmp_path / "bundle.zip"
    forget_secrets(monkeypatch)
    live = findings(run(world, "doctor", "-o", "json"))
    _, content = bundle(world, file, "--redact-names")
    assert [name for name in world.names if told(content, name)] == []
    assert set(world.planted.found_in(content)) <= world.untold
    repeated = findings(run(world, "doctor", "-f", str(file), "-o", "json"))
    assert [f[:2] for f in repeated] == [f[:2] for f in live]


def told(content: str, name: str) -> bool:
    """Return whether the content has the name, also as JSON and URLs write it."""
    return any(form in content for form in (name, json.dumps(name)[1:-1]))


@pytest.mark.parametrize(
    ("answer", "told"),
    [([], True), ([{"name": "door", "type": "PASSWORD"}, "garbage"], True), ({}, False)],
)
def test_a_plugin_is_told_by_a_list_alone(
    answer: Any, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_secrets(monkeypatch)
    config = {"connector.class": "x.y.Source"}

    class Calls(FakeWorkers):
        def get(self, path: str, **_: Any) -> Any:
            return answer

    plugin_passwords.defined_passwords(Calls(), config)
    assert (plugin_passwords.plugins_without_definitions(config) == frozenset()) is told
