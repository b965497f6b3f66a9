"""The journal: what was begun can be read and taken up, whatever happened to whoever began it."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.core import journal as journal_module
from connectctl.ops.core.errors import BadInput, ConnectctlError, Refused
from connectctl.ops.core.journal import SCHEMA, Journal, RunState

PLAN = {"operation": "offsets set", "steps": [{"step": "x", "text": "é\u2028\ud800"}]}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "state" / "connectctl")


def begin(journal: Journal, **more: Any) -> str:
    return journal.begin("offsets set", "cluster", "group", ("c", "d"), PLAN).id


def test_a_run_is_what_was_begun(journal: Journal) -> None:
    run = journal.get(begin(journal))
    assert (run.operation, run.cluster_id, run.group_id) == ("offsets set", "cluster", "group")
    assert (run.subjects, run.state, run.marks, run.changed) == (
        ("c", "d"),
        RunState.OPEN,
        (),
        False,
    )
    assert journal.plan(run.id) == PLAN


def test_marks_are_told_in_their_order(journal: Journal) -> None:
    run = begin(journal)
    for step, what, detail in (
        (0, "begun", None),
        (0, "already", "so"),
        (1, "begun", None),
        (1, "failed", "é"),
    ):
        journal.mark(run, step, what, detail)
    found = journal.get(run)
    assert [(m.step, m.what, m.detail) for m in found.marks][-1] == (1, "failed", "é")
    assert (found.done(0), found.done(1), found.changed) == (True, False, True)


def test_runs_of_one_second_that_draw_the_same_number_are_two(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime(2026, 1, 2, 3, 4, 5, tzinfo=tz)

    drawn = iter(["caa2", "caa2", "caa2", "0001"])
    monkeypatch.setattr("connectctl.ops.core.journal.datetime", Stopped)
    monkeypatch.setattr("connectctl.ops.core.journal.secrets.token_hex", lambda size: next(drawn))
    assert [begin(journal), begin(journal)] == ["20260102-030405-caa2", "20260102-030405-0001"]
    assert journal.plan("20260102-030405-caa2") == PLAN


MARKS = [(0, "begun"), (0, "done"), (1, "begun"), (1, "done")]
KILLED = """
import os, signal, sys
from pathlib import Path
from connectctl.ops.core.journal import Journal
journal, count = Journal(Path(sys.argv[1])), int(sys.argv[2])
with journal.locked("cluster", "group"):
    run = journal.begin("offsets set", "cluster", "group", ("c",), {"steps": []})
    for number, (step, what) in enumerate([(0, "begun"), (0, "done"), (1, "begun"), (1, "done")]):
        if number == count:
            os.kill(os.getpid(), signal.SIGKILL)
        journal.mark(run.id, step, what)
        journal.write(run.id, f"file-{number}", b"x")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("count", range(len(MARKS) + 1))
def test_a_kill_between_any_two_marks_leaves_a_run_that_can_be_taken_up(
    tmp_path: Path, count: int
) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(count)], check=False)
    assert ended.returncode == -signal.SIGKILL
    journal = Journal(tmp_path)
    (run,) = journal.runs()
    assert run.state is RunState.OPEN
    assert [(m.step, m.what) for m in run.marks] == MARKS[:count]
    assert journal.unfinished_runs("cluster", "group") == ([run] if count else [])
    with journal.locked("cluster", "group"):
        journal.end(run.id, RunState.DONE)
    assert journal.unfinished_runs("cluster", "group") == []


