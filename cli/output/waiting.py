"""Messages about what a command waits for, while it prints nothing else.

Every command is watched from its beginning to its end: after a second of silence on a terminal, and
after 30 s elsewhere, a line on standard error names what is in progress, and for how long.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TextIO

from connectctl.cli.output import drawn_line, terminal
from connectctl.cli.output.sanitize import visible
from connectctl.ops.core.requests import REQUESTS

ON_TERMINAL, ELSEWHERE = 1.0, 30.0
"""Seconds of silence before a message: on a terminal, which redraws the line, and elsewhere."""


@dataclass(eq=False)
class Wait:
    """Work in progress, with its name; without a name something else is on the screen."""

    what: str | None
    stream: TextIO
    began: float = field(default_factory=time.monotonic)
    ended: bool = False

    def begin(self, what: str) -> None:
        """Name the part that begins now."""
        self.what, self.began = what, time.monotonic()

    def end(self) -> None:
        """End it early. Does nothing when it is called again."""
        if not self.ended:
            self.ended = True
            drawn_line.erase()

    def print_message(self, *, redrawn: bool) -> None:
        """Print the message."""
        if self.what is None:
            return
        late = REQUESTS.unanswered(ON_TERMINAL)
        time_ = f" …, {terminal.duration(time.monotonic() - self.began)}"
        end = f"{time_}; no answer yet from {late}" if late else time_
        if redrawn:
            drawn_line.draw(self.what, self.stream, end=end, counts=False)
        else:
            print(visible(f"{self.what}{end}"), file=self.stream, flush=True)


_waits: list[Wait] = []


@contextmanager
def waiting(what: str | None) -> Iterator[Wait]:
    """Name ``what`` on standard error while nothing else is printed in its block."""
    with _standard_error() as stream:
        wait, is_watched = Wait(what, stream), bool(_waits)
        _waits.append(wait)
        try:
            if is_watched:
                yield wait
            else:
                with _watched():
                    yield wait
        finally:
            wait.end()
            _waits.remove(wait)


def quiet() -> AbstractContextManager[Wait]:
    """Print no message in its block: a person is asked, or something else draws."""
    return waiting(None)


@contextmanager
def _watched() -> Iterator[None]:
    """Print the messages of the innermost wait, from a thread."""
    over = threading.Event()
    redrawn = not terminal.plain(sys.stderr)
    thread = threading.Thread(target=_watch, args=(over, redrawn), name="waits", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _watch(over: threading.Event, redrawn: bool) -> None:
    last = time.monotonic()
    while True:
        wait, every = _innermost(), ON_TERMINAL if redrawn else ELSEWHERE
        silent_since = max(last, drawn_line.printed(), wait.began if wait else 0.0)
        left = silent_since + every - time.monotonic()
        if over.wait(max(left, 0)):
            return
        if left <= 0:
            last = time.monotonic()
            if wait is not None:
                with suppress(OSError):
                    wait.print_message(redrawn=redrawn)


def _innermost() -> Wait | None:
    return next((wait for wait in reversed([*_waits]) if not wait.ended), None)


@contextmanager
def _standard_error() -> Iterator[TextIO]:
    """Yield the file that standard error is now: while Spark's JVM starts, it is Spark's log."""
    try:
        descriptor = os.dup(sys.stderr.fileno())
    except (OSError, ValueError):
        yield sys.stderr
        return
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as stream:
        yield stream
