"""The front door: exit codes, errors in one line, options where people write them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import typer
from connectctl.cli import main
from connectctl.cli.output import terminal
from connectctl.ops.core import errors
from fakes.runner import command_at
from typer.testing import CliRunner


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """``connectctl fail`` raises what it is told to."""
    holder: dict[str, BaseException] = {}

    def fail() -> None:
        raise holder["error"]

    module = type(sys)("connectctl.cli.commands.fail")
    module.app = typer.Typer(rich_markup_mode=None)  # type: ignore[attr-defined]
    module.app.command()(fail)
    monkeypatch.setitem(sys.modules, "connectctl.cli.commands.fail", module)
    monkeypatch.setitem(main.COMMANDS, "fail", "Fails.")
    yield holder
    command_at(()).commands.pop("fail", None)


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
def test_every_error_has_its_documented_exit_code_and_one_line(
    failing: Any, error: BaseException, code: int
) -> None:
    failing["error"] = error
    result = CliRunner().invoke(main.app, ["fail"])
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr


def test_an_error_says_what_why_and_what_to_do(failing: Any) -> None:
    failing["error"] = errors.Refused("No", why="because", next_step="Do this.")
    assert CliRunner().invoke(main.app, ["fail"]).stderr == "error: No: because. Do this.\n"


@pytest.mark.parametrize(
    "flag", [["-o", "json"], ["-ojson"], ["--output=json"], ["--output", "json"]]
)
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
    assert (result.exit_code, result.stderr) == (
        2,
        "error: Unknown command: ofsets. Did you mean offsets?\n",
    )


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
    assert main.globals_first(written, command_at(()).params) == understood


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


def test_a_reader_that_goes_away_ends_it_as_any_program_and_without_a_word() -> None:
    lines = "\n".join(
        json.dumps({"key": f'["c",{{"p":{n}}}]', "value": '{"o":1}'}) for n in range(20_000)
    )
    program = f"{sys.executable} -m connectctl.cli offsets show -f - | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", program],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "error" in done.stderr) == (141, False), done.stderr


def shell(line: str, **more: str) -> subprocess.CompletedProcess[str]:
    """``line`` in a shell, in which ``connectctl`` is this one."""
    line = line.replace("connectctl", f"{sys.executable} -m connectctl.cli")
    given = ["bash", "-o", "pipefail", "-c", line]
    return subprocess.run(
        given, capture_output=True, text=True, check=False, env={**os.environ, **more}
    )


@pytest.mark.parametrize(
    "command", ["context show", "context show -o json", "preflight --explain STORE001", "--help"]
)
@pytest.mark.parametrize(
    ("to", "why"), [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
def test_an_output_that_takes_nothing_is_one_line_and_a_failure(
    command: str, to: str, why: str
) -> None:
    done = shell(f"connectctl {command} {to}")
    assert done.returncode == 1
    assert "The output cannot be written" in done.stderr.splitlines()[-1]
    assert why in done.stderr.splitlines()[-1]


def test_closed_inputs_and_errors_change_nothing() -> None:
    assert shell("connectctl context show <&- 2>&- | grep -c timeout").stdout == "1\n"
    assert shell("connectctl context show -c nobody <&- 2>/dev/full").returncode == 2


def test_what_an_encoding_cannot_say_is_escaped() -> None:
    done = shell("connectctl context show --group-id grüße", PYTHONIOENCODING="ascii")
    assert (done.returncode, "gr\\xfc\\xdfe" in done.stdout) == (0, True), done.stderr


def test_an_interrupt_that_a_call_in_c_wraps_is_no_bug(failing: Any) -> None:
    failing["error"] = SystemError("returned a result with an exception set")
    failing["error"].__cause__ = KeyboardInterrupt()
    result = CliRunner().invoke(main.app, ["fail"])
    assert (result.exit_code, result.stderr) == (130, "error: Interrupted\n")


def test_a_note_that_nobody_reads_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w", buffering=1) as nobody:
        monkeypatch.setattr(sys, "stderr", nobody)
        terminal.note("wait until orders is STOPPED …")
        monkeypatch.undo()
        with suppress(BrokenPipeError):
            nobody.close()
