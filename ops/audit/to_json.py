"""An audit for scripts: the answer as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectctl.ops.audit import input_partitions
from connectctl.ops.audit.sequences import SourceTotals
from connectctl.ops.audit.verdict import Audit, committed, torn


def as_json(audit: Audit) -> dict[str, Any]:
    summary, sums = audit.summary, audit.summary.sums
    return {
        "clusterId": audit.cluster_id,
        "topics": list(audit.request.topics),
        "verdict": audit.verdict.value,
        "records": summary.totals.records | {"committed": committed(summary)},
        "transactions": dict(summary.totals.transactions),
        "duplicates": sums["duplicates"],
        "gaps": sums["gaps"] + sums["lost"],
        "reordered": sums["reordered"],
        "torn": torn(summary),
        "recordsRead": None
        if summary.reads is None
        else sum(read.records for read in summary.reads.values()),
        "producers": sum(part.producers for part in summary.parts),
        "sourcePartitions": summary.source_partitions + summary.matched.clean,
        "bySourcePartition": [_source(audit, totals) for totals in summary.sources],
        "inputs": None
        if audit.inputs is None
        else input_partitions.as_json(
            audit.request.group, audit.request.subset, audit.inputs, summary.matched
        ),
        "evidence": [violation.as_json() for violation in summary.evidence],
        "findings": [finding.as_json() for finding in audit.findings],
    }


def named(audit: Audit, totals: SourceTotals) -> Mapping[str, Any]:
    """Return the source partition as its connector names it, or else by what the records name it
    with.
    """
    known = audit.offsets.shown.get(totals.source) if audit.offsets else None
    if known is not None:
        return dict(known[0])
    named_ = {audit.request.source.label: totals.source}
    return (
        {"topic": totals.stream} if totals.stream and len(audit.request.topics) > 1 else {}
    ) | named_


def _source(audit: Audit, totals: SourceTotals) -> dict[str, Any]:
    known = audit.offsets.shown.get(totals.source) if audit.offsets else None
    return {
        "partition": named(audit, totals),
        "records": totals.records,
        "duplicates": totals.duplicates,
        "gaps": totals.gaps + totals.lost,
        "reordered": totals.reordered,
        "torn": totals.torn,
        "first": totals.lowest,
        "last": totals.highest,
        "committedOffset": known[1] if known else None,
    }
