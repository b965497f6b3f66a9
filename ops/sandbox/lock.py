"""One command at a time for a directory. The kernel holds the lock, so that a killed holder leaves
none.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from connectctl.ops.core.errors import ConnectctlError, TimedOut

_PAUSE = 0.1


@contextmanager
def locked(
    directory: Path, *, create: bool, timeout: float, on_wait: Callable[[], None] = lambda: None
) -> Iterator[int | None]:
    """Hold the directory's lock, and yield its descriptor; None when it does not exist and
    ``create`` is False.

    The lock is on the directory itself, so that nothing is left when its holder removes it.
    ``on_wait`` is called once when another holds it. Raises TimedOut after ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    while True:
        descriptor = _open(directory, create=create)
        if descriptor is None:
            yield None
            return
        try:
            if not _acquire(descriptor, time.monotonic()):
                on_wait()
                on_wait = _nothing
                if not _acquire(descriptor, deadline):
                    raise TimedOut(
                        f"Another connectctl process is using {directory}",
                        why=f"waited {timeout:.0f} s",
                        next_step="Try again after it has finished.",
                        code="locked",
                    )
            # The holder before us may have removed the directory, and another may have made it
            # again.
            if not _is_still(descriptor, directory):
                continue
            yield descriptor
            return
        finally:
            os.close(descriptor)


def is_held(directory: Path) -> bool:
    descriptor = _open(directory, create=False)
    if descriptor is None:
        return False
    try:
        return not _acquire(descriptor, time.monotonic())
    finally:
        os.close(descriptor)


def _nothing() -> None:
    pass


def _open(directory: Path, *, create: bool) -> int | None:
    while True:
        if create:
            try:
                directory.mkdir(parents=True, exist_ok=True)
            except FileNotFoundError as e:
                hint = "Set XDG_STATE_HOME to a directory that can be written."
                raise ConnectctlError(
                    f"{directory} cannot be created", why=e.strerror, next_step=hint, code="file"
                ) from e
        try:
            return os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            if not create:
                return None


def _acquire(descriptor: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PAUSE)
        else:
            return True


def _is_still(descriptor: int, directory: Path) -> bool:
    mine = os.fstat(descriptor)
    try:
        current = directory.stat()
    except FileNotFoundError:
        return False
    return (mine.st_dev, mine.st_ino) == (current.st_dev, current.st_ino)
