"""A broker’s offsets as a DataFrame’s source reads them."""

from __future__ import annotations

from typing import Any

from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome
from fakes.snapshots import Snapshots


class Broker(Snapshots):
    """Topic and offsets of one id; the commit with the number ``doubt`` fails, and has happened if
    ``anyway``.
    """

    def __init__(self, doubt: int = 0, *, anyway: bool = False):
        super().__init__()
        self.values: list[bytes] = []
        self.offsets: dict[bytes, bytes | None] = {}
        self.sizes: list[int] = []
        self._doubt, self._anyway, self._commits = doubt, anyway, 0

    id, timeout_ms, overdue = "g-c-0", 60_000, False

    def initialise(self, patience: float) -> None: ...
    def open_older_transaction(self, topics: Any) -> None: ...
    def refresh(self, patience: float) -> None:
        self.looked()

    def discard(self) -> None: ...
    def unusable_because(self) -> str | None:
        return None

    def begin(self) -> None:
        self._open: list[bytes] = []

    def send(self, step: Any) -> None:
        self._open += [m["value"] for bulk in step.record_batches for m in bulk.messages]

    def send_offsets(self, topic: str, offsets: Any) -> None:
        self._new = dict(offsets)

    def commit(self, patience: float) -> None:
        self._commits += 1
        if self._commits != self._doubt or self._anyway:
            self.values += self._open
            self.offsets |= self._new
            self.wrote(*self._new)
            self.sizes.append(len(self._open))
        if self._commits == self._doubt:
            raise UnknownOutcome("no answer")

    def abort(self, patience: float) -> None: ...

    def value(self, key: bytes) -> bytes | None:
        return self.offsets.get(key)

    def known(self) -> frozenset[bytes]:
        return frozenset(self.offsets)
