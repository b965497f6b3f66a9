"""Waiting for what is not so yet, in one place: look, and look again until the time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    probe: Callable[[], T | None],
    seconds: float,
    poll: float,
    *,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> T | None:
    """The first answer of ``probe`` that is not None; None where there is none after ``seconds``.

    ``probe`` is asked every ``poll`` seconds, at once for the first time, and once more when the time is over.
    """
    deadline = now() + seconds
    while True:
        late = now() >= deadline
        found = probe()
        if found is not None or late:
            return found
        sleep(poll)


def observe_until(
    observe: Callable[[], T],
    enough: Callable[[T], bool],
    seconds: float,
    poll: float,
    *,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """What ``observe`` returns as soon as that is ``enough``, else what it returned last; see ``wait_until``."""
    seen: list[T] = []

    def probe() -> bool | None:
        seen[:] = [observe()]
        return enough(seen[0]) or None

    wait_until(probe, seconds, poll, now=now, sleep=sleep)
    return seen[0]


def observe_again(observe: Callable[[], T], enough: Callable[[T], bool], pauses: Iterable[float]) -> T:
    """What ``observe`` returns as soon as that is ``enough``, else what it returns after the last of ``pauses``."""
    for pause in pauses:
        if enough(found := observe()):
            return found
        time.sleep(pause)
    return observe()
