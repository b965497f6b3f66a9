"""An audit as one page: numbers, plots drawn as SVG, evidence. Nothing is fetched from anywhere; it reads in the dark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

from connectctl.ops.audit.to_json import as_json
from connectctl.ops.audit.violations import KINDS

if TYPE_CHECKING:
    from connectctl.ops.audit.verdict import Audit

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 760, 220, 64, 34, 14
"""Of a plot, in pixels, and what its axes take."""
SERIES = ("aborted", "gaps", "duplicates", "torn")
_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#5b6570;--line:#d5dae0;--back:#fff;--card:#f5f7f9;--bar:#2f6fb2;
--good:#1a7f45;--bad:#b3261e;--doubt:#8a5a00;--aborted:#8a5a00;--gaps:#b3261e;--duplicates:#7b3fa0;--torn:#00706b}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--dim:#9aa5b1;--line:#3a424b;--back:#14181c;--card:#1d2329;
--bar:#6ea8e6;--good:#5cc98a;--bad:#ff8a80;--doubt:#e5b454;--aborted:#e5b454;--gaps:#ff8a80;--duplicates:#cfa0ee;
--torn:#5fd0c8}}
body{margin:2rem auto;max-width:60rem;padding:0 1rem;font:15px/1.5 system-ui,sans-serif;color:var(--ink);
background:var(--back)}
h1{font-size:1.4rem;margin:0}h2{font-size:1.05rem;margin:2rem 0 .5rem}p{margin:.3rem 0}.dim{color:var(--dim)}
.verdict{font-size:1.6rem;font-weight:600}.good{color:var(--good)}.bad{color:var(--bad)}.doubt{color:var(--doubt)}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}
th,td{text-align:left;padding:.25rem .9rem .25rem 0;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--dim);font-weight:500}td.n{text-align:right}td.wide{white-space:normal;min-width:20rem}
svg{display:block;max-width:100%;height:auto;background:var(--card);border-radius:6px}
svg text{fill:var(--dim);font:11px system-ui,sans-serif}svg .axis{stroke:var(--line)}svg .bar{fill:var(--bar)}
.key{display:inline-block;width:.7rem;height:.7rem;border-radius:2px;margin:0 .35rem 0 1rem}
"""
_CLASS = {"exactly-once": "good", "undecided": "doubt"}


def page(audit: Audit) -> str:
    """The page, whole."""
    data = as_json(audit)
    title = f"Audit of {', '.join(data['topics'])}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="verdict {_CLASS.get(data["verdict"], "bad")}">{escape(data["verdict"])}</p>',
        f'<p class="dim">Cluster {escape(data["clusterId"])}, {_time(int(audit.now * 1000))}</p>',
        _numbers(data),
        *_findings(data["findings"]),
        "<h2>Records per transaction</h2>",
        _sizes(audit),
        "<h2>Aborts, gaps, duplicates and torn records over time</h2>",
        _timelines(audit),
        *_sources(data["bySourcePartition"], data["sourcePartitions"]),
        *_evidence(data["evidence"]),
    ]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n'
    )


def _numbers(data: Mapping[str, Any]) -> str:
    rows = [
        [what, *(f"{data[what][name]:,}" for name in ("committed", "aborted", "open"))]
        for what in ("transactions", "records")
    ]
    told = "".join(
        f"<p>{label}: <b>{data[name]:,}</b></p>"
        for name, label in (
            ("duplicates", "Duplicates"),
            ("gaps", "Missing"),
            ("reordered", "Reordered"),
            ("torn", "Torn"),
        )
    )
    return _table(["", "committed", "aborted", "open"], rows) + told


