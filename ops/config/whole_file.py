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
    _rename(file, path)
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
    """Replace the content of ``path``, which only the user may read; return ``path``. It is not
    synced to disk: who completes a name, or starts a sandbox, waits for no disk.
    """
    with draft(path.parent) as file:
        file.write(_encoded(content))
        _rename(file, path)
    return path


@contextmanager
def output(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Yield a file whose content replaces that of ``path``, which a person names, at the end.

    A link stays a link. A pipe or a device is written to: a rename over ``/dev/null`` would put a
    file in its place for every program. Only the user may read a ``private`` file, and it is on
    disk at the end; another one, which can be made again, keeps its mode.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    real = Path(os.path.realpath(path))
    with draft(real.parent, private=private) as file:
        if real.exists() and not private:
            os.fchmod(file.fileno(), real.stat().st_mode & 0o777)
        yield file
        if private:
            put(file, real)
        else:
            _rename(file, real)


def publish(path: Path, content: str | bytes) -> None:
    """Replace the content of ``path``, an output that can be made again; see ``output``."""
    with output(path) as file:
        file.write(_encoded(content))


def _rename(file: BinaryIO, path: Path) -> None:
    file.flush()
    Path(file.name).replace(path)


def _encoded(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content
