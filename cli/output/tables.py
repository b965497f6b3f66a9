"""Fits a table to a terminal without wrapping values that users copy.

A name, a number or an address is always on one line. If a table is too wide, sentences are wrapped
between their words; then the spare columns are left out in their order, and named; if that does not
suffice, the last column goes over the edge where that is allowed, or a long name in the first column
has a line of its own; else each row becomes a block of lines. Wide characters (CJK, emoji) count as two cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from connectctl.cli.output.printed_commands import words_of
from connectctl.cli.output.sanitize import cut, on_one_line

GAP = 3
LONGEST = 250
"""Most characters of a value in a table, as many as the name of a topic has; JSON has it whole."""
LONGEST_SENTENCE = 2_000
ALIGNED = 80
"""The widest cell that the others of its column are aligned with, where lines may be of any
width.
"""
LEAST_SENTENCE = 16
"""Fewest cells in which a wrapped sentence is still readable."""


Part = tuple[str, str | None]
"""A text as drawn, and the full text of its cell; None for a heading."""
Lines = list[list[Part]]
Table = list[list[str]]
"""Rows of cells, the first one of headings."""
Fitted = tuple[Lines, list[str]]


def cells(text: str) -> int:
    """Return the terminal cells of ``text``."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def whole(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows in columns, one line each, in full width: for programs that parse them."""
    table = [list(map(_cell, row)) for row in (columns, *rows)]
    # A longer one moves what follows it in its own line only.
    widths = [
        max((n for n in map(cells, column) if n <= ALIGNED), default=0)
        for column in zip(*table, strict=True)
    ]
    for row in table:
        yield (
            (" " * GAP)
            .join(_padded(cell, width) for cell, width in zip(row, widths, strict=True))
            .rstrip()
        )


def fit(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    spare: Sequence[str] = (),
    *,
    open_end: bool = False,
) -> Fitted:
    """Return the rows in at most ``width`` cells, as lines of parts, and the columns left out, in
    the order of ``spare``. ``open_end``: long values of the last column may be wider.
    """
    table = [list(map(_cell, row)) for row in (columns, *rows)]
    spared = ["", *(each for each in spare if each in table[0])]
    for draw in (_in_columns, _hanging):
        for n in range(1, len(spared) + 1):
            left_out = spared[1:n]
            kept = _without(table, left_out)
            if (lines := draw(kept, width)) is not None:
                return lines, left_out
        if (open_end or len(kept[0]) == 2) and (lines := _overflowing(kept, width)) is not None:
            return lines, left_out
    return list(_blocks(table[0], table[1:], width)), []


def _without(table: Sequence[Sequence[str]], left_out: Sequence[str]) -> Table:
    kept = [n for n, name in enumerate(table[0]) if name not in left_out]
    return [[row[n] for n in kept] for row in table]


def _in_columns(table: Table, width: int) -> Lines | None:
    """Return a table with its sentences wrapped; None if it is wider than ``width``."""
    widths = _widths(list(zip(*table, strict=True)), width)
    return None if widths is None else _all_drawn(table, widths)


def _hanging(table: Table, width: int) -> Lines | None:
    """Return a table in which each long value of the first column has a line of its own, above the
    rest of its row; None if the other columns are too wide.
    """
    rest = _widths(list(zip(*table, strict=True))[1:], width - LEAST_SENTENCE - GAP)
    if not rest:
        return None
    room = width - sum(rest) - GAP * len(rest)
    first = max((n for n in (cells(row[0]) for row in table) if n <= room), default=0)
    lines: Lines = []
    for n, row in enumerate(table):
        name, others = row[0], row[1:]
        if cells(name) > room:
            lines += ([(part, name if n else None)] for part in _wrapped(name, width))
            name = ""
        lines += _drawn([name, *others], [first, *rest], heading=not n)
    return lines


def _overflowing(table: Table, width: int) -> Lines | None:
    """Return a table whose last column may be wider than the terminal, but for sentences; None if
    the other columns leave no room.
    """
    widths = [max(map(cells, column)) for column in zip(*table, strict=True)][:-1]
    last = width - sum(widths) - GAP * len(widths)
    return _all_drawn(table, [*widths, last]) if last >= LEAST_SENTENCE else None


