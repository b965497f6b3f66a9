"""Records of a topic too big for memory, on disk in the order of their keys: runs that are sorted, and merged when read.

The files have no name, so that nothing is left of them however the process ends.
"""

from __future__ import annotations

import marshal
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, groupby, islice
from operator import eq, itemgetter
from typing import IO, Any, Generic, TypeVar

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.aligned_blocks import aligned
from connectctl.ops.kafka.records import ConsumerRecord, Row, SortedRecords, record_in

T = TypeVar("T", bound=tuple[Any, ...])
K = TypeVar("K")
GroupsOf = Callable[[Iterable[bytes | None]], Iterable[bytes]]
"""Gives the group of each key."""
MOST = 200_000
"""Records of all topics of one reading that are kept in memory: some 200 MB, with what it takes to sort them."""
CHUNK = 2_000
"""Records that are written and read at once, of one run."""

_LENGTH = 8
"""Bytes before each of these chunks, which are its length."""

_GROUP, _BYTES, _KEY, _PLACE = itemgetter(0), itemgetter(1), itemgetter(0, 1), itemgetter(0, 1, 2, 3)


class Spilled(SortedRecords):
    """The newest record of each key in each partition, in the order of the keys' groups and then of the keys.

    Can be gone through again and again; each time the files are read.
    """

    def __init__(self, groups_of: GroupsOf) -> None:
        self._groups_of = groups_of
        self._runs: list[IO[bytes]] = []
        self._ends: list[list[tuple[bytes, int]]] = []
        self._count: int | None = None
        self.added = 0
        """Records that were added, older ones of a key too."""

    def __del__(self) -> None:
        for run in self._runs:
            run.close()

    def add(self, records: Iterable[ConsumerRecord]) -> None:
        """Write a run. Raises ``ConnectctlError`` where there is no room for it."""
        self.add_rows(list(in_order(records, self._groups_of)))

    def add_rows(self, rows: list[Row]) -> None:
        """The same of rows in any order."""
        rows = _sorted(rows)
        self.added += len(rows)
        with _room():
            # Kept open: it is read later, and gone when it is closed.
            run = tempfile.TemporaryFile(prefix="connectctl-")  # noqa: SIM115  # closed with the run
            ends = []
            for some in _chunks(rows):
                ends.append((some[-1][0], run.tell()))
                # Bytes, numbers and None: in two thirds of the time of pickle, without references to what repeats.
                _put(run, marshal.dumps(some, 2))
            run.flush()
        self._runs.append(run)
        self._ends.append(ends)
        self._count = None

    def blocks(self, group: bytes | None = None) -> Iterator[list[Row]]:
        runs = [_read(file, _start(ends, group), group) for file, ends in zip(self._runs, self._ends, strict=True)]
        for parts in aligned(runs):
            yield _newest(_sorted(list(chain.from_iterable(parts))))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        for rows in self.blocks():
            yield from map(record_in, rows)

    def __len__(self) -> int:
        if self._count is None:
            self._count = sum(map(len, self.blocks()))
        return self._count

    def __contains__(self, record: object) -> bool:
        return any(each == record for each in self)


class Spooled(Collection[T]):
    """Named tuples of one kind, of plain values, on disk in the order in which they were added.

    Can be gone through again and again.
    """

    def __init__(self, kind: type[T]) -> None:
        # As ``_make`` of the kind does, in a third of the time.
        self._make: Callable[[Any], T] = partial(tuple.__new__, kind)
        self._file: IO[bytes] | None = None
        self._last: list[tuple[Any, ...]] = []
        self._count = 0

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, values: Collection[tuple[Any, ...]]) -> None:
        """Write more, with names or without. Raises ``ConnectctlError`` where there is no room for it."""
        self._last += map(tuple, values)
        self._count += len(values)
        if len(self._last) >= CHUNK:
            self._write(marshal.dumps(self._last, 2))
            self._last = []

    def add_written(self, text: bytes, count: int) -> None:
        """The same of ``count`` values that ``marshal`` has written already; they come before those that wait."""
        self._write(text)
        self._count += count

    def _write(self, text: bytes) -> None:
        with _room():
            self._file = self._file or tempfile.TemporaryFile(prefix="connectctl-")  # noqa: SIM115  # kept open
            self._file.seek(0, os.SEEK_END)
            _put(self._file, text)

    def chunks(self) -> Iterator[list[tuple[Any, ...]]]:
        """Thousands at a time, as tuples without names."""
        at, last = 0, self._last
        while self._file is not None:
            some, at = _taken(self._file, at)
            if not some:
                break
            yield some
        yield last

    def __iter__(self) -> Iterator[T]:
        for some in self.chunks():
            yield from map(self._make, some)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, value: object) -> bool:
        return any(each == value for each in self)


