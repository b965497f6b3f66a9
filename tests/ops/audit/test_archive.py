"""What is audited of an archive: which offsets are to be looked for in the input, and what is
found.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
from connectctl.cli.views import audit_archive as view
from connectctl.ops.audit.archive import (
    ArchiveAudit,
    FileContent,
    MissingRecords,
    archive_partitions,
    to_read,
)
from connectctl.ops.audit.archive_findings import findings_of_archive
from connectctl.ops.audit.verdict import AuditVerdict, verdict_of
from connectctl.ops.kafka.group_positions import GroupPositions
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import OffsetRange
from connectctl.ops.task_runtime.connectors.parquet_archive.manifest import ArchivedFile

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/schema/archive-audit.json").read_text())
PLACE = TopicPartition("in", 0)


def file(first: int, last: int, rows: int | None = None) -> ArchivedFile:
    count = last - first + 1 if rows is None else rows
    return ArchivedFile("in", 0, first, last, count, 100, f"in/0/{first}-{last}.parquet")


def audited(
    *files: ArchivedFile,
    committed: int | None = 20,
    later: int | None = None,
    unknown: str | None = None,
    first: int = 0,
    end: int = 20,
    topic: bool = True,
    **more: Any,
) -> ArchiveAudit:
    """An audit of ``in-0`` whose files have what the manifest says."""
    before = GroupPositions(
        {} if committed is None else {PLACE: committed}, {PLACE: unknown} if unknown else {}
    )
    after = before if later is None else GroupPositions({PLACE: later})
    extents = {"in": {0: OffsetRange(first, end, end)}} if topic else {}
    partitions = archive_partitions(files, extents, before, after)
    contents = {
        each.name: FileContent(each.rows, each.rows, each.first, each.last, True) for each in files
    }
    sizes = {each.name: each.bytes for each in files}
    found = ArchiveAudit("k", "/d", "a-archive", "connect-a", partitions, sizes, contents)
    return replace(found, **more)


def ids(audit: ArchiveAudit) -> list[str]:
    findings = findings_of_archive(audit)
    envelope = {"apiVersion": "connectctl/v1", "kind": "ArchiveAudit"}
    jsonschema.validate(envelope | view.as_json(audit, verdict_of(findings), findings), SCHEMA)
    return [finding.id for finding in findings]


def ranges(audit: ArchiveAudit) -> list[tuple[int, int]]:
    return [(each.start, each.until) for each in to_read(audit.partitions, audit.contents)]


def verdict(audit: ArchiveAudit) -> AuditVerdict:
    return verdict_of(findings_of_archive(audit))


def test_an_archive_with_every_offset_proves_itself() -> None:
    audit = audited(file(0, 9), file(10, 19))
    assert (ids(audit), ranges(audit), verdict(audit)) == ([], [], AuditVerdict.EXACTLY_ONCE)


def test_the_input_is_read_where_no_file_has_offsets() -> None:
    assert ranges(audited(file(2, 4), file(10, 17))) == [(0, 2), (5, 10), (18, 20)]
    # markers, or records that are missing
    assert ranges(audited(file(0, 9, rows=7), file(10, 19))) == [(0, 10)]
    assert ranges(audited()) == [(0, 20)]
    assert ranges(audited(file(2, 4), committed=5, first=1)) == [(1, 2)]
    assert ranges(audited(file(0, 9), file(5, 12), committed=13)) == []


def test_what_the_input_has_and_no_file_has_is_missing() -> None:
    audit = audited(file(0, 9), missing={PLACE: MissingRecords(3, 12, 15)})
    assert (ids(audit), verdict(audit)) == (["AUDIT031"], AuditVerdict.GAPS)
    assert (
        "3 records below the committed offset of connect-a are in no file: offsets 12 to 15"
        in findings_of_archive(audit)[0].message
    )


def test_offsets_that_retention_removed_from_the_input_prove_nothing() -> None:
    audit = audited(file(0, 4), file(6, 19), first=10)
    assert (ids(audit), verdict(audit), ranges(audit)) == (["AUDIT033"], AuditVerdict.UNDECIDED, [])
    assert ids(audited(file(0, 19), first=10)) == []
    assert ids(audited(file(10, 19), first=10)) == []


def test_missing_and_changed_files_are_named() -> None:
    good = audited(file(0, 9), file(10, 19))
    names = [each.name for each in good.files]
    assert ids(replace(good, sizes={names[0]: 100})) == ["AUDIT028"]
    for changed in ({"rows": 9, "offsets": 9}, {"first": 1}, {"own": False}):
        contents = {**good.contents, names[1]: good.contents[names[1]]._replace(**changed)}
        audit = replace(good, contents=contents)
        assert "AUDIT029" in ids(audit)
        assert names[1] in findings_of_archive(audit)[0].message
    assert ids(replace(good, sizes=dict.fromkeys(names, 99))) == ["AUDIT029"]
    unread = replace(good, contents={names[0]: good.contents[names[0]]})
    assert (ids(unread), ranges(unread)) == (["AUDIT029"], [(10, 20)])


def test_files_that_overlap_and_rows_that_are_twice_are_duplicates() -> None:
    assert (ids(audited(file(0, 9), file(5, 19))), verdict(audited(file(0, 9), file(5, 19)))) == (
        ["AUDIT030"],
        AuditVerdict.DUPLICATES,
    )
    audit = audited(file(0, 19))
    twice = {file(0, 19).name: FileContent(20, 19, 0, 19, True)}
    assert (ids(replace(audit, contents=twice)), ranges(replace(audit, contents=twice))) == (
        ["AUDIT030"],
        [(0, 20)],
    )


def test_an_archive_ahead_of_its_group_is_torn_and_one_that_is_running_is_not() -> None:
    assert (ids(audited(file(0, 9), committed=5)), verdict(audited(file(0, 9), committed=5))) == (
        ["AUDIT032"],
        AuditVerdict.TORN,
    )
    assert ids(audited(file(0, 9), committed=5, later=10)) == []


def test_an_unknown_offset_and_none_at_all_leave_it_undecided() -> None:
    for audit, found in (
        (audited(file(0, 9), committed=None), "AUDIT025"),
        (audited(file(0, 9), committed=None, unknown="not authorized"), "AUDIT024"),
        (audited(file(0, 9), committed=30), "AUDIT024"),  # the topic was made again
        (audited(file(0, 9), topic=False), "AUDIT024"),
        (audited(committed=None), "AUDIT020"),
    ):
        assert (ids(audit), verdict(audit)) == ([found], AuditVerdict.UNDECIDED)


def test_orphans_are_reported_and_are_not_wrong() -> None:
    audit = audited(file(0, 19), orphans=(2, 1000))
    assert (ids(audit), verdict(audit)) == (["AUDIT034"], AuditVerdict.EXACTLY_ONCE)
