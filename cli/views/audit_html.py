"""An audit as one page: the request, the verdict, numbers, plots, evidence, and what the findings mean."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from connectctl.cli.output import html_findings
from connectctl.cli.output.html_page import Column, Html, Section, code, details, document, joined, paragraph, table
from connectctl.cli.output.html_plots import Series, bars, short, timelines
from connectctl.cli.views.html_origin import PageOrigin
from connectctl.ops.audit.plan import AuditRequest, Bound
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
_OPENED = 20
"""Rows of evidence of one kind that are open from the start."""


def page(audit: Audit, origin: PageOrigin) -> str:
    data = as_json(audit)
    names = data["topics"]
    found, meanings = html_findings.sections(audit.findings)
    counts = ", ".join(f"{data[n]:,} {what}" for n, what in _WRONG)
    kind = _CLASS.get(data["verdict"], "bad")
    seen = "" if audit.summary.reads is not None or audit.inputs is not None else " Only batch headers were read."
    top = [
        Html(f'<p class="verdict {kind}">{data["verdict"]} <small>{counts}.{seen}</small></p>'),
        origin.shown(*_request(audit.request, audit)),
    ]
    sections = [
        found,
        Section("numbers", "Numbers", [_numbers(data)]),
        Section("time", "Over time", list(_timelines(audit))),
        Section("sizes", "Records per transaction", [_sizes(audit)]),
        *_sources(data["bySourcePartition"], data["sourcePartitions"]),
        *_inputs(data["inputs"]),
        _partitions(audit),
        *_evidence(audit, data["evidence"]),
        *meanings,
    ]
    return document(f"Audit of {some_of(names, _NAMED)}", top, sections)


_WRONG = (("duplicates", "duplicates"), ("gaps", "missing"), ("reordered", "out of order"), ("torn", "torn"))


def _request(request: AuditRequest, audit: Audit) -> Iterator[tuple[str, object]]:
    """Yield the request: which records were audited, and how."""
    yield "Finished", f"{utc(audit.now * 1000)} UTC"
    if request.sequence is not None:
        yield "Sequence", code(request.sequence.text)
    elif request.headers_only:
        yield "Sequence", "none: only batch headers were requested"
    elif audit.inputs is None:
        yield "Sequence", f"not set{f': {audit.why_no_sequence}' if audit.why_no_sequence else ''}"
    if not request.headers_only and (request.sequence is not None or audit.inputs is not None):
        yield "By", code(request.source.text) if request.by else request.source.text
    if request.first is not None:
        yield "First number", f"{request.first}"
    if request.together:
        yield "Topics", "all topics as one stream"
    if request.connector:
        field = f", by the field {request.offset_field} of its source offsets" if request.offset_field else ""
        yield "Connector", f"{request.connector}{field}"
    if request.inputs:
        yield "Inputs", f"{', '.join(request.inputs)}; read by the group {request.group}"
    yield "Range", f"{_bound(request.since, 'the first record')} to {_bound(request.until, 'the end of the topics')}"


def _bound(bound: Bound | None, otherwise: str) -> str:
    if bound is None:
        return otherwise
    return f"offset {bound.offset:,}" if bound.timestamp is None else f"{utc(bound.timestamp, 'milliseconds')} UTC"


def _numbers(data: Mapping[str, Any]) -> Html:
    names = ("committed", "aborted", "open")
    rows = [[what, *(f"{data[what][name]:,}" for name in names)] for what in ("transactions", "records")]
    columns = [Column("counted"), *(Column(name, "n") for name in names)]
    read = "records were not read" if data["recordsRead"] is None else f"{data['recordsRead']:,} records were read"
    producers = f"{data['producers']:,} producer ids, added up over the partitions"
    return joined(
        [table(columns, rows, "by the batch headers", cards=False), paragraph(f"{read}; {producers}.", "dim")]
    )


def _timelines(audit: Audit) -> Iterator[Html]:
    both = [audit.summary.totals.timeline, audit.summary.timeline]
    while len({t.width for t in both if t.slots}) > 1:
        min(both, key=lambda t: t.width).double()
    width = max(t.width for t in both if t.slots) if any(t.slots for t in both) else both[0].width
    slots = [slot for timeline in both for slot in timeline.slots.items()]
    counts: dict[str, dict[int, int]] = {name: {} for name in _TIMED}
    for number, found in slots:
        for name in _TIMED.keys() & found.keys():
            counts[name][number] = counts[name].get(number, 0) + found[name]
    series = [Series(name, title, counts[name]) for name, title in _TIMED.items() if any(counts[name].values())]
    if series:
        yield timelines(series, width)
    if never := [_TIMED[name].lower() for name in _TIMED if not any(counts[name].values())]:
        yield paragraph(f"None at any time: {', '.join(never)}.", "dim")


def _sizes(audit: Audit) -> Html:
    counts = audit.summary.totals.sizes.counts
    if not counts:
        return paragraph("No transaction.", "dim")
    rows = [(_power(power), counts.get(power, 0)) for power in range(min(counts), max(counts) + 1)]
    return bars(("records", "transactions"), rows, "transactions by their records, in powers of two")


def _power(power: int) -> str:
    shown = short if power > 20 else "{:,}".format
    return f"{shown(1 << power)}–{shown((2 << power) - 1)}" if power else "0–1"


def _sources(sources: Sequence[Mapping[str, Any]], count: int) -> Iterator[Section]:
    if not sources:
        return
    names = ("records", "first", "last", "duplicates", "gaps", "reordered", "torn")
    rows = [
        [code(_json_text(s["partition"])), *("-" if s[n] is None else f"{s[n]:,}" for n in names),
         "-" if s["committedOffset"] is None else code(_json_text(s["committedOffset"]))]
        for s in sources
    ]  # fmt: skip
    caption = f"the worst {len(rows):,} of {count:,}" if count > len(rows) else "all of them"
    columns = [Column("partition", "code"), *(Column(name, "n") for name in names), Column("committed offset", "code")]
    yield Section("sources", "Source partitions", [table(columns, rows, caption)])


def _inputs(inputs: Mapping[str, Any] | None) -> Iterator[Section]:
    if inputs is None:
        return
    numbers = ("processed", "notYetProcessed", "unknown")
    rows = []
    for part in inputs["partitions"][:_PARTITIONS]:
        offset = part["state"] if part["committedOffset"] is None else f"{part['committedOffset']:,}"
        rows.append([f"{part['topic']}-{part['partition']}", offset, *(f"{part[name]:,}" for name in numbers)])
    heads = ("committed offset", "processed", "not yet processed", "unknown")
    columns = [Column("partition", "code"), *(Column(head, "n") for head in heads)]
    absent = "left out or missing" if inputs["subset"] else "missing"
    caption = f"group {inputs['group']}: {inputs['missing']:,} processed records are not in the output ({absent})"
    listed = table(columns, rows, caption + _cut(len(rows), len(inputs["partitions"])))
    yield Section("inputs", "Inputs", [listed])


def _partitions(audit: Audit) -> Section:
    """Return the range read of each partition, so that the audit can be repeated."""
    reads = audit.summary.reads or {}
    parts = sorted(audit.summary.parts, key=lambda p: p.place)
    rows = []
    for part in parts[:_PARTITIONS]:
        read = reads.get(part.place)
        numbers = (part.start, part.until, part.stable, part.batches, part.markers, part.producers, part.plain)
        shown = [f"{number:,}" for number in numbers]
        rows.append([str(part.place), *shown, f"{read.records:,}" if read else "-"])
    heads = ("from", "until", "readable until", "batches", "markers", "producers", "outside transactions", "read")
    columns = [Column("partition", "code"), *(Column(head, "n") for head in heads)]
    caption = "offsets, and what was found between them" + _cut(len(rows), len(parts))
    listed = details(counted(len(parts), "partition"), table(columns, rows, caption), opened=len(parts) <= _OPENED)
    return Section("partitions", "Partitions that were audited", [listed])


def _cut(shown: int, total: int) -> str:
    return f"; the first {shown:,} of {total:,}" if shown < total else ""


def _evidence(audit: Audit, evidence: Sequence[Mapping[str, Any]]) -> Iterator[Section]:
    """Yield the worst evidence, grouped by kind."""
    if not evidence:
        return
    parts = []
    for kind, same_kind in groupby(evidence, key=lambda e: str(e["kind"])):
        rows = [list(_violation(each)) for each in same_kind]
        found, weight = audit.summary.found.get(kind, len(rows)), audit.summary.weights.get(kind, 0)
        heading = f"{KINDS.get(kind, kind)}: {counted(found, 'place')}, {weight:,} records"
        caption = f"the worst {len(rows):,} of {found:,}" if found > len(rows) else f"all {len(rows):,}"
        with_values = [n for n in range(len(_COLUMNS)) if any(row[n] is not _NOTHING for row in rows)]
        listed = table([_COLUMNS[n] for n in with_values], [[row[n] for n in with_values] for row in rows], caption)
        parts.append(details(heading, listed, opened=len(rows) <= _OPENED))
    yield Section("evidence", "Evidence", parts)


_COLUMNS = (
    Column("place", "code"),
    Column("source", "code"),
    Column("numbers", "nowrap"),
    Column("records", "n"),
    Column("first copy", "nowrap"),
    Column("when (UTC)", "nowrap"),
    Column("producer, epoch", "nowrap"),
    Column("detail", "long"),
)


_NOTHING = Html("-")
"""An empty cell, compared by identity: a source may also be named ``-``."""


def _violation(found: Mapping[str, Any]) -> Iterable[object]:
    topic, partition = found.get("topic", ""), found.get("partition")
    yield f"{topic}-{partition} @ {found.get('offset', '-')}" if partition is not None else topic or _NOTHING
    yield addresses_masked(str(found["source"])) if "source" in found else _NOTHING
    first, last = found.get("first"), found.get("last")
    yield _NOTHING if first is None else f"{first}" if last in (first, None) else f"{first} … {last}"
    yield f"{found['records']:,}"
    other = found.get("otherOffset")
    place = f"{found['otherTopic']}-{found.get('otherPartition', '-')} @ " if "otherTopic" in found else ""
    yield _NOTHING if other is None else f"{place}{other}"
    yield utc(found["timestamp"], "milliseconds") if "timestamp" in found else _NOTHING
    yield f"{found['producerId']}, {found.get('producerEpoch', '-')}" if "producerId" in found else _NOTHING
    yield addresses_masked(str(found["detail"])) if "detail" in found else _NOTHING


def _json_text(value: Any) -> str:
    return addresses_masked(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
