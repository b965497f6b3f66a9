"""An audit as tables: the verdict first, then numbers, source partitions and evidence."""

from __future__ import annotations

import json
from typing import Any

from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Block
from connectctl.ops.audit.to_json import as_json, named
from connectctl.ops.audit.verdict import Audit
from connectctl.ops.core.finding import counted
from connectctl.ops.core.times import utc


def show(audit: Audit, wide: bool) -> None:
    """Print the audit; ``wide`` adds the partitions of the topics, and the producers of the
    evidence.
    """
    data = as_json(audit)
    terminal.print_wrapped(
        f"{', '.join(data['topics'])}: {data['verdict']}{_headline(audit, data)}"
    )
    terminal.print_line("")
    terminal.blocks(
        [
            _numbers(audit, data),
            *_sources(audit),
            *_inputs(data, wide),
            *([_parts(audit)] if wide else []),
            *_evidence(data, wide),
        ]
    )


def _headline(audit: Audit, data: dict[str, Any]) -> str:
    """Return the counts of duplicates and gaps, for the first line."""
    if audit.summary.reads is None or (audit.request.sequence is None and audit.inputs is None):
        return ""
    counts = ((data["duplicates"], "duplicate"), (data["gaps"], "gap"))
    return f" ({', '.join(counted(n, word) for n, word in counts)})"


def _numbers(audit: Audit, data: dict[str, Any]) -> Block:
    rows = [
        [
            "transactions",
            *(f"{data['transactions'][name]:,}" for name in ("committed", "aborted", "open")),
        ],
        ["records", *(f"{data['records'][name]:,}" for name in ("committed", "aborted", "open"))],
    ]
    return Block(["", "COMMITTED", "ABORTED", "OPEN"], rows)


def _sources(audit: Audit) -> list[Block]:
    if audit.request.sequence is None or audit.summary.reads is None:
        return []
    rows = [
        [
            object_(named(audit, t)),
            f"{t.records:,}",
            "-" if t.lowest is None else str(t.lowest),
            "-" if t.highest is None else str(t.highest),
            *(_count(n) for n in (t.duplicates, t.gaps + t.lost, t.reordered, t.torn)),
        ]
        for t in audit.summary.sources
    ]
    more = audit.summary.source_partitions - len(rows)
    rows += [[f"… and {more:,} more", *[""] * 7]] if more > 0 else []
    columns = [
        "SOURCE PARTITION",
        "RECORDS",
        "FIRST",
        "LAST",
        "DUPLICATES",
        "GAPS",
        "REORDERED",
        "TORN",
    ]
    return [Block(columns, rows, "No source partition.")]


def _inputs(data: dict[str, Any], wide: bool) -> list[Block]:
    """Return what the group has processed of the inputs; with ``wide``, by partition."""
    inputs = data["inputs"]
    if inputs is None:
        return []
    numbers = ("processed", "notYetProcessed", "unknown")
    if not wide:
        rows = [[str(inputs["group"]), *(f"{inputs[name]:,}" for name in (*numbers, "missing"))]]
        return [Block(["GROUP", "PROCESSED", "NOT YET", "UNKNOWN", "NOT IN OUTPUT"], rows)]
    rows = []
    for part in inputs["partitions"]:
        offset = part["state"] if part["committedOffset"] is None else str(part["committedOffset"])
        rows.append(
            [
                f"{part['topic']}-{part['partition']}",
                offset,
                *(f"{part[name]:,}" for name in numbers),
            ]
        )
    return [Block(["INPUT", "COMMITTED OFFSET", "PROCESSED", "NOT YET", "UNKNOWN"], rows)]


def _count(number: int) -> str:
    return f"{number:,} !" if number else "0"


def _parts(audit: Audit) -> Block:
    reads = audit.summary.reads or {}
    rows = []
    for part in sorted(audit.summary.parts, key=lambda p: p.topic_partition):
        read = reads.get(part.topic_partition)
        numbers = (
            part.start,
            part.until,
            part.stable,
            part.batches,
            part.markers,
            part.producers,
            part.plain,
        )
        rows.append(
            [str(part.topic_partition), *map(str, numbers), str(read.records) if read else "-"]
        )
    columns = [
        "PARTITION",
        "FROM",
        "UNTIL",
        "STABLE",
        "BATCHES",
        "MARKERS",
        "PRODUCERS",
        "PLAIN",
        "READ",
    ]
    return Block(columns, rows)


def _evidence(data: dict[str, Any], wide: bool) -> list[Block]:
    rows = []
    for item in data["evidence"]:
        topic_partition = (
            f"{item.get('topic', '')}-{item['partition']}" if "partition" in item else "-"
        )
        row = [
            item["kind"],
            item.get("source", "-"),
            f"{item['first']} … {item.get('last', '-')}" if "first" in item else "-",
            f"{item['records']:,}",
            topic_partition,
            str(item.get("offset", "-")),
            str(item.get("otherOffset", "-")),
        ]
        who = f"{item['producerId']}/{item['producerEpoch']}" if "producerId" in item else "-"
        when = utc(item.get("timestamp"), "milliseconds", zone=True)
        rows.append([*row, *([when, who, item.get("detail", "")] if wide else [])])
    columns = ["OFFENCE", "SOURCE", "NUMBERS", "RECORDS", "WHERE", "OFFSET", "FIRST COPY"]
    columns += ["WHEN", "PRODUCER", "DETAIL"] if wide else []
    return [Block(columns, rows)] if rows else []


def object_(value: Any) -> str:
    """Return a source partition or offset as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
