"""Items that are read ahead come in their order, with what went wrong behind them, and no further
than asked for.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import pytest
from connectctl.ops.task_runtime.dataframe.prefetch import Prefetch


def test_items_come_in_their_order_and_end() -> None:
    assert list(Prefetch(range(100), depth=2)) == list(range(100))


def test_what_the_source_raises_comes_behind_its_items() -> None:
    def source() -> Iterator[int]:
        yield 1
        raise ValueError("gone")

    found = iter(Prefetch(source()))
    assert next(found) == 1
    with pytest.raises(ValueError, match="gone"):
        next(found)


def test_it_reads_no_further_ahead_than_its_depth() -> None:
    read = threading.Semaphore(0)

    def source() -> Iterator[int]:
        for n in itertools.count():
            read.release()
            yield n

    ahead = Prefetch(source(), depth=2)
    for _ in range(3):
        assert read.acquire(timeout=60)
    assert not read.acquire(timeout=0.3)
    ahead.close()


def test_nobody_reads_the_source_any_more_when_it_is_closed() -> None:
    reading, go = threading.Event(), threading.Event()
    over: list[int] = []

    def source() -> Iterator[int]:
        reading.set()
        go.wait(60)
        over.append(1)
        yield 1
        over.append(2)

    ahead = Prefetch(source())
    assert reading.wait(60)
    threading.Timer(0.2, go.set).start()
    ahead.close()
    assert over == [1]
    assert not ahead._thread.is_alive()
