"""connectctl in a process of its own, for those who have to kill it."""

from __future__ import annotations

import subprocess
import sys

Running = subprocess.Popen[str]


def start(*args: str) -> Running:
    """Return ``connectctl args``, without a terminal to ask; what it prints comes out where this
    process prints.
    """
    return Running(
        [sys.executable, "-m", "connectctl.cli", *args], stdin=subprocess.DEVNULL, text=True
    )
