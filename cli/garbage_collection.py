"""Run Python's cyclic garbage collector less often."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def collect_seldom() -> None:
    """Collect garbage after 50,000 new objects instead of 700.

    A command creates many objects and few cycles, and keeps most objects until its end: with
    Python's defaults, a third of the time to read 50,000 tasks was garbage collection.
    """
    import gc

    gc.set_threshold(50_000, 20, 20)


@contextmanager
def without_collection(*, ends: bool = False) -> Iterator[None]:
    """Disable garbage collection meanwhile: a million records or tasks have no cycles, and a
    collection takes long.

    ``ends``: the command ends afterwards. What it has made is left out of later collections, of
    which the first one would look at all of it.
    """
    import gc

    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if ends:
            gc.freeze()
        if was_enabled:
            gc.enable()
