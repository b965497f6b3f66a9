"""Files that are replaced as a whole: a reader gets the old content or the new one, also after a
process was killed in between.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO


@contextmanager
def draft(directory: Path, *, private: bool = True) -> Iterator[BinaryIO]:
    """Yield a new file in ``directory``, which ``put`` gives its name. Without a name it is removed
    at the end. Only the user may read it if it is ``private``; else the umask decides.
    """
    path = directory / f".{os.urandom(8).hex()}.part"
    try:
        with open(path, "xb", opener=partial(os.open, mode=0o600 if private else 0o666)) as file:
            yield file
    finally:
        path.unlink(missing_ok=True)


def put(file: BinaryIO, path: Path) -> None:
    """Give a draft the name ``path``, in place of the file that has it. Both are on disk on return."""
    file.flush()
    os.fsync(file.fileno())
    Path(file.name).replace(path)
    sync(path.parent)


def sync(path: Path | str) -> None:
    """Have a file on the disk, or the names in a directory, which a power failure could lose
    otherwise.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(path: Path, content: str | bytes) -> Path:
    """Replace the content of ``path``, which only the user may read; return ``path``."""
    with draft(path.parent) as file:
        file.write(_encoded(content))
        put(file, path)
    return path


def publish(path: Path, content: str | bytes) -> None:
    """Replace the content of ``path``, an output that can be made again: it keeps its mode, and is
    not synced to disk.
    """
    with draft(path.parent, private=False) as file:
        if path.exists():
            os.fchmod(file.fileno(), path.stat().st_mode & 0o777)
        file.write(_encoded(content))
        file.flush()
        Path(file.name).replace(path)


def _encoded(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content
