"""The frame of self-contained pages: one file without scripts, whose content security policy forbids all requests.

Names, messages and configurations come from outside. Values that are not ``Html`` are escaped here, with escapes for
characters that hide or reorder text, and cut after ``LONGEST`` characters.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape

from connectctl.cli.output.html_style import STYLE
from connectctl.cli.output.sanitize import on_one_line

LONGEST = 4000
"""The most characters of one text on a page."""
_HASH = b64encode(sha256(STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"


class Html(str):
    """Markup, which is not escaped."""

    __slots__ = ()


@dataclass(frozen=True)
class Column:
    """A column of a table. ``kind`` is the style of its cells: ``n`` for numbers, ``code``, ``long``, ``nowrap``."""

    name: str
    kind: str = ""


def text(value: object) -> Html:
    """Return ``value`` escaped for an element or an attribute, in one line."""
    if isinstance(value, Html):
        return value
    shown = on_one_line(str(value))
    if len(shown) > LONGEST:
        shown = f"{shown[:LONGEST]}… ({len(shown) - LONGEST:,} more characters)"
    return Html(escape(shown))


def code(value: object) -> Html:
    """Return ``value`` as a name or a command."""
    return Html(f"<code>{text(value)}</code>")


def paragraph(value: object, kind: str = "") -> Html:
    return Html(f"<p{_class(kind)}>{text(value)}</p>")


def joined(parts: Iterable[str], by: str = "\n") -> Html:
    """Join pieces of markup."""
    return Html(by.join(map(text, parts)))


def facts(pairs: Iterable[tuple[str, object]]) -> Html:
    """Return a list of names and values."""
    return Html(f"<dl>{''.join(f'<dt>{text(name)}</dt><dd>{text(value)}</dd>' for name, value in pairs)}</dl>")


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]], caption: str, *, cards: bool = True) -> Html:
    """Return a table whose first cells are the headers of their rows. With ``cards``, rows are blocks on a narrow screen."""
    head = "".join(f'<th scope="col"{_class("n" if c.kind == "n" else "")}>{text(c.name)}</th>' for c in columns)
    body = "".join(f"<tr>{''.join(_cells(columns, row, cards))}</tr>" for row in rows)
    return Html(
        f'<div class="scroll"><table{_class("cards" if cards else "small")}><caption>{text(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cells(columns: Sequence[Column], row: Sequence[object], cards: bool) -> Iterable[str]:
    for n, (column, cell) in enumerate(zip(columns, row, strict=True)):
        label = f' data-label="{text(column.name)}"' if cards else ""
        tag, scope = ("th", ' scope="row"') if n == 0 else ("td", "")
        # On a narrow screen a cell is a grid of its label and one element.
        inside = f"<div>{text(cell)}</div>" if cards and cell and isinstance(cell, Html) else text(cell)
        yield f"<{tag}{scope}{_class(column.kind)}{label}>{inside}</{tag}>"


def details(summary: str, inside: str, *, opened: bool = False) -> Html:
    """Return markup that is hidden until the reader expands it; shown on paper."""
    return Html(f"<details{' open' if opened else ''}><summary>{text(summary)}</summary>{text(inside)}</details>")


@dataclass(frozen=True)
class Section:
    """A part of a page. ``id`` is the anchor, one lower-case word; ``heading`` is shown above it, and in the menu."""

    id: str
    heading: str
    parts: Sequence[str]


def document(title: str, top: Iterable[str], sections: Sequence[Section]) -> str:
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="referrer" content="no-referrer">'
        f'<meta name="color-scheme" content="light dark"><title>{text(title)}</title><style>{STYLE}</style>'
    )
    menu = "".join(f'<li><a href="#{each.id}">{text(each.heading)}</a></li>' for each in sections)
    body = "\n".join(_section(each) for each in sections)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n<header><h1>{text(title)}</h1>\n{joined(top)}\n'
        f'<nav aria-label="Sections"><ul>{menu}</ul></nav></header>\n<main>\n{body}\n</main></body></html>\n'
    )


def _section(section: Section) -> str:
    inside = joined(section.parts)
    return f'<section id="{section.id}"><h2>{text(section.heading)}</h2>\n{inside}</section>'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
