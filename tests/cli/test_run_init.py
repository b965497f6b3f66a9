"""``connectctl run --init NAME``: what it says and writes, without a cluster or a context."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from connectctl.cli.main import app
from typer.testing import CliRunner

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/run-skeleton.json").read_text())


@pytest.fixture(autouse=True)
def _in_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_writes_three_files_and_says_what_to_do_next(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["run", "--init", "my_source"])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "wrote my_source.py",
        "wrote test_my_source.py",
        "wrote my_source.yaml",
        "Next: pytest test_my_source.py; connectctl --group-id GROUP run my_source.yaml",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "my_source.py",
        "my_source.yaml",
        "test_my_source.py",
    ]
    again = CliRunner().invoke(app, ["run", "--init", "my_source"])
    assert (again.exit_code, "my_source.py exists, and is not overwritten" in again.stderr) == (
        4,
        True,
    )


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["run", "my_source", "--init", "--dry-run", "-o", "json"])
    shown = json.loads(done.stdout)
    jsonschema.validate(shown, SCHEMA)
    assert (shown["module"], shown["written"], [*tmp_path.iterdir()]) == ("my_source.py", False, [])


def test_options_of_a_run_are_refused() -> None:
    done = CliRunner().invoke(app, ["run", "--init", "my_source", "--take-over"])
    assert (done.exit_code, "--take-over has no effect with --init" in done.stderr) == (2, True)
