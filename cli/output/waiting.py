"""Messages about what a command waits for, while it waits."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from connectctl.cli.output import drawn_line, terminal

ON_TERMINAL, ELSEWHERE = 1.0, 30.0
"""Seconds before the first message, and between two: on a terminal, which redraws the line, and
elsewhere.
"""


@contextmanager
def waiting(what: str) -> Iterator[Callable[[], None]]:
    """Print on standard error that ``what`` is waited for, and for how long so far. Yields the
    function that ends it early, and does nothing when it is called again.
    """
    over = threading.Event()
    redrawn = not terminal.plain(sys.stderr)
    every = ON_TERMINAL if redrawn else ELSEWHERE
    began = time.monotonic()

    def tell() -> None:
        while not over.wait(every):
            text = f"{what} …, {terminal.duration(time.monotonic() - began)}"
            (drawn_line.draw if redrawn else terminal.note)(text)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()

    def end() -> None:
        if not over.is_set():
            over.set()
            thread.join()
            drawn_line.erase()

    try:
        yield end
    finally:
        end()
