"""The words of ``connectctl sandbox``, where no process is needed to say them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from connectctl.cli.commands.sandbox import duration
from connectctl.cli.main import app
from typer.testing import CliRunner


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "connectctl" / "sandbox"


def run(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["sandbox", *words])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("command", ["up", "down", "status", "logs"])
def test_help_begins_with_examples(command: str) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0
    assert out.index("Examples:") < out.index("Options:")
    assert f"connectctl sandbox {command}" in out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["up", "--name", "No"], 2, "error: Invalid sandbox name 'No'. Use at most 40 lower-case"),
        (
            ["up", "--kafka-version", "2.8.2"],
            2,
            "error: Invalid or unsupported Kafka version '2.8.2'. Use",
        ),
        (
            ["up", "--support", "on"],
            2,
            "error: Invalid value 'on' of exactly.once.source.support. Use disabled",
        ),
        (
            ["up", "--support", "enabled", "--kafka-version", "3.2"],
            2,
            "has no exactly-once source support",
        ),
        (["up", "--workers", "11"], 2, "error: Invalid number of workers 11: must be 0 to 9"),
        (["up", "--brokers", "4"], 2, "error: Invalid number of brokers 4: must be 1 to 3"),
        (["down", "--all", "--name", "x"], 2, "error: --name and --all cannot be used together"),
        (["down", "--name", "../x"], 2, "Invalid sandbox name"),
        (
            ["status", "--name", "x"],
            2,
            "Sandbox not found: x. Start it: connectctl sandbox up --name x.",
        ),
        (
            ["logs", "--name", "x"],
            2,
            "Sandbox not found: x. Start it: connectctl sandbox up --name x.",
        ),
    ],
)
def test_what_is_refused_in_one_line(words: list[str], code: int, said: str, home: Path) -> None:
    result, out, err = run(*words)
    assert (result, out) == (code, "")
    assert said in err
    assert err.count("\n") == 1
    assert not home.exists()


def test_where_there_is_nothing_nothing_is_listed_or_removed(home: Path) -> None:
    assert run("down") == (0, "Sandbox not found: default.\n", "")
    _, out, _ = run("down", "-o", "json")
    assert json.loads(out)["sandboxes"] == [{"name": "default", "removed": False}]
    assert not home.exists()


def test_what_a_failed_up_left_is_shown_and_removed(home: Path) -> None:
    logs = home / "broken" / "logs"
    logs.mkdir(parents=True)
    (logs / "broker.log").write_text("one\ntwo\nthree\n")
    _, out, _ = run("status", "-o", "json")
    assert [(each["name"], each["state"]) for each in json.loads(out)["sandboxes"]] == [
        ("broken", "LEFTOVER")
    ]
    assert "LEFTOVER" in run("status", "-o", "wide")[1]
    assert run("logs", "--name", "broken", "-n", "2") == (0, "two\nthree\n", "")
    assert run("down", "--name", "broken") == (0, "Sandbox broken removed.\n", "")
    assert not home.exists()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0s"),
        (59.9, "59s"),
        (61, "1m01s"),
        (3599, "59m59s"),
        (3600, "1h00m"),
        (90061, "25h01m"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
