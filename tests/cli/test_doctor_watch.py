"""``doctor --watch``: what came and what went since the first look, on a screen of 80 columns."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from connectctl.cli import watching
from connectctl.cli.commands.doctor.modes import MOST_GONE, Changes
from connectctl.cli.output import terminal
from connectctl.ops.core.finding import Finding, Severity
from fakes.clusters import Clusters

NOW = 1_700_000_000.0
RUN = cast("Any", SimpleNamespace(now=NOW))
LONG = "orders-of-a-company-that-has-long-names"


def finding(id_: str = "FAIL001", subject: str = "orders/0", **more: Any) -> Finding:
    return Finding(id_, Severity.ERROR, subject, f"{subject} is FAILED", "Restart it.", **more)


def rows(changes: Changes, table: int = 0) -> list[list[str]]:
    """Return the rows of findings, without those of their next steps."""
    return [list(row) for row in changes.blocks(RUN)[table].rows if row[0]]


def test_what_was_there_at_the_first_look_did_not_come() -> None:
    changes = Changes()
    changes.add((finding(since=NOW - 120),), NOW)
    changes.add((finding(), finding("FLOW001", "users")), NOW + 10)
    came = {row[1]: row[3] for row in rows(changes)}
    assert came["FAIL001"] == "-"
    assert came["FLOW001"].count(":") == 2
    assert len(changes.blocks(RUN)) == 1, "nothing went"


def test_the_same_finding_with_other_words_neither_came_nor_went() -> None:
    changes = Changes()
    changes.add((finding(),), NOW)
    changes.add((Finding("FAIL001", Severity.ERROR, "orders/0", "other words", "-"),), NOW + 10)
    assert [(row[3], row[4]) for row in rows(changes)] == [("-", "orders/0: other words")]
    assert len(changes.blocks(RUN)) == 1


def test_what_went_is_listed_with_its_time_and_may_come_again() -> None:
    changes = Changes()
    changes.add((finding(),), NOW)
    changes.add((), NOW + 10)
    assert changes.blocks(RUN)[0].empty == "Nothing found."
    assert [row[1:] for row in rows(changes, 1)] == [["FAIL001", "orders/0 is FAILED"]]
    changes.add((finding(),), NOW + 20)
    assert rows(changes)[0][3] != "-", "it came again, after the first look"
    assert [row[1:] for row in rows(changes, 1)] == [["FAIL001", "orders/0 is FAILED"]]


def test_only_the_last_that_went_are_listed() -> None:
    changes = Changes()
    for n in range(MOST_GONE + 5):
        changes.add((finding(subject=f"orders/{n}"),), NOW + n)
    gone = [row[2] for row in rows(changes, 1)]
    assert gone == [f"orders/{n} is FAILED" for n in range(4, MOST_GONE + 4)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen(monkeypatch: pytest.MonkeyPatch, changes: Changes, columns: int) -> str:
    """Return what a terminal of so many columns shows of it."""
    from rich.console import Console

    out = Terminal()
    shown = Console(file=out, width=columns, height=100, force_terminal=True, color_system=None)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(terminal, "console", lambda **_: shown)
    monkeypatch.setenv("TERM", "xterm")
    with terminal.live() as draw:
        draw("12:00:00   every 10 s, ^C to end", changes.blocks(RUN), ())
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", out.getvalue())


def test_a_screen_of_80_columns_has_id_subject_and_what_was_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changes = Changes()
    changes.add((finding("TXN001", f"{LONG}/3"), finding("FAIL001", f"{LONG}/0")), NOW)
    changes.add((finding("FAIL001", f"{LONG}/0", since=NOW - 3_700),), NOW + 10)
    text = screen(monkeypatch, changes, 80)
    lines = [line.rstrip() for line in text.splitlines()]
    assert max(map(len, lines)) <= 80, text
    assert any("FAIL001" in line and "1h01m" in line for line in lines), text
    assert any(f"{LONG}/0" in line for line in lines), text
    assert any(line.strip() == "Restart it." for line in lines), text
    assert any("TXN001" in line for line in lines), "it went"


def test_what_to_do_is_on_the_screen_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = Changes()
    message = "Its newest record is 20 minutes old, and it wrote one every 10 seconds before."
    step = "Restart the task: connectctl connectors restart orders --task 0"
    changes.add((Finding("FLOW001", Severity.WARNING, "orders/0", message, step),), NOW)
    text = screen(monkeypatch, changes, 80)
    seen = " ".join(text.split())
    assert f"orders/0: {message}" in seen
    assert step in seen


def test_each_look_is_new_and_one_that_fails_shows_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Clusters(tmp_path).plain
    looks: list[int] = []

    def sleep(seconds: float) -> None:
        assert seconds == 7
        looks.append(len(looks))
        if len(looks) == 1:
            world.workers.connectors["users"].tasks = ["RUNNING", "RUNNING"]
        elif len(looks) == 2:
            world.kafka.hidden_groups = {"connect"}
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr("connectctl.cli.watching.time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(watching, "_reopened", lambda session, view: session)
    ran = world.run("doctor", "users", "--watch", "--interval", "7")
    assert ran.exit_code == 0, ran.output
    first, second, third = ran.stdout.split("every 7 s, ^C to end")[1:]
    assert "FAIL001" in first
    assert "WENT" not in first
    assert "FAIL001" in second.partition("WENT")[2]
    assert "as last seen; error: Not authorized to describe the group connect" in third
    assert "FAIL001" in third.partition("WENT")[2]


def test_json_is_one_report_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Clusters(tmp_path).plain

    def stop(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("connectctl.cli.watching.time", SimpleNamespace(sleep=stop))
    ran = world.run("doctor", "users", "--watch", "-o", "json")
    assert ran.exit_code == 0
    assert "FAIL001" in {each["id"] for each in json.loads(ran.stdout)["findings"]}
