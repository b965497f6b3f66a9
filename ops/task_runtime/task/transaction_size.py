"""The number of rows with which a transaction ends before its timeout, estimated from the last
durations.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SHARE = 3
"""The part of its timeout that a transaction may take: sent records are still in flight when it
ends.
"""
LESS_AFTER_FAILURE = 4


class TransactionSize:
    """The number of ``rows`` of the next transaction, never more than ``size``; ``timeout`` in
    seconds.
    """

    def __init__(self, size: int, timeout: float, now: Callable[[], float] = time.monotonic):
        self._size, self._longest, self._now = size, timeout / SHARE, now
        self._began = 0.0
        self.rows = size

    def begin(self) -> None:
        self._began = self._now()

    @property
    def took(self) -> float:
        """Seconds since the transaction began."""
        return self._now() - self._began

    @property
    def is_late(self) -> bool:
        """Return whether the transaction must end with its current records."""
        return self.took > self._longest

    def committed(self, rows: int) -> None:
        took = self.took
        if took > self._longest:
            self.rows = max(1, min(self.rows // 2, int(rows * self._longest / took)))
        elif took < self._longest / 2:
            self.rows = min(self._size, self.rows * 2)

    def failed(self, rows: int) -> None:
        """Note that the transaction was not committed. If it took long, it was too large for the
        path to the brokers.
        """
        if self.is_late:
            self.rows = max(1, min(self.rows, rows) // LESS_AFTER_FAILURE)
