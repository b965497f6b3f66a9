"""Waits: poll until a condition holds or the time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

OPEN_TRANSACTIONS_PATIENCE = 10.0
"""Seconds for which open transactions may hold up the reading of a topic: of ``--patience``, and
for changes of offsets.
"""


def wait_until(
    probe: Callable[[], T | None],
    seconds: float,
    poll: float,
    *,
    longest: float | None = None,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> T | None:
    """Return the first result of ``probe`` that is not None; None after ``seconds``.

    ``probe`` is called immediately, then every ``poll`` seconds, and one more time when the time is
    over. With ``longest`` each pause is twice as long as the one before, up to that.
    """
    deadline, pause = now() + seconds, poll
    while True:
        late = now() >= deadline
        found = probe()
        if found is not None or late:
            return found
        sleep(pause)
        if longest is not None:
            pause = min(pause * 2, longest, max(deadline - now(), 0.0))


def observe_until(
    observe: Callable[[], T],
    enough: Callable[[T], bool],
    seconds: float,
    poll: float,
    *,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Return the first result of ``observe`` that is ``enough``, else the last one; see
    ``wait_until``.
    """
    seen: list[T] = []

    def probe() -> bool | None:
        seen[:] = [observe()]
        return enough(seen[0]) or None

    wait_until(probe, seconds, poll, now=now, sleep=sleep)
    return seen[0]


def observe_again(
    observe: Callable[[], T],
    enough: Callable[[T], bool],
    pauses: Iterable[float],
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Return the first result of ``observe`` that is ``enough``, else the one after the last of
    ``pauses``.
    """
    for pause in pauses:
        if enough(found := observe()):
            return found
        sleep(pause)
    return observe()
