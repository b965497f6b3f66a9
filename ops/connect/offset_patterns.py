"""Patterns of source offsets, which recognize by its bytes an offset with the members and types of
an earlier one.

Python takes some 10 µs to parse a key and an offset and to check each member, which matters for
millions of them.
"""

from __future__ import annotations

import re
from collections import deque

MOST = 8
"""The number of patterns that are compared with an offset."""
_TEXT = rb'"[ !#-\[\]-~]*"'
"""A string of printable ASCII without escapes."""
_TOKEN = re.compile(
    rb"(?P<name>" + _TEXT + rb":)|(?P<text>" + _TEXT + rb")|(?P<number>[1-9][0-9]*)(?![0-9.eE])"
    rb"|(?P<other>[{},\]]|(?:0|true|false|null)(?=[,}]))"
)
_KEY_DIGITS, _OFFSET_DIGITS = 9, 18
"""Digits of numbers that always fit 32 bits and 64 bits."""


class OffsetPatterns:
    """Patterns of source offsets of one connector: keys and values that differ in strings and
    positive integers only.
    """

    def __init__(self) -> None:
        self._known: deque[tuple[re.Pattern[bytes], re.Pattern[bytes]]] = deque(maxlen=MOST)

    def match(self, key: bytes, value: bytes) -> bool:
        """Return whether an earlier offset has the same members, with the same types."""
        for number, (keys, values) in enumerate(self._known):
            if keys.fullmatch(key) and values.fullmatch(value):
                if number:
                    self._known.rotate(-number)
                return True
        return False

    def add(self, key: bytes, value: bytes) -> None:
        """Add the pattern of an offset, if all its tokens have a supported form."""
        head = key.find(b'",') + 2
        keys, values = (
            _pattern(key[head:], _KEY_DIGITS, key[:head]),
            _pattern(value, _OFFSET_DIGITS),
        )
        if head > 1 and b"\\" not in key[:head] and keys is not None and values is not None:
            self._known.appendleft((keys, values))


def _pattern(raw: bytes, digits: int, head: bytes = b"") -> re.Pattern[bytes] | None:
    """Return the pattern of ``raw`` after ``head``; None if a token has an unsupported form or too
    many digits.
    """
    found, end = [re.escape(head)], 0
    while end < len(raw):
        token = _TOKEN.match(raw, end)
        if token is None or (token.lastgroup == "number" and len(token[0]) > digits):
            return None
        by_kind = {"text": _TEXT, "number": b"[1-9][0-9]{0,%d}" % (digits - 1)}
        found.append(by_kind.get(str(token.lastgroup), re.escape(token[0])))
        end = token.end()
    return re.compile(b"".join(found))
