"""The skeleton of pages that stand alone: one file without a script, which fetches nothing and forbids to fetch anything.

Names, messages and configurations come from outside. Whatever is no ``Html`` is escaped here, with escapes for characters
that hide or reorder text, and cut where it is longer than anybody reads.
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
"""Characters of one text that a page shows."""
_HASH = b64encode(sha256(STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"


class Html(str):
    """Markup, which is written as it is."""

    __slots__ = ()


@dataclass(frozen=True)
class Column:
    """A column of a table. ``kind`` is how its cells are set: ``n`` for numbers, ``code``, ``long``, ``nowrap``."""

    name: str
    kind: str = ""


def text(value: object) -> Html:
    """``value`` as text within an element or an attribute, in one line."""
    if isinstance(value, Html):
        return value
    shown = on_one_line(str(value))
    if len(shown) > LONGEST:
        shown = f"{shown[:LONGEST]}… ({len(shown) - LONGEST:,} more characters)"
    return Html(escape(shown))


def code(value: object) -> Html:
    """``value`` as a name or a command."""
    return Html(f"<code>{text(value)}</code>")


def paragraph(value: object, kind: str = "") -> Html:
    return Html(f"<p{_class(kind)}>{text(value)}</p>")


def joined(parts: Iterable[str], by: str = "\n") -> Html:
    """Pieces of markup as one."""
    return Html(by.join(map(text, parts)))


def facts(pairs: Iterable[tuple[str, object]]) -> Html:
    """What is known, each with its name."""
    return Html(f"<dl>{''.join(f'<dt>{text(name)}</dt><dd>{text(value)}</dd>' for name, value in pairs)}</dl>")


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]], caption: str, *, cards: bool = True) -> Html:
    """A table whose first cells are the headers of their rows. As ``cards`` each row is a block on a narrow screen."""
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
        # On a narrow screen a cell is a grid of its label and one more.
        inside = f"<div>{text(cell)}</div>" if cards and cell and isinstance(cell, Html) else text(cell)
        yield f"<{tag}{scope}{_class(column.kind)}{label}>{inside}</{tag}>"


def details(summary: str, inside: str, *, opened: bool = False) -> Html:
    """What is shown when it is asked for, and on paper."""
    return Html(f"<details{' open' if opened else ''}><summary>{text(summary)}</summary>{text(inside)}</details>")


@dataclass(frozen=True)
class Section:
    """A part of a page. ``id`` is what links lead to, one lower-case word; ``heading`` stands above it, and in the menu."""

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
