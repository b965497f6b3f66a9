"""Signals that end a run: what is asked for, and not yet done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from connectctl.ops.core.interrupts import left_alone


@dataclass
class Signals:
    """SIGTERM and SIGINT as wishes: the first for an end between transactions, the second for an end on the spot."""

    count: int = 0

    def stop(self) -> None:
        self.count += 1

    @contextmanager
    def handled(self) -> Iterator[None]:
        """While it lasts, signals count and do nothing else. Only the main thread can hear them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, lambda *_: self.stop()) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            with left_alone():
                yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
