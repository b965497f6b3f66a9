"""Whole numbers in texts from outside: configurations, client ids, keys of records."""

from __future__ import annotations

LARGEST = (1 << 63) - 1
"""The largest value of Java's ``long``."""
_LONGEST = 100
"""The most characters of a number, with leading zeros: Python refuses to read thousands."""


def whole_number(text: str | None, most: int = LARGEST) -> int | None:
    """Return the number in ``text``, from 0 to ``most``; None for any other text.

    ``str.isdigit`` is also true of ``²``, which is not accepted.
    """
    value = (text or "").strip()
    if not (value.isdecimal() and len(value) <= _LONGEST):
        return None
    number = int(value)
    return number if number <= most else None
