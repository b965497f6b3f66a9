"""Pictures of what happened over time: lanes with bands of states and marks of events, as values for
the macro ``lanes``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.core.times import utc

WIDTH = 1000
"""Units of a drawing, whatever its width is on the page."""
HEIGHT = 16
"""Pixels of a lane."""
NARROWEST = 2.0
"""Units of a band or a mark that is short: two pixels of a page of 1,000, so that it is visible."""
MOST_MARKS = 500


@dataclass(frozen=True)
class Band:
    """A state from ``begin`` to ``end``, in seconds since the epoch. ``kind`` names the colour."""

    kind: str
    title: str
    begin: float
    end: float


@dataclass(frozen=True)
class Lane:
    """A line of a picture. ``marks`` are events at one time, as bands without a length."""

    title: str
    bands: Sequence[Band] = ()
    marks: Sequence[Band] = field(default_factory=tuple)


def picture(lanes: Sequence[Lane], begin: float, end: float) -> dict[str, Any]:
    """Return the drawing of ``lanes`` from ``begin`` to ``end``, in seconds since the epoch."""
    span = max(end - begin, 1.0)
    return {
        "width": WIDTH,
        "height": HEIGHT * len(lanes),
        "labels": [lane.title for lane in lanes],
        "rects": [
            rect
            for number, lane in enumerate(lanes)
            for rect in _rects(lane, number * HEIGHT, begin, span)
        ],
        "times": [utc(at * 1000) for at in (begin, begin + span / 2, end)],
    }


def _rects(lane: Lane, top: int, begin: float, span: float) -> Iterator[dict[str, str]]:
    for band, inset in _drawn(lane):
        first = (max(band.begin, begin) - begin) / span * WIDTH
        last = (min(band.end, begin + span) - begin) / span * WIDTH
        if last < 0 or first > WIDTH:
            continue
        width = max(last - first, NARROWEST)
        yield {
            "kind": band.kind,
            "title": band.title,
            "x": f"{min(first, WIDTH - width):.1f}",
            "y": str(top + inset),
            "width": f"{width:.1f}",
            "height": str(HEIGHT - 2 * inset),
        }


def _drawn(lane: Lane) -> Iterator[tuple[Band, int]]:
    """Yield the bands, and the marks on top of them, with the pixels that are left free above."""
    yield from ((band, 3) for band in lane.bands)
    yield from ((mark, 1) for mark in lane.marks[-MOST_MARKS:])


def merged(times: Iterable[float], begin: float, end: float) -> list[tuple[float, int]]:
    """Return times and how many of ``times`` are so near that they would be one mark."""
    step = max(end - begin, 1.0) * NARROWEST / WIDTH
    counts: dict[int, int] = {}
    for at in times:
        if begin <= at <= end:
            slot = int((at - begin) / step)
            counts[slot] = counts.get(slot, 0) + 1
    return [(begin + slot * step, count) for slot, count in sorted(counts.items())]
