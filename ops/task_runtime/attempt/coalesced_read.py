"""One read for many tasks of a process that would send the same requests to the same brokers at the
same time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class CoalescedRead(Generic[T]):
    """A read shared by threads: each gets the result, or the exception, of a read that began after
    the thread's call.
    """

    def __init__(self, read: Callable[[], T]):
        self._read = read
        self._changed = threading.Condition()
        self._begun = self._over = 0
        self._found: list[T] = []
        self._raised: BaseException | None = None

    def __call__(self) -> T:
        with self._changed:
            mine = self._begun + 1
            while self._over < mine:
                if self._begun > self._over:
                    self._changed.wait()
                else:
                    self._begin()
            if self._raised is not None:
                raise self._raised
            return self._found[0]

    def _begin(self) -> None:
        """Read, without the lock: calls made meanwhile wait for the next read."""
        self._begun += 1
        self._changed.release()
        found: list[T] = []
        raised: BaseException | None = None
        try:
            found.append(self._read())
        except BaseException as e:  # noqa: BLE001  # raised in every thread that waits for it
            raised = e
        finally:
            self._changed.acquire()
            self._found, self._raised, self._over = found, raised, self._begun
            self._changed.notify_all()


@dataclass
class _Shared:
    read: CoalescedRead[Any]
    users: int = 0


_lock = threading.Lock()
_shared: dict[Hashable, _Shared] = {}


def coalesced(key: Hashable, read: Callable[[], T]) -> T:
    """Return the result of a ``read`` that begins after this call; concurrent calls with the same
    ``key`` share one.
    """
    with _lock:
        shared = _shared.setdefault(key, _Shared(CoalescedRead(read)))
        shared.users += 1
    try:
        found: T = shared.read()
        return found
    finally:
        with _lock:
            shared.users -= 1
            if not shared.users:
                del _shared[key]
