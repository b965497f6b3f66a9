"""Three brokers, one of which dies."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from live.campaignbroker import Broker


@contextmanager
def dying(three: Broker, seed: int, pause: float = 0.3) -> Iterator[Callable[[], int]]:
    """Kill a broker, and another one ``pause`` seconds and more after it is back, for as long as
    this lasts; gives how many were killed so far.
    """
    chance, over, killed = random.Random(seed), threading.Event(), list[int]()

    def kill() -> None:
        while not over.wait(chance.uniform(pause, pause + 0.7)):
            killed.append(chance.randint(1, three.count))
            three.kill(chance.uniform(0.0, 0.5), killed[-1])
            three.wait()

    def so_far() -> int:
        assert killer.is_alive(), f"a broker did not come back: {killed}"
        return len(killed)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    try:
        yield so_far
    finally:
        over.set()
        killer.join()
        three.wait()
