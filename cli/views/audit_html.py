"""An audit as one page: the request, the verdict, numbers, plots, evidence, and what the findings
mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from connectctl.cli.output.html_page import grouped, render, sections
from connectctl.cli.output.html_plots import Series, short, size_bars, timelines
from connectctl.cli.views.html_origin import PageOrigin
from connectctl.ops.audit.plan import Bound
from connectctl.ops.audit.to_json import as_json
from connectctl.ops.audit.verdict import Audit
from connectctl.ops.audit.violations import KINDS
from connectctl.ops.config.masking import addresses_masked
from connectctl.ops.core.finding import counted, some_of
from connectctl.ops.core.times import utc

_TIMED = {
    "committed": "Transactions committed",
    "aborted": "Transactions aborted",
    "gaps": "Records missing",
    "duplicates": "Duplicate records",
    "torn": "Torn records",
}
"""The plots over time, with their titles; counts that are always zero are named below the plots."""
_CLASS = {"exactly-once": "good", "undecided": "doubt", "headers-in-order": "good"}
_NAMED = 8
"""The most topics in the title."""
_PARTITIONS = 500


def page(audit: Audit, origin: PageOrigin) -> str:
    """Return the page of an audit."""
    data, findings = as_json(audit), grouped(audit.findings)
    time, never = _timelines(audit)
    names = ("committed", "aborted", "open")
    headings = {
        "numbers": "Numbers",
        "time": "Over time",
        "sizes": "Records per transaction",
        "sources": "Source partitions" if data["bySourcePartition"] else "",
        "inputs": "Inputs" if data["inputs"] else "",
        "partitions": "Partitions that were audited",
        "evidence": "Evidence" if data["evidence"] else "",
    }
    return render(
        "audit.html",
        title=f"Audit of {some_of(data['topics'], _NAMED)}",
        origin=origin,
        sections=sections(
            findings, **{name: heading for name, heading in headings.items() if heading}
        ),
        findings=findings,
        data=data,
        kind=_CLASS.get(data["verdict"], "bad"),
        read_records=audit.summary.reads is not None or audit.inputs is not None,
        finished=utc(audit.now * 1000),
        request=audit.request,
        why_no_sequence=audit.why_no_sequence,
        since=_bound(audit.request.since),
        until=_bound(audit.request.until),
        numbers=[
            [what, *(f"{data[what][name]:,}" for name in names)]
            for what in ("transactions", "records")
        ],
        time=time,
        never=never,
        size_bars=_sizes(audit),
        inputs_caption=_inputs_caption(data["inputs"]) if data["inputs"] else "",
        parts=sorted(audit.summary.parts, key=lambda p: p.topic_partition),
        reads=audit.summary.reads or {},
        most=_PARTITIONS,
        cut=_cut(len(audit.summary.parts)),
        evidence=list(_evidence(audit, data["evidence"])),
    )


def _bound(bound: Bound | None) -> str:
    if bound is None:
        return ""
    return (
        f"offset {bound.offset:,}"
        if bound.timestamp is None
        else f"{utc(bound.timestamp, 'milliseconds')} UTC"
    )


def _timelines(audit: Audit) -> tuple[Mapping[str, Any] | None, str]:
    """Return the plots, None if every count is zero, and the names of the counts that are zero at
    any time.
    """
    both = [audit.summary.totals.timeline, audit.summary.timeline]
    while len({t.width for t in both if t.slots}) > 1:
        min(both, key=lambda t: t.width).double()
    width = max((t.width for t in both if t.slots), default=both[0].width)
    counts: dict[str, Counter[int]] = {name: Counter() for name in _TIMED}
    for number, found in (slot for timeline in both for slot in timeline.slots.items()):
        for name in _TIMED.keys() & found.keys():
            counts[name][number] += found[name]
    series = [
        Series(name, title, counts[name])
        for name, title in _TIMED.items()
        if any(counts[name].values())
    ]
    never = [title.lower() for name, title in _TIMED.items() if not any(counts[name].values())]
    return timelines(series, width) if series else None, ", ".join(never)


def _sizes(audit: Audit) -> list[tuple[str, int, str]]:
    """Return a bar for each power of two between the fewest and the most records of a
    transaction.
    """
    counts = audit.summary.totals.sizes.counts
    powers = range(min(counts), max(counts) + 1) if counts else range(0)
    return size_bars([(_power(power), counts.get(power, 0)) for power in powers])


def _power(power: int) -> str:
    shown = short if power > 20 else "{:,}".format
    return f"{shown(1 << power)}–{shown((2 << power) - 1)}" if power else "0–1"


def _inputs_caption(inputs: Mapping[str, Any]) -> str:
    absent = "left out or missing" if inputs["subset"] else "missing"
    missing = (
        f"group {inputs['group']}: {inputs['missing']:,} processed records are not in the "
        f"output ({absent})"
    )
    return missing + _cut(len(inputs["partitions"]))


def _cut(total: int) -> str:
    return f"; the first {_PARTITIONS:,} of {total:,}" if total > _PARTITIONS else ""


def _evidence(
    audit: Audit, evidence: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, object]]:
    """Yield the worst evidence of each kind as a table of the columns that have values."""
    for kind, same_kind in groupby(evidence, key=lambda e: str(e["kind"])):
        rows = [_violation(each) for each in same_kind]
        found, weight = audit.summary.found.get(kind, len(rows)), audit.summary.weights.get(kind, 0)
        columns = [
            (name, style) for name, style in _COLUMNS.items() if any(name in row for row in rows)
        ]
        yield {
            "heading": f"{KINDS.get(kind, kind)}: {counted(found, 'place')}, {counted(weight, 'record')}",
            "columns": columns,
            "rows": [[row.get(name, "-") for name, _ in columns] for row in rows],
            "caption": f"the worst {len(rows):,} of {found:,}"
            if found > len(rows)
            else f"all {len(rows):,}",
        }


_COLUMNS = {
    "place": "code",
    "source": "code",
    "numbers": "nowrap",
    "records": "n",
    "first copy": "nowrap",
    "when (UTC)": "nowrap",
    "producer, epoch": "nowrap",
    "detail": "long",
}
"""The columns of evidence, with the style of their cells."""


def _violation(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the cells of a violation by column, without those for which it has no value."""
    row = {"records": f"{found['records']:,}"}
    topic, partition = found.get("topic", ""), found.get("partition")
    if partition is not None or topic:
        row["place"] = (
            topic if partition is None else f"{topic}-{partition} @ {found.get('offset', '-')}"
        )
    for name in ("source", "detail"):
        if name in found:
            row[name] = addresses_masked(str(found[name]))
    first, last = found.get("first"), found.get("last")
    if first is not None:
        row["numbers"] = f"{first}" if last in (first, None) else f"{first} … {last}"
    if (other := found.get("otherOffset")) is not None:
        other_partition = (
            f"{found['otherTopic']}-{found.get('otherPartition', '-')} @ "
            if "otherTopic" in found
            else ""
        )
        row["first copy"] = f"{other_partition}{other}"
    if "timestamp" in found:
        row["when (UTC)"] = utc(found["timestamp"], "milliseconds")
    if "producerId" in found:
        row["producer, epoch"] = f"{found['producerId']}, {found.get('producerEpoch', '-')}"
    return row
