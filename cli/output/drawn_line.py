"""A line at the foot of a terminal that is drawn again and again, and lets other lines pass."""

from __future__ import annotations

import sys
import threading
from typing import TextIO

from connectctl.cli.output.sanitize import visible

_lock = threading.Lock()
_drawn = threading.Event()
_ERASED = "\r\x1b[2K"


def draw(text: str, stream: TextIO | None = None) -> None:
    """Draw the line on standard error or ``stream``, a terminal, in place of the former one."""
    with _lock:
        out = stream or sys.stderr
        out.write(f"{_ERASED}{visible(text)}")
        out.flush()
        _drawn.set()


def erase() -> None:
    """Erase the line, if there is one."""
    with _lock:
        if _drawn.is_set():
            sys.stderr.write(_ERASED)
            sys.stderr.flush()
            _drawn.clear()
