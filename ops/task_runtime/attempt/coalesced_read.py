"""One reading for many tasks of a process, which all would ask the same brokers the same at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class CoalescedRead(Generic[T]):
    """A reading for many threads: each gets what a reading found, or raised, that began after the thread asked for it."""

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
        """Read, without the lock: others may ask meanwhile, and are late for this one."""
        self._begun += 1
        self._changed.release()
        found: list[T] = []
        raised: BaseException | None = None
        try:
            found.append(self._read())
        except BaseException as e:  # noqa: BLE001  # whoever waits for it has to hear it, too
            raised = e
        finally:
            self._changed.acquire()
            self._found, self._raised, self._over = found, raised, self._begun
            self._changed.notify_all()


@dataclass
class _Shared:
    reading: CoalescedRead[Any]
    users: int = 0


_lock = threading.Lock()
_shared: dict[Hashable, _Shared] = {}


def coalesced(key: Hashable, read: Callable[[], T]) -> T:
    """What ``read`` finds, beginning after this call; threads that ask for the same ``key`` meanwhile share a reading."""
    with _lock:
        shared = _shared.setdefault(key, _Shared(CoalescedRead(read)))
        shared.users += 1
    try:
        found: T = shared.reading()
        return found
    finally:
        with _lock:
            shared.users -= 1
            if not shared.users:
                del _shared[key]
