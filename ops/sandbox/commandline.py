"""connectctl in a process of its own, for those who have to kill it."""

from __future__ import annotations

import subprocess
import sys


def start(*args: str) -> subprocess.Popen[str]:
    """``connectctl args``, without a terminal to ask; what it prints comes out where this process prints."""
    return subprocess.Popen([sys.executable, "-m", "connectctl.cli", *args], stdin=subprocess.DEVNULL, text=True)
