"""From what was summary to a verdict, findings and an exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from connectctl.ops.audit import field_extractor
from connectctl.ops.audit.offset_positions import Offsets
from connectctl.ops.audit.plan import AuditRequest
from connectctl.ops.audit.scan import PartTotals
from connectctl.ops.audit.sequences import Committed, Read, SourceTotals
from connectctl.ops.audit.summary import Summary
from connectctl.ops.audit.to_json import as_json
from connectctl.ops.audit.verdict import Audit, AuditVerdict, findings_of, matching, unseen
from connectctl.ops.audit.violations import KINDS, Violation

WISH = AuditRequest(("t",), field_extractor.sequence_spec("$.seq"))


def audit(
    *found: Any, request: AuditRequest = WISH, records: int = 10, read: int | None = 10, **more: Any
) -> Audit:
    summary = Summary()
    summary.totals.records["committed"] = summary.totals.readable = records
    summary.add(PartTotals("t", 0, 0, 12, 12))
    if read is not None:
        summary.add(Read("t", 0, read))
    for each in found:
        summary.add(each)
    known = Audit("c", request, summary, 1000.0, **more)
    return replace(known, findings=findings_of(known))


def source(**offences: int) -> SourceTotals:
    return replace(SourceTotals("t", "s", 10, lowest=0, highest=9), **offences)  # type: ignore[arg-type]


def violation(kind: str, **more: Any) -> Violation:
    return Violation(
        kind,
        topic="t",
        partition=0,
        offset=3,
        records=2,
        timestamp=999_000,
        producer_id=1,
        epoch=0,
        **more,
    )


def test_nothing_wrong_is_exactly_once() -> None:
    found = audit(source())
    assert (found.verdict, found.passed, found.findings) == (AuditVerdict.EXACTLY_ONCE, True, ())


@pytest.mark.parametrize(
    ("found", "verdict", "rule"),
    [
        (source(duplicates=1), "duplicates", "AUDIT001"),
        (source(gaps=1), "gaps", "AUDIT002"),
        (source(torn=1), "torn", "AUDIT004"),
        (source(lost=1), "gaps", "AUDIT005"),
        (violation("torn-transaction"), "torn", "AUDIT006"),
        (violation("unclear-transaction"), "undecided", "AUDIT007"),
        (violation("missing-batches"), "gaps", "AUDIT009"),
        (violation("stale-batch"), "duplicates", "AUDIT010"),
        (Read("t", 0, 0, unnumbered=3), "undecided", "AUDIT014"),
    ],
)
def test_every_offence_has_a_verdict_and_fails(found: Any, verdict: str, rule: str) -> None:
    judged = audit(found)
    assert (judged.verdict, [f.id for f in judged.findings], judged.passed) == (
        verdict,
        [rule],
        False,
    )


@pytest.mark.parametrize("headers_only", [False, True])
def test_nothing_to_look_at_is_undecided_and_fails(headers_only: bool) -> None:
    request = AuditRequest(
        ("t",), None if headers_only else WISH.sequence, headers_only=headers_only
    )
    judged = audit(records=0, read=None if headers_only else 0, request=request)
    assert (judged.verdict, judged.passed) == (AuditVerdict.UNDECIDED, False)
    assert "AUDIT020" in {f.id for f in judged.findings}


def test_records_that_are_lost_are_found_where_there_is_no_record_left() -> None:
    assert audit(source(lost=1), records=0, read=0).verdict == AuditVerdict.GAPS


def test_the_worst_names_the_verdict() -> None:
    assert audit(source(gaps=1, duplicates=1)).verdict == "duplicates"
    assert audit(source(gaps=1, duplicates=1, torn=1)).verdict == "torn"
    assert audit(source(gaps=1), violation("unclear-transaction")).verdict == "gaps"


def test_disorder_is_exactly_once_and_yet_fails() -> None:
    judged = audit(source(reordered=1))
    assert (judged.verdict, judged.passed) == (AuditVerdict.EXACTLY_ONCE, False)


def test_layers_that_disagree_decide_nothing() -> None:
    judged = audit(source(), read=9)
    assert (judged.verdict, [f.id for f in judged.findings]) == (
        AuditVerdict.UNDECIDED,
        ["AUDIT008"],
    )


def test_an_open_transaction_is_told_and_harms_nothing_until_others_commit_behind_it() -> None:
    young, old = violation("open-transaction"), violation("open-transaction")._replace(timestamp=0)
    assert [(f.severity, audit(young).passed) for f in audit(young).findings] == [("info", True)]
    assert [f.severity for f in audit(old).findings] == ["warning"]
    behind = audit(young, records=10)
    behind.summary.totals.readable = 7
    assert "AUDIT012" in {f.id for f in findings_of(behind)}


def test_without_a_sequence_nothing_is_decided_unless_headers_are_enough() -> None:
    nothing = audit(request=AuditRequest(("t",)))
    assert (nothing.verdict, nothing.passed) == (AuditVerdict.UNDECIDED, False)
    headers = audit(request=AuditRequest(("t",), headers_only=True), read=None)
    assert (headers.verdict, headers.passed) == (AuditVerdict.HEADERS_IN_ORDER, True)
    assert headers.findings[0].message.endswith(
        "were checked; records were not read (--headers-only)."
    )
    assert not audit(
        violation("stale-batch"), request=AuditRequest(("t",), headers_only=True), read=None
    ).passed
    assert not audit(request=AuditRequest(("t",)), records=0, read=0).passed


def test_what_was_not_read_or_not_compared_is_undecided() -> None:
    assert audit(read=None, unread="because").verdict is AuditVerdict.UNDECIDED
    request = replace(WISH, connector="c")
    assert (
        audit(source(), request=request, offsets=Offsets(why="because")).verdict
        is AuditVerdict.UNDECIDED
    )


@pytest.mark.parametrize(
    ("positions", "ids"),
    [
        ((55, 55), []),
        ((65, 65), []),
        ((50, 58), []),
        ((54, 54), ["AUDIT019"]),
        ((56, 59), ["AUDIT019"]),
        (None, []),
    ],
)
def test_lines_add_up_to_the_position_with_either_end(
    positions: tuple[int, int] | None, ids: list[str]
) -> None:
    """Ten lines that are 55 characters with LF; with CR LF they are 65."""
    judged = audit(
        Read("t", 0, 0, characters=55), request=replace(WISH, connector="c"), positions=positions
    )
    assert [f.id for f in judged.findings] == ids


def test_a_source_partition_without_a_record_is_lost_up_to_its_offset() -> None:
    offsets = Offsets({"s": Committed(9, 9), "u": Committed(4, 4)}, {"u": ({"id": "u"}, {"n": 4})})
    summary = Summary()
    summary.add(SourceTotals("t", "s", 10, tracked=True))
    (lost,) = unseen(summary, offsets, None)
    assert (lost.source, lost.lost) == ("u", 5)


def test_offsets_that_are_named_otherwise_than_records_are_not_compared() -> None:
    offsets, summary = Offsets({"0": Committed(9, 9)}), Summary()
    assert matching(summary, offsets) == offsets
    summary.add(SourceTotals("t", "task-0", 10))
    assert "use --by" in str(matching(summary, offsets).why)
    summary.add(SourceTotals("t", "0", 10, tracked=True))
    assert matching(summary, offsets) == offsets


def test_only_the_worst_are_kept_and_all_are_counted() -> None:
    summary = Summary(shown=3)
    for n in range(100):
        summary.add(violation("gap")._replace(records=n, offset=n))
        summary.add(SourceTotals("t", str(n), 1, gaps=n))
    assert [o.records for o in summary.evidence] == [99, 98, 97]
    assert [t.gaps for t in summary.sources] == [99, 98, 97]
    assert (summary.found["gap"], summary.sums["gaps"], summary.source_partitions) == (
        100,
        4950,
        100,
    )


def test_what_tasks_gather_adds_up_to_what_one_gathers() -> None:
    things = [
        *(
            violation(kind)._replace(records=n, timestamp=n * 99_000)
            for n, kind in enumerate([*KINDS, *KINDS])
        ),
        *(SourceTotals("t", str(n), 2, gaps=n, tracked=n % 3 == 0) for n in range(9)),
        *(PartTotals("t", n, 0, 9, 9, plain=n) for n in range(3)),
        *(Read("t", n % 2, n) for n in range(4)),
    ]
    one, whole = Summary(shown=4), Summary(shown=4)
    for each in things:
        one.add(each)
    for part in (things[:7], things[7:25], things[25:]):
        task = Summary(shown=4)
        for each in part:
            task.add(each)
        whole.merge(json.loads(json.dumps(task.as_row())))
    assert whole.evidence == one.evidence
    assert whole.sources == one.sources
    assert (whole.sums, whole.found, whole.weights, whole.parts) == (
        one.sums,
        one.found,
        one.weights,
        one.parts,
    )
    assert (whole.reads, whole.timeline.slots) == (one.reads, one.timeline.slots)
    assert whole.source_partitions == one.source_partitions


def test_the_answer_has_every_field_of_the_contract() -> None:
    data = as_json(audit(source(torn=2), *(violation(kind) for kind in KINDS)))
    assert {
        "clusterId",
        "topics",
        "verdict",
        "records",
        "transactions",
        "duplicates",
        "gaps",
        "reordered",
        "torn",
    } <= set(data)
    assert data["torn"] == 4
    assert data["bySourcePartition"][0]["partition"] == {"key": "s"}
