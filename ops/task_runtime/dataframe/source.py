"""The rows of a DataFrame as a record source: rows at or before the committed offset are not sent
again.

Whether a row was delivered is decided by its position in the source, never by Spark's attempts,
batch ids or numbers of partitions. So a source partition's rows are those of one task, and a task's
rows are in the order of their offsets, whatever their source partitions. They remain Arrow columns
until the producer receives them.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from connectctl.ops.connect.source_keys import connect_json
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.dataframe.column_conversion import ColumnConverter
from connectctl.ops.task_runtime.dataframe.partition_slices import (
    FrameColumns,
    PartitionSlice,
    columnar,
    partition_slices,
)
from connectctl.ops.task_runtime.spi.transaction_batch import (
    END,
    IDLE,
    ColumnBatch,
    Event,
    Offsets,
    StoredOffsets,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.task_offsets import TaskOffsets as Reader
from connectctl.ops.task_runtime.task.transaction_size import TransactionSize

MOST_BYTES = 64 << 20
"""The maximum size of a transaction, give or take an Arrow batch: all of it is in memory until it
is committed.
"""
PART_BYTES = 4 << 20
"""The size of a part of a transaction, after which its duration is checked."""
PRODUCER = {"batch.num.messages": "100000", "queue.buffering.max.messages": "500000"}
PartitionValues = tuple[Any, ...]
"""A source partition: the values of its columns."""


class DataFrameRows:
    """The rows of one task for ``topic``, ``size`` of them in a transaction or fewer if they are
    large.

    A transaction that is open for a third of ``timeout`` seconds gets no more rows, and the next ones
    are smaller. ``claim`` is called with source partitions that are new to this task and raises if
    they are another task's. Raises ``ConnectctlError`` for a row without a position, or one that is
    before its predecessor.
    """

    def __init__(
        self,
        batches: Iterable[Any],
        connector: str,
        topic: str,
        columns: FrameColumns,
        size: int,
        claim: Callable[[Sequence[PartitionValues]], None] = lambda partitions: None,
        timeout: float = math.inf,
        now: Callable[[], float] = time.monotonic,
    ):
        self._batches = (part for batch in batches for part in _parts(batch, size))
        self._connector, self._topic, self._columns, self._size, self._claim = (
            connector,
            topic,
            columns,
            size,
            claim,
        )
        self._converter = ColumnConverter(topic, columns)
        self._transaction_size = TransactionSize(size, timeout, now)
        self._in_hand: list[PartitionSlice] = []
        self._sent: list[PartitionSlice] = []
        self._parts: deque[list[PartitionSlice]] = deque()
        self._waiting: deque[list[PartitionSlice]] = deque()
        self._newest: dict[PartitionValues, Any] = {}
        self._stored: dict[PartitionValues, Any] = {}
        self._over = False
        self.skipped = self.late = 0

    def resume(self, stored: StoredOffsets) -> None:
        """Begin, or begin again: what is in hand is sent once more, unless it turns out to be
        committed.
        """
        self._offsets = Reader(self._connector, stored)
        self._stored = {}
        if self._in_hand:
            self._transaction_size.failed(_rows(self._in_hand))
            self._waiting.appendleft(self._in_hand)
            self._in_hand = []
        self._parts.clear()

    def next(self) -> Event:
        """Return the next rows of a transaction; those of a source partition with one offset are
        never parted by its end.

        All of them are there before it begins, so that it is never open while Spark makes rows.
        """
        if not self._parts:
            self._in_hand = self._gather()
            if not self._in_hand:
                return END if self._has_ended else IDLE
            self._sent, self._parts = [], _parted(self._in_hand)
            self._transaction_size.begin()
        elif self._transaction_size.is_late:
            self._cut()
        return self._part()

    def _part(self) -> TransactionBatch:
        part = self._parts.popleft()
        self._sent += part
        found = columnar(part, self._columns, self._converter.bytes_of)
        bulks = [ColumnBatch(self._topic, *piece) for piece in found]
        if self._parts:
            return TransactionBatch(record_batches=bulks, more=True)
        return TransactionBatch(record_batches=bulks, offsets=self._offsets_of(self._sent))

    def _offsets_of(self, sent: list[PartitionSlice]) -> Offsets:
        """Return the offsets to commit with the rows of a transaction."""
        newest = {piece.partition: piece.last for piece in sent}
        return {self._key(partition): self._value(offset) for partition, offset in newest.items()}

    def _cut(self) -> None:
        """Let the transaction end with what was sent of it, and what has to be in it with that."""
        last = {piece.partition: piece.last for piece in self._sent}
        tied: list[PartitionSlice] = []
        rest: list[PartitionSlice] = []
        for piece in chain(*self._parts):
            same = piece.up_to(last[piece.partition]) if piece.partition in last else 0
            if same:
                tied.append(piece.slice(0, same))
            if same < piece.rows:
                rest.append(piece.slice(same))
        if rest:
            self._waiting.appendleft(rest)
        self._in_hand, self._parts = [*self._sent, *tied], deque([tied])

    def _gather(self) -> list[PartitionSlice]:
        gathered: list[PartitionSlice] = []
        rows = weight = 0
        most = self._transaction_size.rows
        while rows < most and weight < MOST_BYTES and (some := self._next()) is not None:
            if most < self._size:
                some, rest = _split(some, most - rows)
                if rest:
                    self._waiting.appendleft(rest)
            fresh = [piece for each in some for piece in self._uncommitted(each)]
            gathered += fresh
            more = sum(piece.rows for piece in fresh)
            rows += more
            weight += more * some[0].batch.nbytes // some[0].batch.num_rows
        if gathered:
            self._complete(gathered)
        return gathered

    def final_batch(self) -> TransactionBatch | None:
        if not self._parts:
            return None
        self._cut()
        return self._part()

    def committed(self, batch: TransactionBatch) -> None:
        if self._in_hand:
            self._transaction_size.committed(_rows(self._in_hand))
        self._in_hand = []

    @property
    def _has_ended(self) -> bool:
        """Return whether every row is delivered, or was before."""
        return self._over and not self._in_hand and not self._waiting

    @property
    def lag(self) -> int | None:
        """Return the number of remaining rows, which is unknown before Spark has read them."""
        return None

    @property
    def has_more(self) -> bool:
        """Return whether more rows are known: a frame's rows are waited for when they are
        requested.
        """
        return False

    @property
    def producer_properties(self) -> Mapping[str, str]:
        return PRODUCER

    def close(self) -> None:
        """Do nothing: no resource is held."""

    def _next(self) -> list[PartitionSlice] | None:
        if self._waiting:
            return self._waiting.popleft()
        batch = next(self._batches, None)
        if batch is None:
            self._over = True
            return None
        found = partition_slices(batch, self._columns)
        new = [piece.partition for piece in found if piece.partition not in self._newest]
        if new:
            self._claim(new)
        for piece in found:
            self._check_order(piece)
        return found

    def _check_order(self, piece: PartitionSlice) -> None:
        before = self._newest.get(piece.partition)
        if before is not None and piece.first < before:
            raise self._columns.disorder(piece.partition, before, piece.first)
        self._newest[piece.partition] = piece.last

    def _complete(self, taken: list[PartitionSlice]) -> None:
        """Add to ``taken`` the following rows with the same last offset: half of such rows could
        not be distinguished.
        """
        last = {piece.partition: piece.last for piece in taken}
        highest = max(last.values())
        held: list[list[PartitionSlice]] = []
        while (following := self._next()) is not None:
            rest: list[PartitionSlice] = []
            for piece in following:
                same = piece.up_to(last[piece.partition]) if piece.partition in last else 0
                if same:
                    taken += self._uncommitted(piece.slice(0, same))
                if same < piece.rows:
                    rest.append(piece.slice(same))
            if rest:
                held.append(rest)
            if any(piece.last > highest for piece in following):
                break  # in order, no row with an earlier offset follows
        self._waiting.extendleft(reversed(held))

    def _uncommitted(self, piece: PartitionSlice) -> list[PartitionSlice]:
        """Return ``piece`` without what is committed."""
        done = self._committed(piece)
        rows = 0 if done is None else piece.up_to(done)
        self.skipped += rows
        return [piece.slice(rows)] if rows < piece.rows else []

    def _committed(self, piece: PartitionSlice) -> Any:
        if piece.partition not in self._stored:
            stored = self._offsets.offset(self._partition(piece.partition)) or {}
            self._stored[piece.partition] = stored.get(self._columns.offset)
        committed = self._stored[piece.partition]
        if committed is not None and type(committed) is not type(piece.first):
            raise ConnectctlError(
                f"Cannot compare the committed offset {committed!r} with the column "
                f"{self._columns.offset}",
                why=f"the column is {type(piece.first).__name__}, the offset is "
                f"{type(committed).__name__}",
                next_step=f"See connectctl offsets show {self._connector}",
                code="bad-offset",
            )
        return committed

    def _partition(self, values: PartitionValues) -> dict[str, Any]:
        return dict(zip(self._columns.partition, values, strict=True))

    def _key(self, partition: PartitionValues) -> bytes:
        return self._offsets.key(self._partition(partition))

    def _value(self, offset: Any) -> bytes:
        return connect_json({self._columns.offset: offset}).encode()


def _rows(some: Iterable[PartitionSlice]) -> int:
    return sum(piece.rows for piece in some)


def _split(
    some: list[PartitionSlice], most: int
) -> tuple[list[PartitionSlice], list[PartitionSlice]]:
    """Return the first ``most`` rows, at least one, and the rest."""
    head: list[PartitionSlice] = []
    for at, piece in enumerate(some):
        if piece.rows > most:
            return [*head, piece.slice(0, most)], [piece.slice(most), *some[at + 1 :]]
        head.append(piece)
        most -= piece.rows
        if not most:
            return head, some[at + 1 :]
    return head, []


def _parted(taken: Iterable[PartitionSlice]) -> deque[list[PartitionSlice]]:
    """Return the parts of a transaction between two checks of its duration."""
    parts: deque[list[PartitionSlice]] = deque([[]])
    weight = per_row = 0.0
    most = 1
    batch: Any = None
    for piece in taken:
        if piece.batch is not batch:
            batch = piece.batch
            per_row = batch.nbytes / batch.num_rows
            most = max(1, int(PART_BYTES / max(per_row, 1)))
        for start in range(0, piece.rows, most):
            if weight >= PART_BYTES:
                parts.append([])
                weight = 0.0
            part = piece.slice(start, min(most, piece.rows - start))
            parts[-1].append(part)
            weight += part.rows * per_row
    return parts


def _parts(batch: Any, size: int) -> Iterable[Any]:
    """Return the parts of a batch, none of them larger than a transaction; Arrow's slices cost
    nothing.
    """
    if batch.num_rows <= size:
        return (batch,) if batch.num_rows else ()
    return (batch.slice(start, size) for start in range(0, batch.num_rows, size))
