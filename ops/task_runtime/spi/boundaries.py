"""Transaction boundaries: poll, interval, or defined by the task (KIP-618,
``TransactionBoundaryManager``).

With a promised latency, a transaction ends early enough to keep it; Connect does not have this.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.latency_pace import REST, LatencyPace

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.spi.connector import Batch, SourceRecord


class End(StrEnum):
    """The end of a transaction."""

    COMMIT = "commit"
    ABORT = "abort"


@dataclass(frozen=True)
class Segment:
    """Records of one batch that belong to one transaction; ``end`` is None if the transaction
    continues after them.

    ``asks``: at an end, ``update_offsets`` (KIP-910) is called even if the transaction has no
    records.
    """

    records: Batch
    end: End | None
    asks: bool = True


class Requests:
    """A task's requests to commit or abort transactions: its ``TransactionContext``. Each request
    is returned once.

    Raises ``ConnectctlError`` if both a commit and an abort of one transaction are requested.
    """

    def __init__(self) -> None:
        self._batch: set[End] = set()
        self._records: dict[int, tuple[SourceRecord, set[End]]] = {}
        """By ``id``, with the record, which is thereby kept: the id of one that is gone is given to
        the next object.
        """

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        self._ask(End.COMMIT, record)

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        self._ask(End.ABORT, record)

    def _ask(self, end: End, record: SourceRecord | None) -> None:
        requests = (
            self._batch
            if record is None
            else self._records.setdefault(id(record), (record, set()))[1]
        )
        requests.add(end)
        if len(requests) > 1:
            raise ConnectctlError(
                "The task asked for both a commit and an abort of the same transaction"
            )

    def of_record(self, record: SourceRecord) -> End | None:
        _, requests = self._records.pop(id(record), (record, set()))
        return requests.pop() if requests else None

    def of_batch(self) -> End | None:
        return self._batch.pop() if self._batch else None


class Boundaries:
    """Divides batches into transactions. ``interval`` (boundary INTERVAL) and ``latency`` are in
    seconds. With ``latency`` a transaction accepts polled records until its oldest record has to be
    committed, or until the interval is over.

    ``update_offsets`` (KIP-910) of a task without records is called at most once each
    ``flush_interval`` seconds, or when the task requests a commit. A worker's
    ``ExactlyOnceWorkerSourceTask`` calls it after each poll that returns no records.
    """

    def __init__(
        self,
        boundary: Boundary,
        interval: float = 60.0,
        now: Callable[[], float] = time.monotonic,
        flush_interval: float = 60.0,
        latency: float | None = None,
    ):
        self._boundary = boundary
        self._interval = interval
        self._flush_interval = flush_interval
        self._now = now
        self._last = now()
        self._asked: float | None = None
        self.requests = Requests() if boundary is Boundary.CONNECTOR else None
        self.pace = None if latency is None else LatencyPace(latency)

    def cut(self, batch: Batch, polled: float | None = None) -> list[Segment]:
        """Return the segments of a batch; an empty one may also end a transaction. ``polled`` is
        its time, else now.
        """
        if self.pace is not None:
            return [self._paced(self.pace, batch, polled)]
        if self.requests is None:
            now = self._now()
            return [
                Segment(batch, End.COMMIT, self._asks(batch, now))
                if self._due(now)
                else Segment(batch, None)
            ]
        if not isinstance(batch, Sequence):
            return [Segment(batch, self.requests.of_batch())]
        segments: list[Segment] = []
        start = 0
        for n, record in enumerate(batch, 1):
            if end := self.requests.of_record(record):
                segments.append(Segment(batch[start:n], end))
                start = n
        end = self.requests.of_batch()
        if start < len(batch) or end is not None:
            segments.append(Segment(batch[start:], end))
        return segments

    def last(self) -> End | None:
        """Return the end of the open transaction when the task stops; one defined by the task ends
        only if the task requested it.
        """
        return End.COMMIT if self.requests is None else self.requests.of_batch()

    def _paced(self, pace: LatencyPace, batch: Batch, polled: float | None) -> Segment:
        now = self._now()
        if batch:
            pace.polled(now if polled is None else polled)
        late = pace.oldest is None or pace.is_due(now if batch else now + REST)
        if (self._boundary is Boundary.INTERVAL and self._due(now)) or late:
            pace.decided(now)
            return Segment(batch, End.COMMIT, self._asks(batch, now))
        return Segment(batch, None)

    def patience(self) -> float | None:
        """Return how many seconds the open transaction can wait for another batch, at least 0; None
        if none is open.
        """
        if self.pace is None or self.pace.deadline is None:
            return None
        return max(0.0, self.pace.deadline - self._now())

    def ready(self) -> None:
        """Note that the next batch is requested."""
        if self.pace is not None:
            self.pace.ready(self._now())

    def ended(self) -> None:
        if self.pace is not None:
            self.pace.ended(self._now())

    def _due(self, now: float) -> bool:
        if self._boundary is Boundary.POLL:
            return True
        due = now - self._last >= self._interval
        if due:
            self._last = now
        return due

    def _asks(self, batch: Batch, now: float) -> bool:
        """Return whether to call ``update_offsets``: always with records, else if the last call is
        ``flush_interval`` ago.
        """
        asks = self._asked is None or now - self._asked >= self._flush_interval
        if batch or asks:
            self._asked = now
        return asks