def test_everything_is_for_its_owner_only(journal: Journal) -> None:
    run = begin(journal)
    journal.write(run, "backup-0.jsonl", b"secret")
    kept = journal.store_artifact([b"sec", b"ret"])
    with journal.locked("cluster", "group"):
        pass
    files = [path for path in journal.directory.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {
        "journal.db",
        "plan.json",
        "backup-0.jsonl",
        Path(kept).name,
    }
    assert {oct(path.stat().st_mode & 0o777) for path in files} == {"0o600"}
    assert oct(journal.directory.stat().st_mode & 0o777) == "0o700"


def test_a_journal_that_was_moved_goes_on(journal: Journal, tmp_path: Path) -> None:
    run = begin(journal)
    journal.write(run, "backup-0.jsonl", b"line\n")
    kept = journal.store_artifact([b"kept"])
    journal.directory.rename(tmp_path / "moved")
    moved = Journal(tmp_path / "moved")
    assert moved.plan(run) == PLAN
    assert moved.path(run, "backup-0.jsonl").read_bytes() == b"line\n"
    assert (moved.directory / kept).read_bytes() == b"kept"
    moved.mark(run, 0, "begun")
    assert moved.get(run).changed


def test_a_file_is_written_whole_or_not_at_all(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begin(journal)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConnectctlError, match="No space left on device") as error:
        journal.write(run, "backup-0.jsonl", b"x")
    assert error.value.code == "journal"
    assert not journal.path(run, "backup-0.jsonl").exists()


def test_one_at_a_time_changes_a_connect_cluster(journal: Journal) -> None:
    again = Journal(journal.directory)
    with journal.locked("cluster", "group"):
        with (
            pytest.raises(Refused, match=f"process {os.getpid()}") as refusal,
            again.locked("cluster", "group"),
        ):
            pass
        assert refusal.value.code == "locked"
        with again.locked("cluster", "other/../group"), again.locked("other", "group"):
            pass
    with again.locked("cluster", "group"):
        pass


def test_interrupted_runs_are_those_of_this_connect_cluster_that_changed_something(
    journal: Journal,
) -> None:
    touched, untouched, done, failed, refused = (begin(journal) for _ in range(5))
    for run in (touched, done, failed, refused):
        journal.mark(run, 0, "begun")
    journal.end(done, RunState.DONE)
    journal.end(failed, RunState.FAILED)
    journal.end(refused, RunState.REFUSED)
    assert {run.id for run in journal.unfinished_runs("cluster", "group")} == {touched, failed}
    assert journal.unfinished_runs("cluster", "other") == []
    assert untouched in {run.id for run in journal.runs()}


def test_an_unknown_run_is_bad_input(journal: Journal) -> None:
    for name in ("nothing", "../../etc/passwd", ""):
        with pytest.raises(BadInput, match="Run not found"):
            journal.get(name)


def test_a_journal_that_cannot_be_written_stops_everything(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConnectctlError, match="cannot be written; nothing was done"):
        Journal(tmp_path / "file")
    (tmp_path / "journal.db").write_bytes(
        b"this is no database, and long enough to be sure of it" * 20
    )
    with pytest.raises(ConnectctlError, match="is damaged; nothing was done"):
        Journal(tmp_path)


def test_a_file_of_a_run_that_was_changed_is_not_used(journal: Journal) -> None:
    run = begin(journal)
    path = journal.write(run, "backup-0.jsonl", b'{"position":3002}\n')
    assert journal.verified(run, "backup-0.jsonl") == path
    path.write_bytes(b'{"positiom":3002}\n')
    for use in (
        lambda: journal.verified(run, "backup-0.jsonl"),
        lambda: journal.read(run, "backup-0.jsonl"),
    ):
        with pytest.raises(BadInput, match="its SHA-256 is another one") as error:
            use()
        assert str(path) in str(error.value)
    kept = journal.directory / journal.store_artifact([b"kept"])
    assert journal.verified("kept", kept.name) == kept
    kept.write_bytes(b"kepT")
    with pytest.raises(BadInput, match="its SHA-256 is another one"):
        journal.verified("kept", kept.name)


def test_a_file_that_is_written_again_has_its_new_digest(journal: Journal) -> None:
    run = begin(journal)
    for content in (b"1", b"2", b"1"):
        journal.write(run, "notes.json", content)
        assert journal.read(run, "notes.json") == content
    journal.path(run, "notes.json").write_bytes(b"2")
    with pytest.raises(BadInput):
        journal.read(run, "notes.json")


def test_a_plan_that_was_cut_is_named_by_its_path(journal: Journal) -> None:
    run = begin(journal)
    path = journal.path(run, "plan.json")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(BadInput, match=r"plan\.json cannot be read") as error:
        journal.plan(run)
    assert "Restore it from a backup" in str(error.value)
    path.unlink()
    with pytest.raises(BadInput, match="No such file"):
        journal.plan(run)


@pytest.mark.parametrize("lost", ["empty", "missing", "noise"])
def test_a_list_of_runs_that_is_lost_is_not_an_empty_one(journal: Journal, lost: str) -> None:
    begin(journal)
    database = journal.directory / "journal.db"
    if lost == "missing":
        database.unlink()
    else:
        database.write_bytes(b"" if lost == "empty" else os.urandom(4096))
    for opened in (
        lambda: Journal(journal.directory),
        lambda: Journal(journal.directory, read_only=True).runs(),
    ):
        with pytest.raises(
            ConnectctlError, match=r"journal\.db is damaged; nothing was done"
        ) as error:
            opened()
        assert "Free disk space" not in str(error.value)
        assert "Restore it from a backup" in str(error.value)


def test_marks_are_written_to_the_list_of_runs_that_is_there(journal: Journal) -> None:
    run = begin(journal)
    database = journal.directory / "journal.db"
    away = database.rename(database.with_name("away.db"))
    with pytest.raises(ConnectctlError, match="cannot be written"):
        journal.mark(run, 0, "begun")
    database.write_bytes(away.read_bytes())
    journal.mark(run, 0, "done")
    away.unlink()
    found = Journal(journal.directory, read_only=True).get(run)
    assert [mark.what for mark in found.marks] == ["done"]


def test_a_journal_is_opened_once(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begin(journal)
    monkeypatch.setattr(sqlite3, "connect", None)
    journal.mark(run, 0, "begun")
    assert journal.get(run).marks


def test_a_mark_is_on_disk_before_its_step_begins(journal: Journal) -> None:
    program = (
        "import sys; from pathlib import Path; from connectctl.ops.core import journal_database\n"
        "database = journal_database.JournalDatabase(Path(sys.argv[1]))\n"
        "with database.connection() as db: print(*db.execute('PRAGMA synchronous').fetchone())"
    )
    command = [sys.executable, "-c", program, str(journal.directory / "journal.db")]
    full = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert full == "2\n"


def test_a_command_that_fails_while_it_creates_the_tables_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "state" / "connectctl"
    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "SCHEMA", (*SCHEMA[:2], "CREATE TABLE run (id TEXT)"))
        with pytest.raises(ConnectctlError, match="nothing was done"):
            Journal(directory)
    run = begin(Journal(directory))
    assert Journal(directory).get(run).state == RunState.OPEN


@pytest.mark.parametrize("version", [0, 2])
def test_a_journal_of_another_version_is_refused_in_one_line(
    journal: Journal, version: int
) -> None:
    begin(journal)
    with sqlite3.connect(journal.directory / "journal.db") as db:
        db.execute(f"PRAGMA user_version = {version}")
    for opened in (
        lambda: Journal(journal.directory),
        lambda: Journal(journal.directory, read_only=True).runs(),
    ):
        with pytest.raises(
            BadInput, match="was written by another version of connectctl; nothing was done"
        ) as error:
            opened()
        assert f"its format is {version}, and this version reads 1" in str(error.value)


def test_runs_are_in_the_order_in_which_they_were_begun(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for at in (
        "2026-01-02T00:00:00+00:00",
        "2026-01-01T00:00:00+00:00",
        "2026-01-03T00:00:00+00:00",
    ):
        monkeypatch.setattr("connectctl.ops.core.journal.now_utc", lambda at=at: at)
        found.append(begin(journal))
    assert [run.id for run in journal.runs()] == found[::-1]


FULL = """
import resource, sys
from pathlib import Path
from connectctl.ops.core.journal import Journal
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
journal = Journal(Path(sys.argv[1]), read_only=True)
(run,) = journal.runs()
print(run.id, journal.plan(run.id)["operation"], [mark.what for mark in run.marks])
"""


def test_a_journal_on_a_full_disk_is_read(journal: Journal) -> None:
    run = begin(journal)
    journal.mark(run, 0, "begun")
    command = [sys.executable, "-c", FULL, str(journal.directory)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert told == f"{run} offsets set ['begun']\n"


def test_reading_writes_nothing(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begin(journal)

    def read_only(*_: Any, **__: Any) -> None:
        raise OSError(30, "Read-only file system")

    for name in ("mkdir", "touch", "write_bytes"):
        monkeypatch.setattr(Path, name, read_only)
    assert Journal(journal.directory, read_only=True).get(run).id == run
    assert Journal(tmp_path / "none", read_only=True).runs() == []
    with pytest.raises(ConnectctlError, match="Read-only file system"):
        Journal(journal.directory)


@pytest.mark.parametrize(
    ("column", "value"),
    [("state", "odd"), ("subjects", "{"), ("subjects", "[1]"), ("group_id", b"\xff")],
)
def test_a_row_that_is_no_run_is_a_damaged_list(journal: Journal, column: str, value: Any) -> None:
    begin(journal)
    with sqlite3.connect(journal.directory / "journal.db") as db:
        db.execute(f"UPDATE run SET {column} = ?", (value,))
    db.close()
    with pytest.raises(ConnectctlError, match="is damaged"):
        journal.runs()
