"""The journal of runs and their progress: one SQLite file and one directory per run, under the
state directory.

A run is a plan in execution. Before and after each step a mark is written, so that a run that was
killed anywhere can be resumed. Paths in it are relative: the directory can be moved. All files are
readable for their owner only.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from connectctl.ops.config import whole_file
from connectctl.ops.config.json_shape import an_object, array, text
from connectctl.ops.config.json_text import read_json
from connectctl.ops.core.errors import BadInput, ConnectctlError, Refused
from connectctl.ops.core.journal_database import JournalDatabase
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.times import now_utc

FORMAT = 1
"""The version of the database, kept in it as ``user_version``. It is set in the transaction that
creates the tables.
"""
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS run (
    id TEXT PRIMARY KEY, operation TEXT NOT NULL, cluster_id TEXT NOT NULL, group_id TEXT NOT NULL,
    subjects TEXT NOT NULL, state TEXT NOT NULL, started_at TEXT NOT NULL, ended_at TEXT
)""",
    """CREATE TABLE IF NOT EXISTS mark (
    run TEXT NOT NULL REFERENCES run(id), step INTEGER NOT NULL, what TEXT NOT NULL, detail TEXT,
    at TEXT NOT NULL
)""",
    "CREATE INDEX IF NOT EXISTS mark_of_run ON mark(run)",
    "CREATE TABLE IF NOT EXISTS file (run TEXT NOT NULL, name TEXT NOT NULL, sha256 TEXT NOT NULL)",
    "CREATE INDEX IF NOT EXISTS file_of_run ON file(run)",
)
KEPT = "kept"
"""The directory of files that are called by their SHA-256."""
HASHED = 1 << 20
"""Bytes of a file that are read together to verify it."""


class RunState(StrEnum):
    """Status of a run. OPEN: begun and not ended, still running or killed. REFUSED: it changed
    nothing.
    """

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    UNDONE = "undone"


@dataclass(frozen=True)
class StepEvent:
    """A mark that step ``step`` (from 0) was begun, done, already or failed, with its detail."""

    step: int
    what: str
    detail: str | None
    at: str


@dataclass(frozen=True)
class Run:
    """A run as recorded in the journal."""

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
        """Return whether any step was begun or done: else there is nothing to resume or undo."""
        return any(mark.what in ("done", "begun") for mark in self.marks)

    @property
    def is_unfinished(self) -> bool:
        """Return whether the run changed something and did not end successfully."""
        return self.changed and self.state in (RunState.OPEN, RunState.FAILED)

    @property
    def is_open(self) -> bool:
        """Return whether the run has begun and not ended: it is still running, or was killed."""
        return self.state is RunState.OPEN

    def done(self, step: int) -> bool:
        """Return whether ``step`` was completed."""
        return any(mark.step == step and mark.what in ("done", "already") for mark in self.marks)

    def did(self, step: int) -> bool:
        """Return whether this run changed something in ``step``, or was interrupted in it: not if
        it found the step done.
        """
        whats = [mark.what for mark in self.marks if mark.step == step]
        return "done" in whats or ("begun" in whats and whats != ["begun", "already"])


