"""Directories that cost no disk: journals sync each of their marks, and tests that count calls make
thousands.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def directory_in_memory() -> Iterator[Path]:
    """A directory in memory, where the machine has such a file system, else one on its disk;
    removed at the end.
    """
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as path:
        yield Path(path)
