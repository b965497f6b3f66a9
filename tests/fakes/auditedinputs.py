"""An audit of topics with a transform’s inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from connectctl.ops.audit.input_partitions import InputPartition
from connectctl.ops.audit.occurrences import MatchTotals
from connectctl.ops.audit.plan import AuditRequest
from connectctl.ops.audit.scan import PartitionRange, PartTotals
from connectctl.ops.audit.summary import Summary
from connectctl.ops.audit.verdict import Audit, findings_of

SPAN = PartitionRange("in", 0, 0, 20, 20, 20, whole=True)


REQUEST = AuditRequest(("out",), inputs=("in",), group="g")


def audited(
    *found: Any, request: AuditRequest = REQUEST, part: InputPartition | None = None
) -> Audit:
    summary = Summary(shown=request.shown)
    summary.reads = {}
    summary.totals.records["committed"] = 0
    summary.add(PartTotals("out", 0, 0, 20, 20))
    summary.add(MatchTotals(clean=3, reads={("in", 0, 1): [10, 0]}))
    for each in found:
        summary.add(each)
    partition = part or InputPartition(SPAN, 10, 10, 10)
    whole = Audit("c", request, summary, 0.0, inputs=(partition,))
    return replace(whole, findings=findings_of(whole))
