"""Plots of a page: columns over time, and bars by size. Drawn as SVG without text; the labels are HTML next to it.

So labels have the size of the page's text, also on a telephone, and cannot overlap. Slots are merged into at most
``COLUMNS`` columns, so that they can be distinguished.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from connectctl.cli.output import terminal
from connectctl.cli.output.html_page import Column, Html, details, joined, table, text
from connectctl.ops.core.times import utc

COLUMNS = 160
"""Most columns of a plot: nearly two pixels each on a telephone of 360 pixels, so that a single one is visible."""
FEWEST = 24
"""Fewest columns of a plot, so that a single one is not as wide as the page."""
HEIGHT = 72
LOWEST = 2
"""Pixels of the lowest column that is not zero."""
NUMBERS = 50
"""Columns whose numbers are listed."""


@dataclass(frozen=True)
class Series:
    """Counts by time slot. ``kind`` is the name of the colour; ``title`` names what is counted."""

    kind: str
    title: str
    counts: Mapping[int, int]


@dataclass(frozen=True)
class _Axis:
    """The time axis of all plots: ``columns`` of ``width`` milliseconds, the first of which begins with slot ``first``."""

    first: int
    slots: int
    columns: int
    slot: int

    @property
    def width(self) -> int:
        return self.slots * self.slot

    def column(self, slot: int) -> int:
        return (slot - self.first) // self.slots

    def begin(self, column: int) -> int:
        return (self.first + column * self.slots) * self.slot


def timelines(series: Sequence[Series], slot: int) -> Html:
    """Return one plot of each, below each other on the same time axis. Slots are ``slot`` milliseconds wide."""
    axis = _axis([n for each in series for n, count in each.counts.items() if count], slot)
    columns = [_columns(each, axis) for each in series]
    plots = [_plot(each, counts, axis, n) for n, (each, counts) in enumerate(zip(series, columns, strict=True))]
    return joined([*plots, _numbers(series, columns, axis)])


def _axis(slots: Sequence[int], width: int) -> _Axis:
    first, last = min(slots, default=0), max(slots, default=0)
    merged = -(-(last - first + 1) // COLUMNS)
    columns = -(-(last - first + 1) // merged)
    spare = max(0, FEWEST - columns)
    return _Axis(first - spare // 2 * merged, merged, columns + spare, width)


def _columns(series: Series, axis: _Axis) -> dict[int, int]:
    found: dict[int, int] = {}
    for slot, count in sorted(series.counts.items()):
        if count:
            found[axis.column(slot)] = found.get(axis.column(slot), 0) + count
    return found


def _plot(series: Series, counts: Mapping[int, int], axis: _Axis, number: int) -> Html:
    most, total = max(counts.values(), default=0), sum(counts.values())
    span = _span(axis.width)
    totals = f"{total:,} in all, at most {most:,} in {span}" if total else "none"
    begin, end = utc(axis.begin(0)), utc(axis.begin(axis.columns))
    description = f"From {begin} to {end} UTC: {totals}."
    columns_drawn = "".join(_column(series, axis, column, count, most) for column, count in counts.items())
    return Html(
        f'<figure><figcaption><i class="{series.kind}"></i><b>{text(series.title)}</b> <span class="dim">{totals}</span>'
        f'</figcaption><div class="axes"><div class="y"><span>{short(most)}</span><span>0</span></div>'
        f'<svg viewBox="0 0 {axis.columns} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-labelledby="plot{number}t plot{number}d"><title id="plot{number}t">{text(series.title)}</title>'
        f'<desc id="plot{number}d">{text(description)}</desc><path d="M0 {HEIGHT / 2:g}H{axis.columns}'
        f'M0 {HEIGHT}H{axis.columns}"/>{columns_drawn}</svg><div class="x">{"".join(_times(axis))}</div></div></figure>'
    )


def _column(series: Series, axis: _Axis, column: int, count: int, most: int) -> str:
    high = max(LOWEST, count / most * (HEIGHT - LOWEST))
    gap = 0.1 if axis.columns <= COLUMNS // 2 else 0
    hint = f"<title>{utc(axis.begin(column))} + {_span(axis.width)}: {count:,}</title>"
    place = f'x="{column + gap:g}" y="{HEIGHT - high:.1f}" width="{1 - 2 * gap:g}" height="{high:.1f}"'
    return f'<rect class="{series.kind}" {place}>{hint}</rect>'


def _times(axis: _Axis) -> Iterable[str]:
    for column in (0, axis.columns / 2, axis.columns):
        yield f"<span>{text(utc(axis.begin(0) + column * axis.width))}</span>"


def _numbers(series: Sequence[Series], columns: Sequence[Mapping[int, int]], axis: _Axis) -> Html:
    """Return the numbers of the columns as a table, for accessibility."""
    every = {column for counts in columns for column in counts}
    highest = sorted(every, key=lambda column: -sum(counts.get(column, 0) for counts in columns))[:NUMBERS]
    rows = [
        [utc(axis.begin(column)), *(f"{counts.get(column, 0):,}" for counts in columns)] for column in sorted(highest)
    ]
    heads = [Column("from (UTC)", "nowrap"), *(Column(each.title, "n") for each in series)]
    some = f"the {len(rows):,} highest of {len(every):,} columns" if len(every) > len(rows) else "every column"
    return details("Numbers", table(heads, rows, f"{some} that is not zero, of {_span(axis.width)} each"))


def bars(heads: tuple[str, str], rows: Sequence[tuple[str, int]], caption: str) -> Html:
    """Return a bar for each of ``rows``, zeros included."""
    most = max((count for _, count in rows), default=0) or 1
    columns = [Column(heads[0], "nowrap"), Column(heads[1], "n"), Column("share", "bar")]
    cells = [(label, f"{count:,}", _bar(count / most)) for label, count in rows]
    return table(columns, cells, caption, cards=False)


def _bar(share: float) -> Html:
    width = f"{max(share * 100, 0.5):.4g}%" if share else "0"
    return Html(f'<svg aria-hidden="true"><rect width="{width}" height="100%"/></svg>')


def short(number: int) -> str:
    """Shorten a number for an axis: 950, 16k, 2.1M."""
    for size, unit in ((1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}" if number < 1000 * size else f"{number // size:,}{unit}"
    return str(number)


def _span(milliseconds: int) -> str:
    seconds = milliseconds / 1000
    return f"{seconds:g} s" if seconds < 60 else terminal.duration(seconds)
