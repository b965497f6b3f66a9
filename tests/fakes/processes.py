"""Processes that tests start, or cause to be started."""

from __future__ import annotations

import psutil


def runs(pid: int) -> bool:
    """Whether the process still does anything: where nobody collects orphans, a dead one keeps its
    number.
    """
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
