"""A process with many open files, as one with many tasks and connections is."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 2_000


@contextmanager
def many_open_files(count: int = MANY) -> Iterator[None]:
    """Have so many descriptors open: the next ones are larger than ``select`` takes."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = before
    wanted = max(soft, count + 1_000)
    assert hard in (resource.RLIM_INFINITY, max(hard, wanted)), (
        f"at most {hard} files can be open here"
    )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    files: list[int] = []
    try:
        files += (os.open(os.devnull, os.O_RDONLY) for _ in range(count))
        yield
    finally:
        for each in files:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
