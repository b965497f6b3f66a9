"""The front door: exit codes, errors in one line, options where people write them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from connectctl.cli import main
from connectctl.ops import errors
from typer.testing import CliRunner


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``connectctl fail`` raises what it is told to."""
    holder: dict[str, BaseException] = {}

    def fail() -> None:
        raise holder["error"]

    module = type(sys)("connectctl.cli.fail")
    module.app = typer.Typer(rich_markup_mode=None)  # type: ignore[attr-defined]
    module.app.command()(fail)
    monkeypatch.setitem(sys.modules, "connectctl.cli.fail", module)
    monkeypatch.setitem(main.COMMANDS, "fail", "Fails.")
    return holder


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConnectctlError("x"), 1),
        (errors.BadInput("x"), 2),
        (errors.Refused("x"), 4),
        (errors.Unreachable("x"), 5),
        (errors.NotAuthorized("x"), 5),
        (errors.TimedOut("x"), 6),
        (errors.PartDone("x"), 7),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError("x"), 70),
    ],
)
def test_every_error_has_its_documented_exit_code_and_one_line(failing: Any, error: BaseException, code: int) -> None:
    failing["error"] = error
    result = CliRunner().invoke(main.app, ["fail"])
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr


def test_an_error_says_what_why_and_what_to_do(failing: Any) -> None:
    failing["error"] = errors.Refused("No", why="because", next_step="Do this.")
    assert CliRunner().invoke(main.app, ["fail"]).stderr == "error: No: because. Do this.\n"


@pytest.mark.parametrize("flag", [["-o", "json"], ["-ojson"], ["--output=json"], ["--output", "json"]])
def test_with_json_output_an_error_is_json_on_stderr_even_a_wrong_flag(flag: list[str]) -> None:
    result = CliRunner().invoke(main.app, ["context", "show", "--nonsense", *flag])
    assert result.exit_code == 2
    assert json.loads(result.stderr)["error"]["code"] == "usage"


def test_a_bug_leaves_a_report_and_no_traceback(failing: Any) -> None:
    failing["error"] = RuntimeError("boom")
    stderr = CliRunner().invoke(main.app, ["fail"]).stderr
    report = Path(stderr.split("Report: ")[1].strip().rstrip("."))
    assert "boom" in report.read_text()
    report.unlink()


def test_an_unknown_command_is_told_with_the_nearest_one() -> None:
    result = CliRunner().invoke(main.app, ["ofsets"])
    assert (result.exit_code, result.stderr) == (2, "error: There is no command ofsets. Did you mean offsets?\n")


@pytest.mark.parametrize(
    ("written", "understood"),
    [
        (["offsets", "show", "--context", "a"], ["--context", "a", "offsets", "show"]),
        (["offsets", "show", "--timeout=5", "x"], ["--timeout=5", "offsets", "show", "x"]),
        (["offsets", "show", "--", "--context"], ["offsets", "show", "--", "--context"]),
        (["-c", "a", "offsets", "-o", "json"], ["-c", "a", "offsets", "-o", "json"]),
        (["offsets", "--context"], ["--context", "offsets"]),
    ],
)
def test_global_options_may_stand_anywhere(written: list[str], understood: list[str]) -> None:
    assert main.globals_first(written) == understood


def test_no_command_prints_help_and_is_a_usage_error() -> None:
    result = CliRunner().invoke(main.app, [])
    assert result.exit_code == 2
    assert "Examples:" in result.stderr


def test_every_command_is_there_and_its_help_begins_with_examples() -> None:
    for command in main.COMMANDS:
        result = CliRunner().invoke(main.app, [command, "--help"])
        assert result.exit_code == 0, command
        group = main.app.registered_groups
        assert result.stdout.startswith(f"Usage: connectctl {command}"), group


def test_a_reader_that_goes_away_is_no_error() -> None:
    lines = "\n".join(json.dumps({"key": f'["c",{{"p":{n}}}]', "value": '{"o":1}'}) for n in range(20_000))
    program = f"{sys.executable} -m connectctl.cli offsets show -f - | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", program], input=lines, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
