"""The rows of one task in a micro-batch: a batch that is through is skipped whole, and no row is
skipped in silence.

A row at or before the committed offset of its source partition was delivered in this batch if that
source partition has advanced in it: rows come in the order of their offsets. If it has not, the row
is late: new, and at or before the committed offset. A batch is through with the task's last
transaction of it, and the rows that it had then are known by their digest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, cast

from connectctl.ops.connect.source_keys import SourceKey, parse_key
from connectctl.ops.connect.stream_source_partitions import STREAM
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.dataframe.micro_batch import (
    BatchProgress,
    Digest,
    Late,
    MicroBatch,
    digest,
    newest,
    other_rows,
    progress_of,
)
from connectctl.ops.task_runtime.dataframe.partition_slices import PartitionSlice
from connectctl.ops.task_runtime.dataframe.source import DataFrameRows, PartitionValues
from connectctl.ops.task_runtime.spi.transaction_batch import (
    END,
    IDLE,
    Event,
    Offsets,
    RefreshableOffsets,
    StoredOffsets,
    TransactionBatch,
)

MOST_NAMED = 3
"""Late rows that are named."""


class StreamRows(DataFrameRows):
    """``DataFrameRows`` of ``batch`` for ``task``. Raises ``ConnectctlError`` for late rows that
    are refused, and for a batch that was repeated with other rows. ``late`` counts late rows that
    were dropped.
    """

    def __init__(
        self, batches: Iterable[Any], *args: Any, batch: MicroBatch, task: int, **more: Any
    ):
        super().__init__(batches, *args, **more)
        self._batch, self._task = batch, task
        self._began: BatchProgress | None = None
        self._since: dict[int, int] | None = None
        self._found: dict[PartitionValues, tuple[Any, bool]] = {}
        self._done = self._repeated = Digest()
        self._pending: dict[PartitionValues, Digest] = defaultdict(Digest)
        self._names: list[str] = []
        self._through = False
        self.late = 0

    # ---------------------------------------------------------------------------- what is committed

    def resume(self, stored: StoredOffsets) -> None:
        """Begin, or begin again, by what is committed of the batch and of the source partitions."""
        super().resume(stored)
        store = self._store = cast("RefreshableOffsets", stored)
        now = progress_of(self._batch, self._task, self._reported(stored))
        if self._since is None:
            self._since = dict(now.since) if now is not None else newest(store)
            self._began = now
        self._up_to = None if now is None else now.up_to
        self._done = Digest() if now is None else now.digest
        self._through = now is not None and now.through and not self._repeats
        for partition in [
            partition for partition in self._pending if self._has_advanced(partition)
        ]:
            del self._pending[partition]  # by this attempt, in a transaction whose answer was lost

    def _reported(self, stored: StoredOffsets) -> dict[int, BatchProgress]:
        """Return the progress of each task of the query."""
        found = {}
        for raw in stored.known():
            if STREAM.encode() in raw and isinstance(key := parse_key(raw), SourceKey):
                value = stored.value(raw)
                if (
                    key.partition is not None
                    and key.partition.get(STREAM) == self._batch.query
                    and value is not None
                ):
                    found[int(key.partition["task"])] = BatchProgress.parse(value)
        return found

    @property
    def _repeats(self) -> bool:
        """Return whether the batch was through before this attempt: its rows are only compared."""
        return self._began is not None and self._began.through

    def _at_first(self, partition: PartitionValues, piece: PartitionSlice) -> tuple[Any, bool]:
        """Return the committed offset of a source partition when this attempt began, and whether it
        had advanced in the batch.
        """
        if partition not in self._found:
            self._found[partition] = (
                self._committed(piece),
                not self._batch.ordered or self._has_advanced(partition),
            )
        return self._found[partition]

    def _has_advanced(self, partition: PartitionValues) -> bool:
        """Return whether the offset of a source partition was committed since the task began the
        batch.
        """
        at = self._store.position(self._key(partition))
        return at is not None and at[1] > (self._since or {}).get(at[0], -1)

    def _committed(self, piece: PartitionSlice) -> Any:
        return super()._committed(piece) if self._batch.ordered else self._up_to

    # ---------------------------------------------------------------------------- rows as they come

    def _check_order(self, piece: PartitionSlice) -> None:
        super()._check_order(piece)
        if self._repeats:
            self._repeated += digest([piece])
            return
        offset, advanced = self._at_first(piece.partition, piece)
        late_rows = 0 if offset is None else piece.up_to(offset)
        if not late_rows:
            return
        late = piece.slice(0, late_rows)
        if advanced:
            self._repeated += digest([late])
            return
        self.late += late_rows
        self._pending[piece.partition] += digest([late])
        for row in range(min(late_rows, MOST_NAMED - len(self._names))):
            self._names.append(self._columns.row_name(piece.batch, piece.start + row))

    def _uncommitted(self, piece: PartitionSlice) -> list[PartitionSlice]:
        if self._repeats:
            self.skipped += piece.rows
            return []
        offset, advanced = self._at_first(piece.partition, piece)
        late = 0 if offset is None or advanced else piece.up_to(offset)
        return super()._uncommitted(piece.slice(late)) if late < piece.rows else []

    def _gather(self) -> list[PartitionSlice]:
        gathered = super()._gather()
        if self._batch.late is Late.REFUSE and self.late:
            while self._next() is not None:
                pass  # how many there are is known at the end
            raise self._refused()
        if self._is_over:
            self._compare()
        return gathered

    def _refused(self) -> ConnectctlError:
        more = self.late - len(self._names)
        named = ", ".join(self._names) + (f" and {more} more" if more else "")
        return ConnectctlError(
            f"{self.late} rows of micro-batch {self._batch.number} are behind the committed "
            "offset of their source partition",
            why=named,
            next_step="If the query has a new checkpoint and reads written rows again, set "
            "late=drop, which skips them. If they are new, late=drop would lose them: "
            "use an offset column that only grows, in the order of commits.",
            code="late-rows",
        )

    def _compare(self) -> None:
        """At the end of the rows: those that are committed of the batch have to be those that
        came.
        """
        earlier = Digest() if self._began is None else self._began.digest
        if earlier != self._repeated:
            raise other_rows(self._batch, earlier, self._repeated)

    # --------------------------------------------------------------------------------- what is sent

    @property
    def _is_over(self) -> bool:
        return self._over and not self._waiting

    def next(self) -> Event:
        if self._through:
            return END
        event = super().next()
        if event is not IDLE or not self._is_over:
            return event
        if self._repeats:
            self._through = True
            return END
        return TransactionBatch(offsets=self._offsets_of([]))

    def _offsets_of(self, sent: list[PartitionSlice]) -> Offsets:
        """Source offsets, none of which goes back; and how far the task is in the batch."""
        ahead = [
            piece for piece in sent if (at := self._committed(piece)) is None or piece.last > at
        ]
        partitions = {piece.partition for piece in ahead}
        self._next_digest = self._done + digest(ahead)
        for partition in partitions:
            self._next_digest += self._pending.get(partition, Digest())
        self._advanced = partitions
        through = self._is_over
        if through:
            rest = (
                each for partition, each in self._pending.items() if partition not in partitions
            )
            self._next_digest = sum(rest, self._next_digest)
        found = dict(super()._offsets_of(ahead)) if self._batch.ordered else {}
        up_to = (
            max((piece.last for piece in sent), default=self._up_to)
            if not self._batch.ordered
            else None
        )
        progress = BatchProgress(
            self._batch.number,
            self._batch.tasks,
            through,
            self._next_digest,
            self._since or {},
            up_to,
        )
        found[self._offsets.key(self._batch.source_partition(self._task))] = progress.json
        self._ends = through
        return found

    def committed(self, batch: TransactionBatch) -> None:
        super().committed(batch)
        self._done = self._next_digest
        for partition in self._advanced:
            self._pending.pop(partition, None)
        self._through = self._through or self._ends

    @property
    def _has_ended(self) -> bool:
        return self._through
