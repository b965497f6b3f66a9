"""The journal of runs and their progress: one SQLite file and one directory per run, under the state directory.

A run is a plan in execution. Before and after each step a mark is written, so that a run that was killed anywhere can be
resumed. Paths in it are relative: the directory can be moved. All files are readable for their owner only.
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
        """Whether any step was begun or done: otherwise there is nothing to resume or undo."""
        return any(mark.what in ("done", "begun") for mark in self.marks)

    def done(self, step: int) -> bool:
        """Whether ``step`` was completed."""
        return any(mark.step == step and mark.what in ("done", "already") for mark in self.marks)


class Journal:
    """The journal in ``directory``. Raises ``ConnectctlError`` if it cannot be written."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.reveal: Callable[[str, Any], Any] | None = None
        """``ops.clients.secrets.reveal``, for kept configurations that refer to secrets; None where there are none."""
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
        """Begin a run of ``plan``, which is written to the run's directory first."""
        run_id = self._new_id()
        self.write(run_id, "plan.json", json.dumps(plan).encode())
        values = (run_id, operation, cluster_id, group_id, json.dumps(subjects), RunState.OPEN.value, now_utc(), None)
        with self._open() as db:
            db.execute("INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        return self.get(run_id)

    def _new_id(self) -> str:
        """Return an unused run id, with its directory created: two runs of one second may draw the same number."""
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
        """Begin a run of ``plan``; lists show ``subjects``, or all resources that it changes."""
        about = tuple(subjects) or plan.subjects
        return self.begin(plan.operation, plan.cluster_id, plan.group_id, about, plan.as_json())

    def plan_of(self, run: Run, kinds: Mapping[str, type[Any]]) -> Plan:
        """Return the plan of a run. Raises ``BadInput`` if it has steps not in ``kinds``."""
        known = {"clusterId": run.cluster_id, "groupId": run.group_id, "independent": False, "needless": []}
        return Plan.from_json(known | self.plan(run.id), kinds)

    def mark(self, run: str, step: int, what: str, detail: str | None = None) -> None:
        """Record that a step was begun, is done, or failed; it is synced to disk on return."""
        with self._open() as db:
            db.execute("INSERT INTO mark VALUES (?, ?, ?, ?, ?)", (run, step, what, detail, now_utc()))

    def end(self, run: str, state: RunState) -> None:
        """Record how a run ended."""
        with self._open() as db:
            db.execute("UPDATE run SET state = ?, ended_at = ? WHERE id = ?", (state.value, now_utc(), run))

    def remove(self, runs: Sequence[str]) -> None:
        """Remove runs from the list; their files are not touched."""
        with self._open() as db:
            for table, column in (("mark", "run"), ("run", "id")):
                db.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(run,) for run in runs])

    def get(self, run: str) -> Run:
        """Return the run ``run``. Raises ``BadInput`` if it does not exist."""
        found = self._runs("WHERE id = ?", run) if run.isascii() else []  # SQLite rejects lone surrogates
        if not found:
            raise BadInput(f"Run not found: {run}", next_step="See connectctl runs list.")
        return found[0]

    def knows(self, run: str) -> bool:
        """Whether this journal has the run."""
        with self._open() as db:
            return db.execute("SELECT 1 FROM run WHERE id = ?", (run,)).fetchone() is not None

    def runs(self) -> list[Run]:
        """Return all runs, the newest first."""
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
        """Return the runs of an operation on this Connect cluster, the newest first."""
        where = "WHERE operation = ? AND cluster_id = ? AND group_id = ?"
        return self._runs(where, operation, cluster_id, group_id)

    def unfinished_runs(self, cluster_id: str, group_id: str) -> list[Run]:
        """Return runs on this Connect cluster that changed something and did not end successfully."""
        here = self._runs("WHERE cluster_id = ? AND group_id = ? AND state IN ('open', 'failed')", cluster_id, group_id)
        return [run for run in here if run.changed]

    def plan(self, run: str) -> Any:
        """Return the plan of a run, as passed to ``begin``."""
        return read_json(self.path(run, "plan.json").read_bytes())

    def path(self, run: str, name: str) -> Path:
        """Return the path of a file of a run."""
        return self.directory / "runs" / run / name

    def write(self, run: str, name: str, content: bytes) -> Path:
        """Write a file of a run atomically; it is synced to disk on return."""
        return self.write_all(run, lambda: name, (content,))

    def write_all(self, run: str, name: Callable[[], str], content: Iterable[bytes]) -> Path:
        """Write ``content`` in parts as ``write`` does; ``name`` is called after all of it has been written."""
        directory = self.path(run, "")
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            return _write_whole(directory, name, content)
        except OSError as e:
            raise self._unwritable(e) from e

    def store_artifact(self, content: Iterable[bytes]) -> str:
        """Store a copy of ``content`` for later steps of a run; returns its relative path."""
        hashed = hashlib.sha256()

        def parts() -> Iterator[bytes]:
            for part in content:
                hashed.update(part)
                yield part

        return str(self.write_all("kept", hashed.hexdigest, parts()).relative_to(self.directory))

    @contextmanager
    def locked(self, cluster_id: str, group_id: str, run: str = "") -> Iterator[None]:
        """Lock this Connect cluster for ``run`` against other processes with this journal. Raises ``Refused``.

        The kernel releases the lock when the process ends, also if killed. Processes with another journal, here or on
        another machine, are excluded by the lock of the cluster itself (``ClusterLock``).
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
        os.fsync(handle)  # otherwise a power failure could lose the name
    finally:
        os.close(handle)
    return path
