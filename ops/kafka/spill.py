"""Records of a topic too big for memory, on disk in the order of their keys: runs that are sorted, and merged when read.

The files have no name, so that nothing is left of them however the process ends.
"""

from __future__ import annotations

import marshal
import os
import pickle
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, islice
from operator import eq, itemgetter
from typing import IO, TypeVar

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.records import Record, Row, SortedRecords, record_in

T = TypeVar("T")
MOST = 200_000
"""Records of all topics of one reading that are kept in memory: some 200 MB, with what it takes to sort them."""
_CHUNK = 2_000
"""Records that are written and read at once, of one run."""

_LENGTH = 8
"""Bytes before each of these chunks, which are its length."""

_GROUP, _BYTES, _KEY, _PLACE = itemgetter(0), itemgetter(1), itemgetter(0, 1), itemgetter(0, 1, 2, 3)


class Spilled(SortedRecords):
    """The newest record of each key in each partition, in the order of ``group_of`` the keys and then of the keys.

    Can be gone through again and again; each time the files are read.
    """

    def __init__(self, group_of: Callable[[bytes | None], bytes]) -> None:
        self._group_of = group_of
        self._runs: list[IO[bytes]] = []
        self._ends: list[list[tuple[bytes, int]]] = []
        self._count: int | None = None
        self.added = 0
        """Records that were added, older ones of a key too."""

    def __del__(self) -> None:
        for run in self._runs:
            run.close()

    def add(self, records: Iterable[Record]) -> None:
        """Write a run. Raises ``ConnectctlError`` where there is no room for it."""
        self.add_rows(list(in_order(records, self._group_of)))

    def add_rows(self, rows: list[Row]) -> None:
        """The same of rows in any order."""
        rows = _sorted(rows)
        self.added += len(rows)
        with _room():
            # Kept open: it is read later, and gone when it is closed.
            run = tempfile.TemporaryFile(prefix="connectctl-")  # noqa: SIM115
            ends = []
            for some in _chunks(rows):
                ends.append((some[-1][0], run.tell()))
                # Bytes, numbers and None: in two thirds of the time of pickle, without references to what repeats.
                text = marshal.dumps(some, 2)
                run.write(len(text).to_bytes(_LENGTH))
                run.write(text)
            run.flush()
        self._runs.append(run)
        self._ends.append(ends)
        self._count = None

    def blocks(self, group: bytes | None = None) -> Iterator[list[Row]]:
        """See ``SortedRecords``."""
        runs = [_Run(file, _start(ends, group)) for file, ends in zip(self._runs, self._ends, strict=True)]
        while runs := [run for run in runs if run.rows and (group is None or run.rows[0][0] <= group)]:
            # What is not beyond the first end of a chunk is there whole: what is not read yet comes later.
            end = min(run.end for run in runs)
            yield _newest(_sorted([row for run in runs for row in run.until(end)]))

    def __iter__(self) -> Iterator[Record]:
        for rows in self.blocks():
            yield from map(record_in, rows)

    def __len__(self) -> int:
        if self._count is None:
            self._count = sum(map(len, self.blocks()))
        return self._count

    def __contains__(self, record: object) -> bool:
        return any(each == record for each in self)


