"""An audit of an archive: as JSON, and as a table of its partitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from connectctl.cli.output import terminal
from connectctl.ops.audit.archive import ArchiveAudit, ArchivePartition
from connectctl.ops.audit.verdict import AuditVerdict
from connectctl.ops.core.finding import Finding


def as_json(
    audit: ArchiveAudit, verdict: AuditVerdict, findings: Iterable[Finding]
) -> dict[str, Any]:
    """Return the JSON, without the envelope."""
    orphans, size = audit.orphans
    return {
        "clusterId": audit.cluster_id,
        "comparesContent": False,
        "directory": audit.directory,
        "manifest": audit.manifest,
        "group": audit.group,
        "verdict": verdict.value,
        "files": len(audit.files),
        "rows": sum(each.rows for each in audit.files),
        "bytes": sum(each.bytes for each in audit.files),
        "missing": sum(each.records for each in audit.missing.values()),
        "orphans": {"files": orphans, "bytes": size},
        "partitions": [_partition(audit, each) for each in audit.partitions],
        "findings": [finding.as_json() for finding in findings],
    }


def _partition(audit: ArchiveAudit, each: ArchivePartition) -> dict[str, Any]:
    lost = audit.missing.get(each.topic_partition)
    return {
        "topic": each.topic_partition.topic,
        "partition": each.topic_partition.partition,
        "state": "unknown" if each.unknown else "none" if each.committed is None else "committed",
        "committedOffset": each.committed,
        "files": len(each.files),
        "rows": sum(file.rows for file in each.files),
        "first": each.files[0].first if each.files else None,
        "last": max(file.last for file in each.files) if each.files else None,
        "missing": lost.records if lost else 0,
        "notProvable": each.unprovable(audit.contents),
    }


def show(audit: ArchiveAudit, verdict: AuditVerdict) -> None:
    data = as_json(audit, verdict, ())
    rows = [
        [
            f"{each['topic']}-{each['partition']}",
            f"{each['files']:,}",
            f"{each['rows']:,}",
            *("-" if each[name] is None else str(each[name]) for name in ("first", "last")),
            each["state"] if each["committedOffset"] is None else str(each["committedOffset"]),
            f"{each['missing']:,}" + (" !" if each["missing"] else ""),
        ]
        for each in data["partitions"]
    ]
    terminal.print_wrapped(
        f"{audit.manifest}: {verdict.value} ({data['rows']:,} rows in {data['files']:,} files)"
    )
    terminal.print_wrapped(
        "Compared: files, rows and offsets; not the content of keys, values and headers."
    )
    columns = ["PARTITION", "FILES", "ROWS", "FIRST", "LAST", "COMMITTED", "MISSING"]
    terminal.table(columns, rows, empty=f"{audit.manifest} names no file.")
