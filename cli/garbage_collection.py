"""When Python need not look for garbage in cycles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def collect_seldom() -> None:
    """Look for garbage after 50,000 new objects, and not after 700.

    A command makes many objects, few cycles among them, and keeps most until its end: with Python's own numbers a third of
    the time that it takes to look at 50,000 tasks went into looking for garbage.
    """
    import gc

    gc.set_threshold(50_000, 20, 20)


@contextmanager
def without_collection() -> Iterator[None]:
    """No garbage collection meanwhile: among a million records or tasks there are no cycles, and to look takes long."""
    import gc

    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
