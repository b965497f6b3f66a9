"""Records of a topic too big for memory, on disk in the order of their keys: runs that are sorted, and merged when read.

The files have no name, so that nothing is left of them however the process ends.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import merge
from typing import IO, Any

from connectctl.ops.edges.contract import Record
from connectctl.ops.errors import ConnectctlError

MOST = 200_000
"""Records of all topics of one reading that are kept in memory: some 200 MB, with what it takes to sort them."""
_CHUNK = 2_000
"""Records that are written and read at once."""

Row = tuple[bytes, bytes, bool, int, int, Any, Any]
"""What a run is sorted by (the key's group, the key, whether there is none, partition, offset), timestamp and value."""


class Spilled(Collection[Record]):
    """The newest record of each key in each partition, in the order of ``group_of`` the keys and then of the keys.

    Can be gone through again and again; each time the files are read.
    """

    def __init__(self, group_of: Callable[[bytes | None], bytes]) -> None:
        self._group_of = group_of
        self._runs: list[IO[bytes]] = []
        self._count: int | None = None

    def __del__(self) -> None:
        for run in self._runs:
            run.close()

    def add(self, records: Iterable[Record]) -> None:
        """Write a run. Raises ``ConnectctlError`` where there is no room for it."""
        group_of = self._group_of
        rows = [
            (group_of(key), key or b"", key is None, partition, offset, timestamp, value)
            for key, value, partition, offset, timestamp in records
        ]
        rows.sort()
        try:
            # Kept open: it is read later, and gone when it is closed.
            run = tempfile.TemporaryFile(prefix="connectctl-")  # noqa: SIM115
            for start in range(0, len(rows), _CHUNK):
                pickle.dump(rows[start : start + _CHUNK], run, pickle.HIGHEST_PROTOCOL)
            run.flush()
        except OSError as e:
            raise ConnectctlError(
                f"A topic of this size needs room in {tempfile.gettempdir()}",
                why=e.strerror,
                next_step="Name a directory with as much room as the topic has in TMPDIR.",
                code="no-room",
            ) from e
        self._runs.append(run)
        self._count = None

    def __iter__(self) -> Iterator[Record]:
        before: Row | None = None
        for row in merge(*map(_rows, self._runs)):
            if before is not None and before[1:4] != row[1:4]:
                yield _record(before)
            before = row
        if before is not None:
            yield _record(before)

    def __len__(self) -> int:
        if self._count is None:
            self._count = sum(1 for _ in self)
        return self._count

    def __contains__(self, record: object) -> bool:
        return any(each == record for each in self)


def _rows(run: IO[bytes]) -> Iterator[Row]:
    """The rows of a run. Several may read it at a time."""
    at = 0
    while True:
        run.seek(at)
        try:
            some: list[Row] = pickle.load(run)  # of a file without a name, which this process wrote
        except EOFError:
            return
        at = run.tell()
        yield from some


def _record(row: Row) -> Record:
    _, key, without, partition, offset, timestamp, value = row
    return Record(None if without else key, value, partition, offset, timestamp)
