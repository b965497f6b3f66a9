"""A line at the foot of a terminal that is drawn again and again, and lets other lines pass."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TextIO

from connectctl.cli.output.sanitize import on_one_line
from connectctl.cli.output.tables import cells

_lock = threading.Lock()
_drawn = threading.Event()
_ERASED = "\r\x1b[2K"
NARROWEST = 10
"""The fewest columns that a line is cut to."""


class _Printed:
    at = 0.0


def draw(text: str, stream: TextIO | None = None, *, end: str = "", counts: bool = True) -> None:
    """Draw the line on standard error or ``stream``, a terminal, in place of the former one.
    ``text`` is cut to what the terminal has room for beside ``end``, ``counts``: see ``printed``.
    """
    with _lock:
        out = stream or sys.stderr
        out.write(f"{_ERASED}{_fitted(on_one_line(text), on_one_line(end), _columns(out))}")
        out.flush()
        _drawn.set()
        if counts:
            _Printed.at = time.monotonic()


def erase() -> None:
    """Erase the line, if there is one, because something else is printed."""
    with _lock:
        if _drawn.is_set():
            sys.stderr.write(_ERASED)
            sys.stderr.flush()
            _drawn.clear()
        _Printed.at = time.monotonic()


def printed() -> float:
    """Return when something was last printed that counts, as ``time.monotonic`` does."""
    return _Printed.at


def _columns(stream: TextIO) -> int:
    try:
        columns = int(os.environ.get("COLUMNS") or os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError):
        return 80
    return columns or 80


def _fitted(text: str, end: str, columns: int) -> str:
    """Return ``text`` and ``end`` on one line of the terminal: one that is wrapped would not be
    erased.
    """
    room = max(columns - 1, NARROWEST)
    end = _cut(end, room)
    return _cut(text, room - cells(end)) + end


def _cut(text: str, room: int) -> str:
    if cells(text) <= room:
        return text
    while text and cells(text) >= room:
        text = text[:-1]
    return f"{text}…" if room > 0 else ""
