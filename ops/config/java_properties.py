"""Java ``.properties`` files as text: read as ``java.util.Properties`` reads them, and edited in
place.

An edit replaces the characters of one value only: comments, order, spacing, escapes and line
endings are kept. The text is the file's bytes in ISO-8859-1, because Kafka reads its files so
(``Utils.loadProps``); an edit keeps any other bytes. If a key exists twice, the last one counts,
and is the one that is changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

ENCODING = "iso-8859-1"
_BLANKS = " \t\f"
_ENDS = re.compile(r"\r\n|\r|\n")
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {"\\": "\\\\", **{character: f"\\{letter}" for letter, character in _NAMED.items()}}
_HEX = re.compile(r"[0-9a-fA-F]{4}")


class Malformed(ValueError):
    """Text that Java refuses, with the line, from 1, of the malformed property."""

    def __init__(self, line: int):
        super().__init__(f"line {line} has a \\u that is not followed by four hexadecimal digits")
        self.line = line


@dataclass(frozen=True, slots=True)
class Property:
    """A key and its value, unescaped.

    ``begin`` and ``end`` are the range of the written value in the text, escapes and continuations
    included; ``separated`` is whether there is a separator between key and value.
    """

    key: str
    value: str
    begin: int
    end: int
    separated: bool


def read(text: str) -> dict[str, str]:
    """Return all properties; of a repeated key, the last. Raises ``Malformed``."""
    return {found.key: found.value for found in properties(text)}


def value_of(text: str, key: str) -> str | None:
    """Return the value of ``key``, None if it is not set. Raises ``Malformed`` for any text that
    Java refuses.
    """
    return read(text).get(key)


def properties(text: str) -> Iterator[Property]:
    """Return every property of ``text`` in order, repeated keys included.

    Raises ``Malformed`` (``java.util.Properties.load``).
    """
    return (_property(text, line) for line in _logical_lines(text))


def with_value(text: str, key: str, value: str) -> str:
    """Return ``text`` with ``key`` set to ``value``, in place or on a new line at the end.

    Raises ``Malformed``; ``ValueError`` for an empty key. Text that has this value already is
    returned unchanged.
    """
    if not key:
        raise ValueError("a property needs a name")
    last = next((found for found in reversed(list(properties(text))) if found.key == key), None)
    if last is None:
        return (
            text
            + _gap(text)
            + f"{_escaped(key, '=: #!')}={_escaped_value(value)}"
            + (_last_end(text) or "\n")
        )
    if last.value == value:
        return text
    separator = "" if last.separated else "="
    return text[: last.begin] + separator + _escaped_value(value) + text[last.end :]


@dataclass(frozen=True, slots=True)
class _Line:
    """A logical line: its characters, the index of each in the text, and the end of the line's own
    text.

    ``dangling``: the text ended in the middle of a continued line.
    """

    characters: str
    indexes: tuple[int, ...]
    end: int
    number: int
    dangling: bool = False


def _natural_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of every line, without its line end."""
    begin = 0
    for mark in _ENDS.finditer(text):
        yield begin, mark.start()
        begin = mark.end()
    if begin < len(text):
        yield begin, len(text)


def _logical_lines(text: str) -> Iterator[_Line]:
    """Yield the lines joined with their continuations, without comments and blank lines."""
    indexes: list[int] = []
    first, end = 1, 0
    for number, (begin, stop) in enumerate(_natural_lines(text), start=1):
        start, end = _first_not_blank(text, begin, stop), stop
        if not indexes:
            first = number
            # After a line that holds only a continuation, the next line may still be a comment.
            if start == stop or text[start] in "#!":
                continue
        continued = _is_continued(text, start, stop)
        indexes += range(start, stop - continued)
        if not continued:
            yield _Line("".join(text[at] for at in indexes), tuple(indexes), end, first)
            indexes = []
    # From a lone backslash at the end of some files Java reads a property without a name; here it
    # is ignored.
    if indexes:
        yield _Line("".join(text[at] for at in indexes), tuple(indexes), end, first, dangling=True)


def _first_not_blank(text: str, begin: int, stop: int) -> int:
    while begin < stop and text[begin] in _BLANKS:
        begin += 1
    return begin


def _is_continued(text: str, start: int, stop: int) -> bool:
    """Return whether the line ends with a backslash that is not itself escaped."""
    line = text[start:stop]
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _property(text: str, line: _Line) -> Property:
    characters = line.characters
    key_end = _key_end(characters)
    at = _first_not_blank(characters, key_end, len(characters))
    if at < len(characters) and characters[at] in "=:":
        at = _first_not_blank(characters, at + 1, len(characters))
    key, value = (_unescaped(part, line.number) for part in (characters[:key_end], characters[at:]))
    # An empty value begins right after the last character before it, so that an edit includes
    # dangling backslashes.
    begin = (
        line.indexes[at]
        if at < len(characters)
        else (line.indexes[-1] + 1 if line.indexes else line.end)
    )
    return Property(key, value, begin, line.end, at > key_end)


def _key_end(characters: str) -> int:
    escaped = False
    for at, character in enumerate(characters):
        if not escaped and character in "=:" + _BLANKS:
            return at
        escaped = character == "\\" and not escaped
    return len(characters)


def _unescaped(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == "\\" and at < len(text):
            character = text[at]
            at += 1
            if character == "u":
                if not (digits := _HEX.match(text, at)):
                    raise Malformed(line)
                character = chr(int(digits.group(), 16))
                at += 4
            else:
                character = _NAMED.get(character, character)
        out.append(character)
    # Java's strings are UTF-16: two escapes may be the halves of one character.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _escaped_value(value: str) -> str:
    # Leading blanks, and a sign after a separator of blanks, would be read as part of the
    # separator.
    lead = f"\\{value[0]}" if value[:1] in tuple(" =:") else _escaped(value[:1], "")
    return lead + _escaped(value[1:], "")


def _escaped(text: str, special: str) -> str:
    return "".join(_written(character, special) for character in text)


def _written(character: str, special: str) -> str:
    if character in _WRITTEN:
        return _WRITTEN[character]
    if character in special:
        return f"\\{character}"
    if " " <= character <= "~":
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _last_end(text: str) -> str | None:
    """Return the end of the last line that has one; new lines have the same."""
    marks = _ENDS.findall(text)
    return marks[-1] if marks else None


def _gap(text: str) -> str:
    """Return the line ends that separate ``text`` from a property that is appended to it."""
    dangling = any(line.dangling for line in _logical_lines(text))
    unended = bool(text) and not text.endswith(("\r", "\n"))
    return (_last_end(text) or "\n") * (unended + dangling)
