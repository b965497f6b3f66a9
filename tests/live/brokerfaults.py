"""Faults of brokers, drawn from a seed: one after the other is killed, suspended or restarted, and
leaders move.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

if TYPE_CHECKING:
    from live.campaignbroker import Broker

KILLED, SUSPENDED, RESTARTED, MOVED = "kill -9", "SIGSTOP", "clean restart", "leaders moved"
KINDS = (KILLED, SUSPENDED, RESTARTED, MOVED)


class BrokerFaults:
    """``count`` faults of ``broker``, in cycles in which each kind comes once. One broker at a time
    is away.
    """

    def __init__(self, broker: Broker, seed: int, count: int):
        self._broker, self._chance, self._count = broker, random.Random(seed), count
        self._over = threading.Event()
        self.rows: list[str] = []

    @contextmanager
    def going_on(self) -> Iterator[threading.Thread]:
        """They happen on a thread, which ends with the last of them."""
        thread = threading.Thread(target=self._go, daemon=True)
        thread.start()
        try:
            yield thread
        finally:
            self._over.set()
            thread.join()
            self._broker.wait()

    def _go(self) -> None:
        cycle: list[str] = []
        began = time.monotonic()
        while len(self.rows) < self._count and not self._over.wait(self._chance.uniform(0.2, 2.0)):
            cycle = cycle or self._chance.sample(KINDS, len(KINDS))
            kind, number = cycle.pop(), self._chance.randint(1, self._broker.count)
            self.rows.append(
                f"{time.monotonic() - began:6.1f} "
                f"{kind}{'' if kind == MOVED else f' of broker {number}'}"
            )
            self._do(kind, number)

    def _do(self, kind: str, number: int) -> None:
        if kind == KILLED:
            self._broker.kill(self._chance.uniform(0.0, 1.0), number)
        elif kind == RESTARTED:
            self._broker.restart(number)
        elif kind == SUSPENDED:
            self._broker.suspend(self._chance.uniform(0.5, 5.0), number)
        else:
            self._move_leaders()
        self._broker.wait()

    def _move_leaders(self) -> None:
        """To where they belong; after each other fault some are elsewhere."""
        admin = KafkaAdminClient(bootstrap_servers=self._broker.bootstrap.split(","))
        try:
            admin.elect_leaders(0, raise_errors=False)  # preferred ones
        except KafkaError as e:
            self.rows[-1] += f" ({type(e).__name__})"
        finally:
            admin.close()