class Gathered(Generic[K]):
    """Rows by where they are from: in memory, and beyond ``MOST`` or ``most`` of them on disk."""

    def __init__(self, groups_of: GroupsOf, most: float | None = None) -> None:
        self._groups_of, self._most = groups_of, MOST if most is None else most
        self._rows: dict[K, list[Row]] = {}
        self._spilled: dict[K, Spilled] = {}

    def add(self, name: K, rows: Iterable[Row]) -> None:
        """Take more of ``name``. Raises ``ConnectctlError`` where there is no room for it."""
        self._rows.setdefault(name, []).extend(rows)
        if sum(map(len, self._rows.values())) >= self._most:
            self._spill()

    def all(self) -> dict[K, Collection[ConsumerRecord]]:
        """The records of each name; those on disk without what newer ones superseded."""
        if self._spilled:
            self._spill()
        return {name: self._spilled.get(name) or list(map(record_in, its)) for name, its in self._rows.items()}

    def names(self) -> Collection[K]:
        """Where rows are from."""
        return self._rows.keys()

    def blocks(self, name: K, group: bytes) -> Iterator[list[Row]]:
        """The rows of one ``group`` of what is from ``name``, as ``blocks_in_order`` gives them."""
        if self._spilled:
            self._spill()
        if name in self._spilled:
            return blocks_in_order(self._spilled[name], self._groups_of, group)
        return _chunks(_newest(_sorted([row for row in self._rows.get(name, ()) if row[0] == group])))

    def _spill(self) -> None:
        for name, its in self._rows.items():
            if its:
                self._spilled.setdefault(name, Spilled(self._groups_of)).add_rows(its)
                self._rows[name] = []


def chunks_of(values: Collection[Any]) -> Iterable[list[tuple[Any, ...]]]:
    """Named tuples without their names, thousands at a time where they are on disk."""
    return values.chunks() if isinstance(values, Spooled) else [list(map(tuple, values))]


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


def in_order(records: Iterable[ConsumerRecord], groups_of: GroupsOf, group: bytes | None = None) -> Iterator[Row]:
    """The rows of ``records``, of one ``group`` or of all, in the order of groups and keys, wherever they are."""
    return chain.from_iterable(blocks_in_order(records, groups_of, group))


def blocks_in_order(
    records: Iterable[ConsumerRecord], groups_of: GroupsOf, group: bytes | None = None
) -> Iterator[list[Row]]:
    """The same in blocks, none of which ends amid a key."""
    if isinstance(records, SortedRecords):
        for rows in records.blocks(group):
            is_all = group is None or rows[0][0] == rows[-1][0] == group
            yield rows if is_all else [row for row in rows if row[0] == group]
        return
    records = tuple(records)
    rows = [
        (of, key or b"", key is None, partition, offset, timestamp, value)
        for (key, value, partition, offset, timestamp), of in zip(
            records, groups_of([record.key for record in records]), strict=True
        )
        if of == group or group is None
    ]
    yield from _chunks(_sorted(rows))


def _read(file: IO[bytes], at: int, group: bytes | None) -> Iterator[list[Row]]:
    """The chunks of a run from ``at`` on, with ``group`` up to the last that holds some of it."""
    while True:
        rows, at = _taken(file, at)
        if not rows or (group is not None and rows[0][0] > group):
            return
        yield rows


def _put(file: IO[bytes], text: bytes) -> None:
    file.write(len(text).to_bytes(_LENGTH))
    file.write(text)


def _taken(file: IO[bytes], at: int) -> tuple[list[Any], int]:
    """What was put at ``at``, nothing at the end, and where the next is: of a file that only this process could write."""
    file.seek(at)  # several may read it at a time
    length = int.from_bytes(file.read(_LENGTH))
    return marshal.loads(file.read(length)) if length else [], at + _LENGTH + length


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
        end = min(start + CHUNK, len(rows))
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
