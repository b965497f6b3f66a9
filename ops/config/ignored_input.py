"""The input that a command ignored, until it ends: its last lines report the findings that were not
printed.

This is a module of its own, without imports, because every command loads it.
"""

from __future__ import annotations

from typing import Any

MOST = 1_000
"""The highest number of findings that are remembered; lines of more would not be read."""
_pending: dict[str, Any] = {}


def remember(subject: str, finding: Any) -> None:
    """Remember a finding about ``subject``, once."""
    if len(_pending) < MOST:
        _pending[subject] = finding


def printed(subject: str) -> None:
    """Note that the finding about ``subject`` was printed."""
    _pending.pop(subject, None)


def take() -> list[Any]:
    """Return the findings that were not printed, and forget them."""
    found = list(_pending.values())
    _pending.clear()
    return found
