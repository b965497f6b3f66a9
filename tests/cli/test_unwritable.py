"""Disks that are full or read-only, and journals that are damaged, are told in one line that names
the file.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError, Refused
from connectctl.ops.core.executor import Execution, part_done
from connectctl.ops.core.journal import Journal
from fakes.runner import invoke


def make_read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every directory and file that is created be on a read-only file system."""
    opened = os.open

    def refused(path: Any, *_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    def reading(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY):
            refused(path)
        return opened(path, flags, *more, **named)

    monkeypatch.setattr(os, "mkdir", refused)
    monkeypatch.setattr(os, "open", reading)


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    journal = Journal(tmp_path / "journal")
    plan = {
        "operation": "offsets set",
        "steps": [],
        "unchanged": [],
        "clusterId": "c",
        "groupId": "g",
        "independent": False,
    }
    journal.begin("offsets set", "c", "g", ("orders",), plan)
    return journal


def test_a_sandbox_under_a_read_only_home_names_what_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    make_read_only(monkeypatch)
    ran = invoke(["sandbox", "up", "--name", "x"])
    monkeypatch.undo()
    assert ran.exit_code == 1, ran.output
    assert "The files of a sandbox cannot be written" in ran.stderr
    assert "Read-only file system" in ran.stderr
    assert "XDG_STATE_HOME" in ran.stderr


def test_runs_are_listed_and_shown_where_nothing_can_be_written(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = journal.runs()
    make_read_only(monkeypatch)
    listed, shown = invoke(["runs", "list"]), invoke(["runs", "show", run.id])
    assert (listed.exit_code, shown.exit_code) == (0, 0), listed.output + shown.output
    assert run.id in listed.stdout
    assert "offsets set orders" in shown.stdout


def test_a_lost_list_of_runs_and_a_cut_plan_are_told_with_their_paths(journal: Journal) -> None:
    (run,) = journal.runs()
    plan = journal.path(run.id, "plan.json")
    plan.write_bytes(plan.read_bytes()[:20])
    cut = invoke(["runs", "show", run.id])
    assert (cut.exit_code, str(plan) in cut.stderr) == (2, True), cut.output
    (journal.directory / "journal.db").write_bytes(b"")
    lost = invoke(["runs", "list"])
    assert (lost.exit_code, "No run yet" in lost.output) == (1, False), lost.output
    assert f"{journal.directory / 'journal.db'} is damaged" in lost.stderr


def test_a_run_that_did_something_does_not_say_that_nothing_was_done(journal: Journal) -> None:
    (run,) = journal.runs()
    nothing: Any = None
    now: Any = Execution((), nothing, journal, run, None, nothing, nothing, False, number=2)
    for error in (
        Refused("It is stale; nothing was done"),
        ConnectctlError("It is not healthy; nothing was changed"),
    ):
        assert "nothing was" not in str(part_done(error, run, now, "connectctl runs resume"))