def _all_drawn(table: Table, widths: Sequence[int]) -> Lines:
    return [line for n, row in enumerate(table) for line in _drawn(row, widths, heading=not n)]


def _cell(text: str) -> str:
    """Return ``text`` as a table shows it: on one line, without the end of a value that nobody
    reads in a table.
    """
    most = LONGEST_SENTENCE if _is_sentence(text[:LONGEST]) else LONGEST
    return on_one_line(cut(text, most))


def _widths(columns: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return the width of each column; None if they do not fit even when wrapped."""
    natural = [max(map(cells, column)) for column in columns]
    room = width - GAP * (len(columns) - 1)
    over = sum(natural) - room
    least = [_least(column, full) for column, full in zip(columns, natural, strict=True)]
    if over > sum(full - small for full, small in zip(natural, least, strict=True)):
        return None
    widths = list(natural)
    while over > 0:
        # The widest column shrinks first, so that no sentence is narrower than necessary.
        widest = max(
            (n for n in range(len(widths)) if widths[n] > least[n]), key=lambda n: widths[n]
        )
        widths[widest] -= 1
        over -= 1
    return widths


def _least(column: Sequence[str], natural: int) -> int:
    """Return the least width of a column without wrapping within a word."""
    if not any(map(_is_sentence, column[1:])):
        return natural
    # A single word, or a value to be copied, keeps its width next to sentences.
    return min(
        natural, max(LEAST_SENTENCE, *(cells(part) for cell in column for part in _words(cell)))
    )


def _is_sentence(cell: str) -> bool:
    """Whether a cell may be wrapped: it consists of words, or is a list, and is not JSON."""
    return not cell.startswith(("{", "[")) and (cell.strip().count(" ") > 1 or ", " in cell)


def _words(cell: str) -> list[str]:
    return cell.split(" ") if _is_sentence(cell) else [cell]


def _wrapped(cell: str, width: int) -> list[str]:
    """Wrap a cell between words into lines of at most ``width``."""
    lines: list[str] = []
    for word in _words(cell):
        if lines and cells(lines[-1]) + 1 + cells(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]


def _drawn(row: Sequence[str], widths: Sequence[int], *, heading: bool) -> Iterator[list[Part]]:
    parts = [
        _wrapped(cell, width) if cells(cell) > width else [cell]
        for cell, width in zip(row, widths, strict=True)
    ]
    for n in range(max(map(len, parts), default=0)):
        yield [
            (_padded(part[n] if n < len(part) else "", width + GAP), None if heading else cell)
            for part, cell, width in zip(parts, row, widths, strict=True)
        ]


def _blocks(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> Iterator[list[Part]]:
    """Yield rows as lines of heading and value, an empty line between rows. A value may be wider
    than ``width``.
    """
    margin = max(map(cells, columns), default=0) + GAP
    for number, row in enumerate(rows):
        if number:
            yield []
        for name, cell in zip(columns, row, strict=True):
            for n, part in enumerate(
                _wrapped(cell, max(LEAST_SENTENCE, width - margin)) if cell else ()
            ):
                yield [(_padded("" if n else name, margin), None), (part, cell)]


_MARGIN = re.compile(r" *(?:\d+\. |- +|(?:error|warning|info): |[a-z]+ {3,})?")
"""What stands before a text: an indent, the number of a step, the mark of an item, an outcome."""


def paragraph(text: str, width: int) -> list[str]:
    """Wrap a text between words into lines of at most ``width``, those after the first indented as
    it is. A longer word, and a command, is on one line.
    """
    if cells(text) <= width:
        return [text]
    match = _MARGIN.match(text)
    assert match is not None
    indent = " " * match.end() if text.startswith(" ") or match[0].endswith("   ") else ""
    first, *words = words_of(text[match.end() :])
    lines = [match[0] + first]
    for word in words:
        if cells(lines[-1]) + 1 + cells(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(indent + word)
    return lines


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))
