"""Escapes characters in text from outside that control a terminal, or that reorder or hide text.

Names, configurations, messages of workers and output of commands may contain control characters
(C0, C1, DEL), bidirectional marks and zero-width characters; printed raw, they move the cursor,
recolour, reorder or hide text ("Trojan Source", CVE-2021-42574). All output of commands is escaped
here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import IO

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode's categories: controls, format characters (bidi, zero-width), lone surrogates, separators
of lines, paragraphs.
"""


@lru_cache(maxsize=1024)
def _is_hidden(character: str) -> bool:
    from unicodedata import category

    return character not in "\n\t" and category(character) in _HIDDEN


def _replaced(text: str, escape: Callable[[str], str]) -> str:
    # A check of the whole text nearly always suffices.
    if text.isprintable():
        return text
    return "".join(escape(c) if _is_hidden(c) else c for c in text)


def visible(text: str) -> str:
    r"""Return ``text`` with escapes for characters that control a terminal: ``\x1b``, ``\u202e``. Keeps line feeds, tabs."""
    return _replaced(text, _python_escape)


def cut(text: str, most: int) -> str:
    """Return ``text``, or its first ``most`` characters and the number of the others."""
    more = len(text) - most
    return text if more <= 0 else f"{text[:most]}… ({more:,} more characters)"


def on_one_line(text: str) -> str:
    """Return ``visible(text)`` with spaces instead of line feeds and tabs: for a cell, a heading, a
    finding.
    """
    return visible(text).replace("\n", " ").replace("\t", " ")


def _python_escape(character: str) -> str:
    code = ord(character)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


def in_json(encoded: str) -> str:
    """Escape characters that control a terminal in JSON encoded without ASCII escapes; its value is
    unchanged.
    """
    # Controls below a space are escaped already.
    return (
        encoded if encoded.isascii() and "\x7f" not in encoded else _replaced(encoded, _json_escape)
    )


def _json_escape(character: str) -> str:
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def in_xml(document: str) -> str:
    """Replace characters that control a terminal in XML (elements, attributes, text) by character
    references.
    """
    return _replaced(document, lambda c: f"&#x{ord(c):x};")


class YamlStream:
    """A stream for PyYAML: escapes characters that control a terminal, in the double quotes that
    ``yaml_style`` requests.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        self._stream.write(_replaced(text, _python_escape))

    def flush(self) -> None:
        self._stream.flush()


def yaml_style(text: str) -> tuple[str, str | None]:
    """Return ``(text, style)`` for a YAML scalar: in double quotes if it contains characters to
    escape.

    A lone surrogate, which YAML cannot contain, becomes U+FFFD.
    """
    if text.isprintable() or not any(map(_is_hidden, text)):
        return text, None
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if "\ud800" <= c <= "\udfff" else c for c in text
    ), '"'