class Journal:
    """The journal in ``directory``. Raises ``ConnectctlError`` if it cannot be written, or is
    damaged.

    One that is ``read_only`` writes nothing, and can be read on a full or read-only disk.
    """

    def __init__(self, directory: Path, *, read_only: bool = False):
        self.directory = directory
        self.reveal: Callable[[str, Any], Any] | None = None
        """``ops.clients.secrets.reveal``, for kept configurations that refer to secrets; None where
        there are none.
        """
        self._database = directory / "journal.db"
        self._runs_file = JournalDatabase(self._database)
        if read_only:
            return
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._has_runs()
            self._database.touch(mode=0o600)
        except OSError as e:
            raise self._unwritable(e, "; nothing was done") from e
        with self._open("; nothing was done") as db:
            if _format_of(db) != FORMAT:
                _create(db)

    def _has_runs(self) -> bool:
        """Return whether there is a list of runs. Raises ``ConnectctlError`` if there was one, and
        it is lost.
        """
        why = "it is empty"
        try:
            if self._database.stat().st_size:
                return True
        except FileNotFoundError:
            why = "it does not exist"
        except OSError as e:
            hint = (
                "Correct the path or its permissions, or set CONNECTCTL_JOURNAL to another "
                "directory."
            )
            what = f"The journal in {self.directory} cannot be read"
            raise ConnectctlError(what, why=e.strerror, next_step=hint, code="journal") from e
        if any((self.directory / "runs").glob("*-*-*")):
            raise self._damaged(why)
        return False

    def _unwritable(self, error: Exception, changes: str = "") -> ConnectctlError:
        return ConnectctlError(
            f"The journal in {self.directory} cannot be written{changes}",
            why=str(error),
            next_step="Free disk space or correct the permissions there, or set "
            "CONNECTCTL_JOURNAL to another directory.",
            code="journal",
        )

    def _damaged(self, why: str) -> ConnectctlError:
        return ConnectctlError(
            f"The list of runs {self._database} is damaged; nothing was done",
            why=why,
            next_step=f"Restore it from a backup, or move {self.directory} away to begin a new "
            "journal: its directory runs has the plan and the backups of each run.",
            code="journal-damaged",
        )

    @contextmanager
    def _open(self, changes: str = "") -> Iterator[sqlite3.Connection]:
        try:
            with self._runs_file.connection() as db:
                self._check_format(db)
                yield db
        except sqlite3.OperationalError as e:
            raise self._unwritable(e, changes) from e
        except sqlite3.Error as e:
            raise self._damaged(str(e)) from e

    def _check_format(self, db: sqlite3.Connection) -> None:
        """Raise ``BadInput`` for a database of another format than this version's."""
        found = _format_of(db)
        if found != FORMAT and db.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise BadInput(
                f"The journal in {self.directory} was written by another version of connectctl; "
                "nothing was done",
                why=f"its format is {found}, and this version reads {FORMAT}",
                next_step="Use that version, or move the directory away to begin a new journal.",
                code="journal-version",
            )

    def begin(
        self, operation: str, cluster_id: str, group_id: str, subjects: tuple[str, ...], plan: Any
    ) -> Run:
        """Begin a run of ``plan``, which is written to the run's directory first."""
        run_id = self._new_id()
        self.write(run_id, "plan.json", json.dumps(plan).encode())
        values = (
            run_id,
            operation,
            cluster_id,
            group_id,
            json.dumps(subjects),
            RunState.OPEN.value,
            now_utc(),
            None,
        )
        with self._open("; nothing was done") as db:
            db.execute("INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        return self.get(run_id)

    def _new_id(self) -> str:
        """Return an unused run id, with its directory created: two runs of one second may draw the
        same number.
        """
        while True:
            run_id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
            try:
                (self.directory / "runs" / run_id).mkdir(parents=True, mode=0o700)
            except FileExistsError:
                continue
            except OSError as e:
                raise self._unwritable(e, "; nothing was done") from e
            return run_id

    def begin_plan(self, plan: Plan, subjects: Sequence[str] = ()) -> Run:
        """Begin a run of ``plan``; lists show ``subjects``, or all resources that it changes."""
        about = tuple(subjects) or plan.subjects
        return self.begin(plan.operation, plan.cluster_id, plan.group_id, about, plan.as_json())

    def plan_of(self, run: Run, kinds: Mapping[str, type[Any]]) -> Plan:
        """Return the plan of a run. Raises ``BadInput`` if it has steps not in ``kinds``."""
        return Plan.from_json(self.plan(run.id), kinds)

    def mark(self, run: str, step: int, what: str, detail: str | None = None) -> None:
        """Record that a step was begun, is done, or failed; it is synced to disk on return."""
        with self._open() as db:
            db.execute(
                "INSERT INTO mark VALUES (?, ?, ?, ?, ?)", (run, step, what, detail, now_utc())
            )

    def end(self, run: str, state: RunState) -> None:
        """Record how a run ended."""
        with self._open() as db:
            db.execute(
                "UPDATE run SET state = ?, ended_at = ? WHERE id = ?", (state.value, now_utc(), run)
            )

    def remove(self, runs: Sequence[str]) -> None:
        """Remove runs from the list; their files are not touched."""
        with self._open() as db:
            for table, column in (("mark", "run"), ("file", "run"), ("run", "id")):
                db.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(run,) for run in runs])

    def get(self, run: str) -> Run:
        """Return the run ``run``. Raises ``BadInput`` if it does not exist."""
        # SQLite rejects lone surrogates
        found = self._runs("WHERE id = ?", run) if run.isascii() else []
        if not found:
            raise BadInput(f"Run not found: {run}", next_step="See connectctl runs list.")
        return found[0]

    def knows(self, run: str) -> bool:
        """Return whether this journal has the run."""
        if not self._has_runs():
            return False
        with self._open() as db:
            return db.execute("SELECT 1 FROM run WHERE id = ?", (run,)).fetchone() is not None

    def runs(self) -> list[Run]:
        """Return all runs, the newest first."""
        return self._runs("")

    def _runs(self, where: str, *values: str) -> list[Run]:
        if not self._has_runs():
            return []
        with self._open() as db:
            # By the sequence in which they were begun: clocks are set back.
            rows = db.execute(f"SELECT * FROM run {where} ORDER BY rowid DESC", values).fetchall()
            marks: dict[str, list[StepEvent]] = {}
            those = f"WHERE run IN (SELECT id FROM run {where})"
            for name, *mark in db.execute(f"SELECT * FROM mark {those} ORDER BY rowid", values):
                marks.setdefault(name, []).append(StepEvent(*mark))
        try:
            return [_run(row, marks) for row in rows]
        except (TypeError, ValueError) as e:
            raise self._damaged(str(e)) from e

    def runs_of(self, operation: str, cluster_id: str, group_id: str) -> list[Run]:
        """Return the runs of an operation on this Connect cluster, the newest first."""
        where = "WHERE operation = ? AND cluster_id = ? AND group_id = ?"
        return self._runs(where, operation, cluster_id, group_id)

    def unfinished_runs(self, cluster_id: str, group_id: str) -> list[Run]:
        """Return runs on this Connect cluster that changed something and did not end
        successfully.
        """
        here = self._runs(
            "WHERE cluster_id = ? AND group_id = ? AND state IN ('open', 'failed')",
            cluster_id,
            group_id,
        )
        return [run for run in here if run.changed]

    def plan(self, run: str) -> dict[str, Any]:
        """Return the plan of a run, as passed to ``begin``. Raises ``BadInput`` as ``read``
        does.
        """
        return self.read_json(run, "plan.json")

    def read_json(self, run: str, name: str) -> dict[str, Any]:
        """Return the JSON object in a file of a run. Raises ``BadInput`` as ``read`` does."""
        raw, path = self.read(run, name), self.path(run, name)
        try:
            found = read_json(raw)
            an_object({})(found)
        except ValueError as e:
            raise _unusable(path, f"it is cut or damaged: {e}") from e
        return dict(found)

    def read(self, run: str, name: str) -> bytes:
        """Return a file of a run. Raises ``BadInput`` if it is not as it was written."""
        path = self.path(run, name)
        try:
            raw = path.read_bytes()
        except OSError as e:
            raise _unusable(path, e.strerror or str(e)) from e
        self._verify(run, name, hashlib.sha256(raw).hexdigest())
        return raw

    def verified(self, run: str, name: str) -> Path:
        """Return the path of a file of a run, or of a kept one. Raises ``BadInput`` if it is not as
        it was written.
        """
        path, hashed = self.path(run, name), hashlib.sha256()
        try:
            with path.open("rb") as file:
                while part := file.read(HASHED):
                    hashed.update(part)
        except OSError as e:
            raise _unusable(path, e.strerror or str(e)) from e
        self._verify(run, name, hashed.hexdigest())
        return path

    def _verify(self, run: str, name: str, found: str) -> None:
        known = [name] if run == KEPT else self._digests(run, name)
        if known and found not in known:
            raise _unusable(
                self.path(run, name),
                "it was changed since it was written: its SHA-256 is another one",
            )

    def _digests(self, run: str, name: str) -> list[str]:
        """Return the digest with which a file was written; also the one before, if writing was
        interrupted.
        """
        if not self._has_runs():
            return []
        with self._open() as db:
            found = db.execute(
                "SELECT sha256 FROM file WHERE run = ? AND name = ?", (run, name)
            ).fetchall()
        return [str(digest) for (digest,) in found]

    def path(self, run: str, name: str) -> Path:
        """Return the path of a file of a run."""
        return self.directory / "runs" / run / name

    def write(self, run: str, name: str, content: bytes) -> Path:
        """Write a file of a run atomically; it is synced to disk on return."""
        return self.write_all(run, lambda: name, (content,))

    def write_all(self, run: str, name: Callable[[], str], content: Iterable[bytes]) -> Path:
        """Write ``content`` in parts as ``write`` does; ``name`` is called after all of it has been
        written.
        """
        directory, hashed = self.path(run, ""), hashlib.sha256()
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            with whole_file.draft(directory) as file:
                file.writelines(_hashing(content, hashed))
                path, digest = directory / name(), hashed.hexdigest()
                # Before the file has its name: a run that is killed in between has both digests.
                if run != KEPT:
                    self._note(run, path.name, digest)
                whole_file.put(file, path)
            if run != KEPT:
                self._forget_others(run, path.name, digest)
        except OSError as e:
            raise self._unwritable(e) from e
        return path

    def _note(self, run: str, name: str, digest: str) -> None:
        with self._open() as db:
            db.execute("INSERT INTO file VALUES (?, ?, ?)", (run, name, digest))

    def _forget_others(self, run: str, name: str, digest: str) -> None:
        with self._open() as db:
            db.execute(
                "DELETE FROM file WHERE run = ? AND name = ? AND sha256 <> ?", (run, name, digest)
            )

    def store_artifact(self, content: Iterable[bytes]) -> str:
        """Store a copy of ``content`` for later steps of a run; returns its relative path."""
        hashed = hashlib.sha256()
        path = self.write_all(KEPT, hashed.hexdigest, _hashing(content, hashed))
        return str(path.relative_to(self.directory))

    @contextmanager
    def locked(self, cluster_id: str, group_id: str, run: str = "") -> Iterator[None]:
        """Lock this Connect cluster for ``run`` against other processes with this journal. Raises
        ``Refused``.

        The kernel releases the lock when the process ends, also if killed. Processes with another
        journal, here or on another machine, are excluded by the lock of the cluster itself
        (``ClusterLock``).
        """
        import fcntl

        path = self.directory / f"{cluster_id}-{group_id.replace('/', '_')}.lock"
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as e:
            raise self._unwritable(e, "; nothing was done") from e
        with os.fdopen(handle, "r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as e:
                holder = file.read().strip() or "unknown"
                raise Refused(
                    f"Another connectctl (process {holder}) is changing {group_id or cluster_id}; "
                    "nothing was done",
                    next_step="Wait until it ends; see connectctl runs list.",
                    code="locked",
                ) from e
            file.truncate(0)
            file.write(f"{os.getpid()}, run {run}" if run else str(os.getpid()))
            file.flush()
            yield


def _create(db: sqlite3.Connection) -> None:
    """Create the tables, in one transaction: a command that is killed leaves all of them or none.
    Another command may have created them meanwhile.
    """
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute(f"PRAGMA user_version = {FORMAT}")
        for statement in SCHEMA:
            db.execute(statement)


def _format_of(db: sqlite3.Connection) -> int:
    """Return the format of a database; 0 for a new one."""
    (found,) = db.execute("PRAGMA user_version").fetchone()
    return int(found)


def _run(row: tuple[Any, ...], marks: Mapping[str, Sequence[StepEvent]]) -> Run:
    """Return the run in a row of the database. Raises ``ValueError`` or ``TypeError`` if it is not
    one.
    """
    for value in (*row[:7], row[7] or ""):
        text(value)
    run, operation, cluster, group, subjects, state, start, end = row
    about = read_json(subjects)
    array(text)(about)
    return Run(
        run,
        operation,
        cluster,
        group,
        tuple(about),
        RunState(state),
        start,
        end,
        tuple(marks.get(run, ())),
    )


def _unusable(path: Path, why: str) -> BadInput:
    hint = (
        "Restore it from a backup of the journal, or use the journal that has it: "
        "CONNECTCTL_JOURNAL."
    )
    return BadInput(
        f"{path} cannot be read; nothing was done", why=why, next_step=hint, code="journal-damaged"
    )


def _hashing(content: Iterable[bytes], hashed: Any) -> Iterator[bytes]:
    for part in content:
        hashed.update(part)
        yield part
