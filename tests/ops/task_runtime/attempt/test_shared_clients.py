"""Readings that tasks of one process share: nobody is given one that had begun before he asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import pytest
from connectctl.ops.core.errors import TimedOut
from connectctl.ops.task_runtime.attempt.coalesced_read import CoalescedRead
from connectctl.ops.task_runtime.attempt.shared_clients import OffsetsView, StoreSnapshot

PATIENCE = 300.0


class Topic:
    """A reading that waits to be let go on, and gives its own number."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.let = threading.Semaphore(0)
        self.readings = 0
        self.at_once = 0
        self.raises: Exception | None = None

    def read(self) -> int:
        self.readings += 1
        self.at_once += 1
        assert self.at_once == 1
        self.begun.release()
        assert self.let.acquire(timeout=PATIENCE)
        self.at_once -= 1
        if self.raises is not None:
            raise self.raises
        return self.readings


def asking(call: Callable[[], Any]) -> SimpleQueue[Any]:
    """Ask on a thread of its own; the queue gets what it is told, or what was raised."""
    told: SimpleQueue[Any] = SimpleQueue()

    def ask() -> None:
        try:
            told.put(call())
        except Exception as e:  # noqa: BLE001  # for the test to look at
            told.put(e)

    threading.Thread(target=ask, daemon=True).start()
    return told


def started(together: CoalescedRead[int], topic: Topic) -> SimpleQueue[Any]:
    first = asking(together)
    assert topic.begun.acquire(timeout=PATIENCE)
    return first


def test_who_asks_while_a_reading_is_under_way_gets_the_next_one_and_shares_it() -> None:
    topic = Topic()
    together = CoalescedRead(topic.read)
    first = started(together, topic)
    late = [asking(together) for _ in range(20)]
    topic.let.release()
    assert first.get(timeout=PATIENCE) == 1
    topic.let.release(20)
    told = [each.get(timeout=PATIENCE) for each in late]
    assert all(number > 1 for number in told)


def test_many_who_wait_at_once_share_one_reading() -> None:
    topic = Topic()
    together = CoalescedRead(topic.read)
    started(together, topic)
    waiting = threading.Barrier(21)

    def ask() -> int:
        waiting.wait(PATIENCE)
        return together()

    late = [asking(ask) for _ in range(20)]
    waiting.wait(PATIENCE)
    # all of them are inside
    while len(together._changed._waiters) < 20:  # type: ignore[attr-defined]
        threading.Event().wait(0.01)
    topic.let.release(2)
    assert {each.get(timeout=PATIENCE) for each in late} == {2}


def test_what_a_reading_raises_is_heard_by_all_who_wait_for_it_and_the_next_one_reads_again() -> (
    None
):
    topic = Topic()
    together = CoalescedRead(topic.read)
    started(together, topic)
    late = [asking(together) for _ in range(3)]
    topic.raises = TimedOut("out of reach")
    topic.let.release(10)
    assert all(isinstance(each.get(timeout=PATIENCE), TimedOut) for each in late)
    topic.raises = None
    assert together() == topic.readings


def test_a_view_stays_as_it_was_until_its_task_asks_again() -> None:
    found = [StoreSnapshot({b"k": b"1"}), StoreSnapshot({b"k": b"2", b"l": b"3"})]
    read = CoalescedRead(lambda: found.pop(0))
    one, other = OffsetsView(read), OffsetsView(read)
    assert (one.value(b"k"), one.known()) == (None, frozenset())
    one.refresh(PATIENCE)
    other.refresh(PATIENCE)
    assert (one.value(b"k"), one.value(b"l"), one.known()) == (b"1", None, frozenset({b"k"}))
    assert (other.value(b"k"), other.known()) == (b"2", frozenset({b"k", b"l"}))


@pytest.mark.parametrize("bang", [SystemExit(1), KeyboardInterrupt()])
def test_even_a_reading_that_is_torn_away_leaves_nobody_waiting(bang: BaseException) -> None:
    def read() -> int:
        raise bang

    together = CoalescedRead(read)
    with pytest.raises(type(bang)):
        together()
    with pytest.raises(type(bang)):
        together()
