"""The connection of a journal to its SQLite file."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SYNCHRONOUS = "FULL"
"""SQLite's ``synchronous``: a mark is on disk before the step that it announces begins."""


class JournalDatabase:
    """The SQLite file ``path``, opened at its first use and kept open: to open it and read its
    schema takes longer than to write a mark.

    It is opened again where ``path`` leads to another file or to none: marks would be written to a
    file that nobody finds.
    """

    def __init__(self, path: Path):
        self._path = path
        self._opened: tuple[sqlite3.Connection, tuple[int, int]] | None = None
        self._lock = threading.RLock()

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, for one thread at a time; each statement is a transaction of its
        own. Raises ``sqlite3.Error``, also if the file does not exist.
        """
        with self._lock:
            there = self._file()
            if self._opened is None or self._opened[1] != there:
                self._opened = self._connect(), self._file() or (0, 0)
            yield self._opened[0]

    def _file(self) -> tuple[int, int] | None:
        """Return the device and the inode that ``path`` leads to."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _connect(self) -> sqlite3.Connection:
        # Not created here; SQLite opens a file that may not be written for reading.
        uri = f"{self._path.absolute().as_uri()}?mode=rw"
        db = sqlite3.connect(
            uri, uri=True, timeout=30, isolation_level=None, check_same_thread=False
        )
        weakref.finalize(self, db.close)
        db.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        return db