def _findings(findings: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    if findings:
        yield "<h2>Findings</h2>"
        rows = [[f["severity"], f["id"], f["subject"], f"{f['message']} {f.get('nextStep', '')}"] for f in findings]
        yield _table(["severity", "id", "subject", "seen"], rows, numbers=False)


def _sources(sources: Sequence[Mapping[str, Any]], count: int) -> Iterable[str]:
    if not sources:
        return
    yield f"<h2>Source partitions ({count:,})</h2>"
    names = ("records", "first", "last", "duplicates", "gaps", "reordered", "torn")
    rows = [
        [json.dumps(s["partition"], ensure_ascii=False), *("-" if s[n] is None else f"{s[n]:,}" for n in names),
         "-" if s["committedOffset"] is None else json.dumps(s["committedOffset"])]
        for s in sources
    ]  # fmt: skip
    yield _table(["partition", *names, "offset"], rows)
    if count > len(rows):
        yield f'<p class="dim">The worst {len(rows):,} of {count:,}.</p>'


def _evidence(evidence: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    if not evidence:
        return
    yield "<h2>Evidence</h2>"
    columns = ("source", "first", "last", "records", "topic", "partition", "offset", "otherOffset")
    rows = [
        [KINDS.get(e["kind"], e["kind"]), *(str(e.get(c, "-")) for c in columns), _time(e.get("timestamp"))]
        for e in evidence
    ]
    yield _table(
        ["what", "source", "first", "last", "records", "topic", "partition", "offset", "first copy", "when"], rows
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = True) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    last = len(columns) - 1

    def cell(n: int, text: str) -> str:
        kind = ' class="wide"' if not numbers and n == last else ' class="n"' if _numeric(text) else ""
        return f"<td{kind}>{escape(text)}</td>"

    body = "".join("<tr>" + "".join(cell(n, text) for n, text in enumerate(row)) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _numeric(text: str) -> bool:
    return text.replace(",", "").lstrip("-").isdigit()


# ------------------------------------------------------------------------------------------------------------ plots


def _sizes(audit: Audit) -> str:
    counts = audit.summary.totals.sizes.counts
    if not counts:
        return '<p class="dim">No transactions.</p>'
    powers = range(min(counts), max(counts) + 1)
    bars = [(_power(power), counts.get(power, 0)) for power in powers]
    return _bars(bars, "transactions by their records, in powers of two")


def _power(power: int) -> str:
    low = 1 << power
    return "0–1" if power == 0 else f"{_short(low)}–{_short(2 * low - 1)}"


def _bars(bars: Sequence[tuple[str, int]], title: str) -> str:
    most = max(count for _, count in bars) or 1
    step = (WIDTH - LEFT - 10) / len(bars)
    every = max(1, round(70 / step))
    drawn = []
    for n, (label, count) in enumerate(bars):
        high = count / most * (HEIGHT - BOTTOM - TOP)
        x, y = LEFT + n * step, HEIGHT - BOTTOM - high
        hint = f"<title>{escape(label)}: {count:,}</title>"
        drawn.append(
            f'<rect class="bar" x="{x + 1:.1f}" y="{y:.1f}" width="{max(1, step - 2):.1f}" height="{high:.1f}">{hint}</rect>'
        )
        if n % every == 0:
            drawn.append(f'<text x="{x + step / 2:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{label}</text>')
    return _plot(title, drawn, most)


def _timelines(audit: Audit) -> str:
    both = [audit.summary.totals.timeline, audit.summary.timeline]
    while len({t.width for t in both}) > 1:
        min(both, key=lambda t: t.width).double()
    slots = sorted({number for timeline in both for number in timeline.slots})
    if not slots:
        return '<p class="dim">Nothing to draw.</p>'
    counts = {name: {n: sum(t.slots.get(n, {}).get(name, 0) for t in both) for n in slots} for name in SERIES}
    present = [name for name in SERIES if any(counts[name].values())]
    if not present:
        return '<p class="dim">None, from the first transaction to the last.</p>'
    first, last, width = slots[0], slots[-1], both[0].width
    step = (WIDTH - LEFT - 10) / (last - first + 1)
    most = max(max(counts[name].values()) for name in present)
    drawn = []
    for k, name in enumerate(present):
        wide = max(2.0, step / len(present) - 1)
        for number, count in counts[name].items():
            if count:
                high = max(2.0, count / most * (HEIGHT - BOTTOM - TOP))
                x = LEFT + (number - first) * step + k * step / len(present)
                hint = f"<title>{_time(number * width)}: {count:,} {name}</title>"
                drawn.append(
                    f'<rect fill="var(--{name})" x="{x:.1f}" y="{HEIGHT - BOTTOM - high:.1f}" width="{wide:.1f}" '
                    f'height="{high:.1f}">{hint}</rect>'
                )
    drawn += _times(first * width, (last + 1) * width)
    keys = "".join(f'<span class="key" style="background:var(--{name})"></span>{name}' for name in present)
    seconds = f"{width / 1000:g} s"
    return (
        f'<p class="dim">{keys} &nbsp; in slots of {seconds}; aborted are transactions, the rest records</p>'
        + _plot("what went wrong over time", drawn, most)
    )


def _times(begin: int, end: int) -> Iterable[str]:
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        x = LEFT + share * (WIDTH - LEFT - 10)
        told = _time(int(begin + share * (end - begin)))
        yield f'<text x="{x:.0f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="{anchor}">{told}</text>'


def _plot(title: str, drawn: Iterable[str], most: int) -> str:
    base = HEIGHT - BOTTOM
    axis = [
        f'<line class="axis" x1="{LEFT}" y1="{base}" x2="{WIDTH - 10}" y2="{base}"/>',
        f'<line class="axis" x1="{LEFT}" y1="{TOP}" x2="{WIDTH - 10}" y2="{TOP}" stroke-dasharray="2 4"/>',
        f'<text x="{LEFT - 8}" y="{base}" text-anchor="end">0</text>',
        f'<text x="{LEFT - 8}" y="{TOP + 6}" text-anchor="end">{_short(most)}</text>',
    ]
    inside = "".join([*axis, *drawn])
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" {size}>{inside}</svg>'


def _short(number: int) -> str:
    """A number that fits an axis: 950, 16k, 2.1M."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return str(number)


def _time(timestamp: int | None) -> str:
    if timestamp is None:
        return "-"
    return datetime.fromtimestamp(timestamp / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
