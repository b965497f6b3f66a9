"""Messages about what a command waits for, while it waits."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from connectctl.cli.output import drawn_line, terminal
from connectctl.cli.output.sanitize import visible

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
            if redrawn:
                drawn_line.draw(text, stream)
            else:
                print(visible(text), file=stream, flush=True)

    def end() -> None:
        if not over.is_set():
            over.set()
            thread.join()
            drawn_line.erase()

    with _standard_error() as stream:
        thread = threading.Thread(target=tell, daemon=True)
        thread.start()
        try:
            yield end
        finally:
            end()


@contextmanager
def _standard_error() -> Iterator[TextIO]:
    """Yield the file that standard error is now: while Spark's JVM starts, it is Spark's log."""
    try:
        descriptor = os.dup(sys.stderr.fileno())
    except io.UnsupportedOperation:
        yield sys.stderr
        return
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as stream:
        yield stream
