"""Waiting for what is not so yet, in one place: look, and look again until the time is over."""

from __future__ import annotations

import time
from collections.abc import Callable
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
