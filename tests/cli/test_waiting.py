"""What a command waits for is told while it waits."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from connectctl.cli.output import drawn_line, terminal, waiting
from connectctl.cli.output.waiting import waiting as told
from connectctl.cli.session import Session
from connectctl.ops.core.journal import Journal
from connectctl.ops.core.requests import REQUESTS, Requests
from connectctl.ops.operations.connectors.context import StepContext
from connectctl.ops.operations.connectors.steps import SetTargetState
from fakes.clusters import Clusters
from fakes.runner import invoke


class Stream(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal, self.wrote = terminal, threading.Event()

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        count = super().write(text)
        self.wrote.set()
        return count


def to(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> Stream:
    made = Stream(terminal=terminal)
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return made


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_long_wait_is_told_with_its_time_and_leaves_nothing_on_a_terminal(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = to(monkeypatch, terminal=is_terminal)
    monkeypatch.setattr(waiting, "ON_TERMINAL", 0.01)
    monkeypatch.setattr(waiting, "ELSEWHERE", 0.01)
    monkeypatch.setattr(terminal, "duration", lambda seconds: "12s")
    with told("starting Spark") as wait:
        assert stream.wrote.wait(60)
        wait.end()
        terminal.note("started")
    shown = stream.getvalue()
    assert "starting Spark …, 12s" in shown
    if stream.isatty():
        before, _, after = shown.rpartition("\r\x1b[2K")
        assert (before != "", "starting Spark" in after, "started" in after) == (True, False, True)
    else:
        assert "\x1b" not in shown


def test_a_line_that_is_drawn_after_a_wait_stays_when_its_end_is_called_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = to(monkeypatch, terminal=True)
    with told("starting") as wait:
        wait.end()
        drawn_line.draw("5 records")
        wait.end()
        assert stream.getvalue().endswith("5 records")
    drawn_line.erase()


def told_after(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Have waits told at once; return what is set when one is."""
    happened = threading.Event()
    monkeypatch.setattr(waiting, "ELSEWHERE", 0.01)

    def duration(seconds: float | None) -> str:
        happened.set()
        return "12s"

    monkeypatch.setattr(terminal, "duration", duration)
    return happened


def test_every_command_is_told_by_its_name_while_it_is_silent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    happened, journal = told_after(monkeypatch), Session.journal

    def slow(self: Session, *, read_only: bool = False) -> Journal:
        assert happened.wait(60)
        return journal(self, read_only=read_only)

    monkeypatch.setattr(Session, "journal", slow)
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path))
    result = invoke(["runs", "list"])
    assert (result.exit_code, "connectctl runs list …, 12s" in result.stderr) == (0, True)


def test_a_step_is_told_by_its_description_and_the_server_that_does_not_answer_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    happened, apply = told_after(monkeypatch), SetTargetState.apply
    monkeypatch.setattr(waiting, "ON_TERMINAL", 0.0)

    def slow(self: SetTargetState, context: StepContext) -> str | None:
        with REQUESTS.to("http://w1:8083"):
            happened.clear()
            assert happened.wait(60)
        return apply(self, context)

    monkeypatch.setattr(SetTargetState, "apply", slow)
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    result = Clusters(tmp_path).plain.change("connectors stop", "--yes")
    assert result.exit_code == 0
    assert "stop orders …, 12s; no answer yet from http://w1:8083\n" in result.stderr


def test_the_server_that_has_not_answered_for_longest_is_the_one_named() -> None:
    requests = Requests()
    with requests.to("http://w1:8083"):
        with requests.to("http://w2:8083"):
            assert requests.unanswered(0) == "http://w1:8083"
            assert requests.unanswered(3600) is None
        assert requests.unanswered(0) == "http://w1:8083"
    assert requests.unanswered(0) is None


def test_nothing_is_told_while_a_person_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = to(monkeypatch, terminal=True)
    with told("planning") as wait:
        with waiting.quiet() as silence:
            assert waiting._innermost() is silence
            silence.print_message(redrawn=True)
        assert (waiting._innermost(), stream.getvalue()) == (wait, "")


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_a_drawn_line_is_one_line_of_the_terminal_and_keeps_its_end(columns: int) -> None:
    line = drawn_line._fitted("wait until " + "é" * 100 + " is RUNNING", " …, 12s", columns)
    assert (len(line), line[-7:]) == (columns - 1, " …, 12s")
    assert drawn_line._fitted("日本" * 9, "", 20) == "日本" * 4 + "日…"
    assert drawn_line._fitted("short", "", columns) == "short"


REDIRECTED = """
import os, threading
from connectctl.cli.output import terminal, waiting
waiting.ON_TERMINAL = waiting.ELSEWHERE = 0.01
told = threading.Event()
terminal.duration = lambda seconds: told.set() or "12s"
with waiting.waiting("starting Spark"):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    told.clear()
    assert told.wait(60)
"""


@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1"}], ids=["piped", "drawn"])
def test_a_wait_is_told_while_standard_error_is_the_log_of_the_jvm_that_starts(
    variables: dict[str, str],
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", REDIRECTED],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "starting Spark …, 12s" in done.stderr


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_short_wait_is_not_told(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = to(monkeypatch, terminal=is_terminal)
    with told("starting Spark"):
        pass
    assert stream.getvalue() == ""