class Spooled(Collection[T]):
    """Values on disk in the order in which they were added. Can be gone through again and again."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._count = 0

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, values: Collection[T]) -> None:
        """Write more. Raises ``ConnectctlError`` where there is no room for it."""
        if not values:
            return
        with _room():
            self._file = self._file or tempfile.TemporaryFile(prefix="connectctl-")  # noqa: SIM115
            self._file.seek(0, os.SEEK_END)
            pickle.dump(list(values), self._file, pickle.HIGHEST_PROTOCOL)
        self._count += len(values)

    def __iter__(self) -> Iterator[T]:
        at = 0
        while self._file is not None:
            self._file.seek(at)  # several may go through it at a time
            try:
                some: list[T] = pickle.load(self._file)  # of a file without a name, which this process wrote
            except EOFError:
                return
            at = self._file.tell()
            yield from some

    def __len__(self) -> int:
        return self._count

    def __contains__(self, value: object) -> bool:
        return any(each == value for each in self)


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise ConnectctlError(
            f"A topic of this size needs room in {tempfile.gettempdir()}",
            why=e.strerror,
            next_step="Name a directory with as much room as the topic has in TMPDIR.",
            code="no-room",
        ) from e


def in_order(
    records: Iterable[Record], group_of: Callable[[bytes | None], bytes], group: bytes | None = None
) -> Iterator[Row]:
    """The rows of ``records``, of one ``group`` or of all, in the order of groups and keys, wherever they are."""
    if isinstance(records, SortedRecords):
        return (row for rows in records.blocks(group) for row in rows if group is None or row[0] == group)
    rows = [
        (of, key or b"", key is None, partition, offset, timestamp, value)
        for key, value, partition, offset, timestamp in records
        if (of := group_of(key)) == group or group is None
    ]
    return iter(_sorted(rows))


class _Run:
    """A run, a chunk of it in memory: ``rows``, none at its end, and the key that is the last of them."""

    def __init__(self, file: IO[bytes], start: int) -> None:
        self._file, self._at, self._next = file, start, 0
        self._load()

    def until(self, end: tuple[bytes, bytes]) -> list[Row]:
        """Takes the rows whose keys are not beyond ``end``."""
        if self.end <= end:
            found = self.rows[self._next :]
            self._load()
            return found
        begin, self._next = self._next, bisect_right(self.rows, end, self._next, key=_KEY)
        return self.rows[begin : self._next]

    def _load(self) -> None:
        # Several may read the file at a time.
        self._file.seek(self._at)
        length = int.from_bytes(self._file.read(_LENGTH))
        # Of a file without a name, which this process wrote.
        self.rows: list[Row] = marshal.loads(self._file.read(length)) if length else []
        if self.rows:
            self.end = _KEY(self.rows[-1])
        self._next, self._at = 0, self._at + _LENGTH + length


def _start(ends: Sequence[tuple[bytes, int]], group: bytes | None) -> int:
    """Where the first chunk begins that may hold some of ``group``; ``ends`` are the last group of each, and where it is."""
    if group is None:
        return 0
    return next((at for last, at in ends if last >= group), ends[-1][1] if ends else 0)


def _sorted(rows: list[Row]) -> list[Row]:
    """By group and key. To compare bytes is three times as quick as to compare tuples of them."""
    by_group: dict[bytes, list[Row]] = {}
    if rows and all(map(rows[0][0].__eq__, map(_GROUP, rows))):
        by_group[rows[0][0]] = rows
    else:
        for row in rows:
            by_group.setdefault(row[0], []).append(row)
    for some in by_group.values():
        some.sort(key=itemgetter(1))
    return [row for _, some in sorted(by_group.items()) for row in some]


def _chunks(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """The rows in lists that do not end amid a key."""
    start = 0
    while start < len(rows):
        end = min(start + _CHUNK, len(rows))
        while end < len(rows) and _KEY(rows[end]) == _KEY(rows[end - 1]):
            end += 1
        yield list(rows[start:end])
        start = end


def _newest(rows: list[Row]) -> list[Row]:
    """Of each key the newest row of each partition, by partition; ``rows`` are in the order of their keys."""
    keys = list(map(_BYTES, rows))
    if not any(map(eq, keys, islice(keys, 1, None))):
        return rows
    found: list[Row] = []
    for _, same in groupby(rows, key=_KEY):
        some = sorted(same, key=itemgetter(2, 3, 4))
        found += [
            row for row, after in zip(some, [*some[1:], None], strict=True) if not after or _PLACE(row) != _PLACE(after)
        ]
    return found
