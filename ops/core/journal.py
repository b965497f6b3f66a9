"""What was begun and how far it got: one SQLite file and one directory per run, under the state directory.

A run is a plan that is being carried out. Before and after each step a mark is written, so that a run which was killed
anywhere can be taken up. Paths in it are relative: the directory can be moved. Everything in it is for its owner only.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from connectctl.ops.config.json_text import read_json
from connectctl.ops.core.errors import BadInput, ConnectctlError, Refused
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.times import now_utc

SCHEMA = """
CREATE TABLE IF NOT EXISTS run (
    id TEXT PRIMARY KEY, operation TEXT NOT NULL, cluster_id TEXT NOT NULL, group_id TEXT NOT NULL,
    subjects TEXT NOT NULL, state TEXT NOT NULL, started_at TEXT NOT NULL, ended_at TEXT
);
CREATE TABLE IF NOT EXISTS mark (
    run TEXT NOT NULL REFERENCES run(id), step INTEGER NOT NULL, what TEXT NOT NULL, detail TEXT, at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS mark_of_run ON mark(run);
"""


class RunState(StrEnum):
    """Status of a run. OPEN: begun and not ended, still running or killed. REFUSED: it changed nothing."""

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    UNDONE = "undone"


@dataclass(frozen=True)
class StepEvent:
    """That step ``step`` (from 0) was begun, done, already or failed, with its detail."""

    step: int
    what: str
    detail: str | None
    at: str


@dataclass(frozen=True)
class Run:
    id: str
    operation: str
    cluster_id: str
    group_id: str
    subjects: tuple[str, ...]
    state: RunState
    started_at: str
    ended_at: str | None
    marks: tuple[StepEvent, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether any step was done: otherwise there is nothing to resume or undo."""
        return any(mark.what in ("done", "begun") for mark in self.marks)

    def done(self, step: int) -> bool:
        """Whether ``step`` came to its end."""
        return any(mark.step == step and mark.what in ("done", "already") for mark in self.marks)


class Journal:
    """The journal in ``directory``. Raises ``ConnectctlError`` where it cannot be written."""

    def __init__(self, directory: Path):
        self.directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            (directory / "journal.db").touch(mode=0o600)
        except OSError as e:
            raise self._unwritable(e) from e
        with self._open() as db:
            db.executescript(SCHEMA)

    def _unwritable(self, error: Exception) -> ConnectctlError:
        return ConnectctlError(
            f"The journal in {self.directory} cannot be written; connectctl changes nothing without it",
            why=str(error),
            next_step="Free disk space or correct the permissions there, or set CONNECTCTL_JOURNAL to another directory.",
            code="journal",
        )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            db = sqlite3.connect(self.directory / "journal.db", timeout=30, isolation_level=None)
            try:
                db.execute("PRAGMA synchronous = FULL")
                yield db
            finally:
                db.close()
        except sqlite3.Error as e:
            raise self._unwritable(e) from e

    def begin(self, operation: str, cluster_id: str, group_id: str, subjects: tuple[str, ...], plan: Any) -> Run:
        """A new run of ``plan``, which is written to the run's directory first."""
        run_id = self._new_id()
        self.write(run_id, "plan.json", json.dumps(plan).encode())
        values = (run_id, operation, cluster_id, group_id, json.dumps(subjects), RunState.OPEN.value, now_utc(), None)
        with self._open() as db:
            db.execute("INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        return self.get(run_id)

    def _new_id(self) -> str:
        """The id of a run that is not there yet, with its directory: two of one second may draw the same number."""
        while True:
            run_id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
            try:
                (self.directory / "runs" / run_id).mkdir(parents=True, mode=0o700)
            except FileExistsError:
                continue
            except OSError as e:
                raise self._unwritable(e) from e
            return run_id

    def begin_plan(self, plan: Plan, subjects: Sequence[str] = ()) -> Run:
        """A new run of ``plan``, for lists about ``subjects``, else about all that it changes."""
        about = tuple(subjects) or plan.subjects
        return self.begin(plan.operation, plan.cluster_id, plan.group_id, about, plan.as_json())

    def plan_of(self, run: Run, kinds: Mapping[str, type[Any]]) -> Plan:
        """The plan of a run. Raises ``BadInput`` where it has steps that are not of ``kinds``."""
        known = {"clusterId": run.cluster_id, "groupId": run.group_id, "independent": False, "needless": []}
        return Plan.from_json(known | self.plan(run.id), kinds)

    def mark(self, run: str, step: int, what: str, detail: str | None = None) -> None:
        """Write down that a step was begun, is done, or failed; it is on the disk when this returns."""
        with self._open() as db:
            db.execute("INSERT INTO mark VALUES (?, ?, ?, ?, ?)", (run, step, what, detail, now_utc()))

    def end(self, run: str, state: RunState) -> None:
        with self._open() as db:
            db.execute("UPDATE run SET state = ?, ended_at = ? WHERE id = ?", (state.value, now_utc(), run))

    def get(self, run: str) -> Run:
        """The run called ``run``. Raises ``BadInput`` where there is none."""
        found = self._runs("WHERE id = ?", run) if run.isascii() else []  # SQLite takes no half of a character
        if not found:
            raise BadInput(f"Run not found: {run}", next_step="See connectctl runs list.")
        return found[0]

    def knows(self, run: str) -> bool:
        """Whether a run is one of this journal's."""
        with self._open() as db:
            return db.execute("SELECT 1 FROM run WHERE id = ?", (run,)).fetchone() is not None

    def runs(self) -> list[Run]:
        return self._runs("")

    def _runs(self, where: str, *values: str) -> list[Run]:
        with self._open() as db:
            rows = db.execute(f"SELECT * FROM run {where} ORDER BY started_at DESC, id DESC", values).fetchall()
            marks: dict[str, list[StepEvent]] = {}
            those = f"WHERE run IN (SELECT id FROM run {where})"
            for name, *mark in db.execute(f"SELECT * FROM mark {those} ORDER BY rowid", values):
                marks.setdefault(name, []).append(StepEvent(*mark))
        return [
            Run(i, op, cluster, group, tuple(read_json(subjects)), RunState(state), start, end, tuple(marks.get(i, ())))
            for i, op, cluster, group, subjects, state, start, end in rows
        ]

    def runs_of(self, operation: str, cluster_id: str, group_id: str) -> list[Run]:
        where = "WHERE operation = ? AND cluster_id = ? AND group_id = ?"
        return self._runs(where, operation, cluster_id, group_id)

    def unfinished_runs(self, cluster_id: str, group_id: str) -> list[Run]:
        """Runs on this Connect cluster that were begun, changed something, and did not end well."""
        here = self._runs("WHERE cluster_id = ? AND group_id = ? AND state IN ('open', 'failed')", cluster_id, group_id)
        return [run for run in here if run.changed]

    def plan(self, run: str) -> Any:
        return read_json(self.path(run, "plan.json").read_bytes())

    def path(self, run: str, name: str) -> Path:
        return self.directory / "runs" / run / name

    def write(self, run: str, name: str, content: bytes) -> Path:
        """Write a file of a run whole or not at all; it is on the disk when this returns."""
        return self.write_all(run, lambda: name, (content,))

    def write_all(self, run: str, name: Callable[[], str], content: Iterable[bytes]) -> Path:
        """``write`` for ``content`` in parts; its ``name`` is asked for when all of it has been written."""
        directory = self.path(run, "")
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            return _write_whole(directory, name, content)
        except OSError as e:
            raise self._unwritable(e) from e

    def store_artifact(self, content: Iterable[bytes]) -> str:
        """Keep ``content`` for later steps of a run, whatever becomes of where it came from; gives its relative path."""
        hashed = hashlib.sha256()

        def parts() -> Iterator[bytes]:
            for part in content:
                hashed.update(part)
                yield part

        return str(self.write_all("kept", hashed.hexdigest, parts()).relative_to(self.directory))

    @contextmanager
    def locked(self, cluster_id: str, group_id: str, run: str = "") -> Iterator[None]:
        """No other process with this journal changes this Connect cluster during ``run``. Raises ``Refused``.

        The kernel drops the lock with the process, so a kill leaves none behind. Processes with another journal, here or on
        another machine, is kept out by the lock of the cluster itself (``ClusterLock``).
        """
        import fcntl

        path = self.directory / f"{cluster_id}-{group_id.replace('/', '_')}.lock"
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as e:
            raise self._unwritable(e) from e
        with os.fdopen(handle, "r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as e:
                holder = file.read().strip() or "unknown"
                raise Refused(
                    f"Another connectctl (process {holder}) is changing {group_id or cluster_id}; nothing was done",
                    next_step="Wait until it ends; see connectctl runs list.",
                    code="locked",
                ) from e
            file.truncate(0)
            file.write(f"{os.getpid()}, run {run}" if run else str(os.getpid()))
            file.flush()
            yield


def _write_whole(directory: Path, name: Callable[[], str], content: Iterable[bytes]) -> Path:
    number, name_of_draft = tempfile.mkstemp(".part", ".", directory)
    draft = Path(name_of_draft)
    try:
        with os.fdopen(number, "wb") as file:
            file.writelines(content)
            file.flush()
            os.fsync(file.fileno())
        path = draft.replace(directory / name())
    finally:
        draft.unlink(missing_ok=True)
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)  # or a loss of power could take the name with it
    finally:
        os.close(handle)
    return path
