"""An iterator that is read ahead, on a thread of its own: Spark makes the next rows while Kafka
takes the last ones.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
DEPTH = 3
"""Items that wait, besides the one that was read last."""
_POLL = 0.1


class Prefetch(Generic[T]):
    """The items of ``source``, in their order; its error is raised after them. Only one thread may
    iterate.
    """

    def __init__(self, source: Iterable[T], depth: int = DEPTH):
        self._source = source
        self._items: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(depth)
        self._closed = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[T]:
        while True:
            item, end = self._items.get()
            if item is not None:
                yield item
            elif isinstance(end, StopIteration):
                return
            elif end is not None:
                raise end

    def close(self) -> None:
        """End the reading; wait for the item that is being read, so that no other reader overlaps."""
        self._closed = True
        self._thread.join()

    def _read(self) -> None:
        end: BaseException = StopIteration()
        try:
            for item in self._source:
                if not self._put((item, None)):
                    return
        except BaseException as e:  # noqa: BLE001  # it belongs to who asks for the items
            end = e
        self._put((None, end))

    def _put(self, what: tuple[T | None, BaseException | None]) -> bool:
        while not self._closed:
            try:
                self._items.put(what, timeout=_POLL)
            except queue.Full:
                continue
            return True
        return False
