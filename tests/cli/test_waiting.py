"""What a command waits for is told while it waits."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading

import pytest
from connectctl.cli.output import drawn_line, terminal, waiting
from connectctl.cli.output.waiting import waiting as told


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
    with told("starting Spark") as end:
        assert stream.wrote.wait(60)
        end()
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
    with told("starting") as end:
        end()
        drawn_line.draw("5 records")
        end()
        assert stream.getvalue().endswith("5 records")
    drawn_line.erase()


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
