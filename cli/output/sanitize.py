"""Makes text from outside harmless for a terminal: what would steer it, or turn or hide what it shows, becomes an escape.

Names, configurations, messages of workers and output of commands may hold control characters (C0, C1, DEL), bidirectional
marks and zero-width characters; printed raw, they move the cursor, recolour, reorder or hide text ("Trojan Source",
CVE-2021-42574). Everything that ``render`` prints goes through here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import IO

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode's categories: controls, format characters (bidi, zero-width), lone surrogates, separators of lines, paragraphs."""


@lru_cache(maxsize=1024)
def _is_hidden(character: str) -> bool:
    from unicodedata import category

    return character not in "\n\t" and category(character) in _HIDDEN


def _replaced(text: str, written: Callable[[str], str]) -> str:
    # One look at the whole tells nearly always that there is nothing to do.
    if text.isprintable():
        return text
    return "".join(written(c) if _is_hidden(c) else c for c in text)


def visible(text: str) -> str:
    r"""``text`` with escapes instead of what steers a terminal: ``\x1b``, ``\u202e``. Line feeds and tabs stay."""
    return _replaced(text, _python)


def on_one_line(text: str) -> str:
    """As ``visible``, with spaces instead of line feeds and tabs: for a cell, a heading, a finding."""
    return visible(text).replace("\n", " ").replace("\t", " ")


def _python(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def in_json(encoded: str) -> str:
    """JSON that was encoded without ASCII escapes, with escapes for what steers a terminal: the same value."""
    # Controls below a space are escaped already.
    return encoded if encoded.isascii() and "\x7f" not in encoded else _replaced(encoded, _json)


def _json(character: str) -> str:
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def in_xml(document: str) -> str:
    """An XML document of elements, attributes and text alone, with character references for what steers a terminal."""
    return _replaced(document, lambda c: f"&#x{ord(c):x};")


class YamlStream:
    """What PyYAML writes to: escapes, inside the double quotes that ``yaml_text`` asks for, what steers a terminal."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        self._stream.write(_replaced(text, _python))

    def flush(self) -> None:
        self._stream.flush()


def yaml_style(text: str) -> tuple[str, str | None]:
    """``(text, style)`` for a YAML scalar: in double quotes where it holds what has to be escaped.

    A lone surrogate, which no YAML can hold, becomes U+FFFD.
    """
    if text.isprintable() or not any(map(_is_hidden, text)):
        return text, None
    return "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= c <= "\udfff" else c for c in text), '"'
