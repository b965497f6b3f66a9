"""Plots of a page: counts over time as columns, and bars by size, as values for the macros
``timelines`` and ``bars``.

Slots are merged into at most ``COLUMNS`` columns, so that they can be distinguished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connectctl.cli.output import terminal
from connectctl.ops.core.times import utc

COLUMNS = 160
"""Most columns of a plot: nearly two pixels each on a telephone of 360 pixels, so that a single one
is visible.
"""
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


def timelines(series: Sequence[Series], slot: int) -> dict[str, Any]:
    """Return a plot of each of ``series`` on one axis, and the table of the highest columns. Slots
    are ``slot`` ms wide.
    """
    slots = [n for each in series for n, count in each.counts.items() if count]
    first, last = min(slots, default=0), max(slots, default=0)
    merged = -(-(last - first + 1) // COLUMNS)
    used = -(-(last - first + 1) // merged)
    columns = max(used, FEWEST)
    first -= (columns - used) // 2 * merged
    span = _span(merged * slot)

    def begin(column: float) -> str:
        return utc((first + column * merged) * slot)

    counts = [_merged(each.counts, first, merged) for each in series]
    totals = sum(counts, Counter[int]())
    highest = sorted(totals, key=lambda column: -totals[column])[:NUMBERS]
    return {
        "columns": columns,
        "height": HEIGHT,
        "span": span,
        "times": [begin(0), begin(columns / 2), begin(columns)],
        "plots": [_plot(*each, columns, span) for each in zip(series, counts, strict=True)],
        "begin": begin,
        "heads": [("from (UTC)", "nowrap"), *((each.title, "n") for each in series)],
        "numbers": [
            [begin(column), *(f"{found[column]:,}" for found in counts)]
            for column in sorted(highest)
        ],
        "every": len(totals),
    }


def _merged(counts: Mapping[int, int], first: int, merged: int) -> Counter[int]:
    found: Counter[int] = Counter()
    for slot, count in sorted(counts.items()):
        if count:
            found[(slot - first) // merged] += count
    return found


def _plot(series: Series, counts: Counter[int], columns: int, span: str) -> dict[str, Any]:
    """Return the plot of one series; its bars have the units of the drawing."""
    most, gap = max(counts.values(), default=0), 0.1 if columns <= COLUMNS // 2 else 0
    heights = {
        column: max(LOWEST, count / most * (HEIGHT - LOWEST)) for column, count in counts.items()
    }
    return {
        "kind": series.kind,
        "title": series.title,
        "most": short(most),
        "totals": f"{counts.total():,} in all, at most {most:,} in {span}" if counts else "none",
        "width": f"{1 - 2 * gap:g}",
        "bars": [
            (column, counts[column], f"{column + gap:g}", f"{HEIGHT - high:.1f}", f"{high:.1f}")
            for column, high in heights.items()
        ],
    }


def size_bars(rows: Sequence[tuple[str, int]]) -> list[tuple[str, int, str]]:
    """Return the label, the count and the width of a bar for each of ``rows``, zeros included."""
    most = max((count for _, count in rows), default=0) or 1
    return [(label, n, f"{max(n / most * 100, 0.5):.4g}%" if n else "0") for label, n in rows]


def short(number: int) -> str:
    """Shorten a number for an axis: 950, 16k, 2.1M."""
    for size, unit in (
        (1_000_000_000_000, "T"),
        (1_000_000_000, "G"),
        (1_000_000, "M"),
        (1_000, "k"),
    ):
        if number >= size:
            return (
                f"{number / size:.3g}{unit}"
                if number < 1000 * size
                else f"{number // size:,}{unit}"
            )
    return str(number)


def _span(milliseconds: int) -> str:
    seconds = milliseconds / 1000
    return f"{seconds:g} s" if seconds < 60 else terminal.duration(seconds)
