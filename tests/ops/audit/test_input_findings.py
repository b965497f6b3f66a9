"""Findings of a comparison with inputs: what is wrong is named, and what is unknown keeps the
verdict undecided.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from connectctl.ops.audit import field_extractor
from connectctl.ops.audit.input_partitions import InputPartition
from connectctl.ops.audit.occurrences import MatchTotals
from connectctl.ops.audit.to_json import as_json
from connectctl.ops.audit.verdict import Audit, AuditVerdict
from connectctl.ops.audit.violations import Violation
from fakes.auditedinputs import REQUEST, SPAN, audited


def ids(audit: Audit) -> list[str]:
    return [finding.id for finding in audit.findings]


def violation(kind: str, number: int = 0, **more: Any) -> Violation:
    return Violation(
        kind,
        f"k{number}",
        "out",
        0,
        number,
        records=1,
        detail="2 in the output, 1 in the inputs",
        **more,
    )


def test_what_is_as_it_should_be_is_exactly_once() -> None:
    audit = audited()
    assert (ids(audit), audit.verdict, audit.passed) == ([], AuditVerdict.EXACTLY_ONCE, True)
    assert as_json(audit)["sourcePartitions"] == 3


def test_each_kind_of_violation_has_its_finding_and_its_verdict() -> None:
    for kind, id_, verdict in (
        ("duplicate", "AUDIT021", AuditVerdict.DUPLICATES),
        ("lost", "AUDIT022", AuditVerdict.GAPS),
        ("torn", "AUDIT023", AuditVerdict.TORN),
        ("unmatched", "AUDIT026", AuditVerdict.UNDECIDED),
    ):
        audit = audited(violation(kind))
        assert (ids(audit), audit.verdict, audit.passed) == ([id_], verdict, False)


def test_the_first_ten_are_named_with_their_places_and_the_others_counted() -> None:
    audit = audited(*(violation("duplicate", n) for n in range(25)))
    (message,) = (finding.message for finding in audit.findings)
    assert message.startswith(
        "25 records in out more often than in in: key 'k0' at out-0@0 (2 in the output, 1 in the "
        "inp"
    )
    assert message.count("out-0@") == 10
    assert message.endswith("; and 15 records more.")


def test_numbers_of_a_sequence_are_named_too() -> None:
    request = replace(
        REQUEST,
        sequence=field_extractor.sequence_spec("$.seq"),
        by=field_extractor.by_spec("$.task"),
    )
    audit = audited(violation("lost", 4, first=3, last=5), request=request)
    assert "task 'k4' 3 to 5 at out-0@4" in audit.findings[0].message


def test_an_unknown_offset_is_not_taken_for_none() -> None:
    unknown = audited(
        part=InputPartition(SPAN, 0, 20, unknown="an open transaction holds its offset")
    )
    assert (ids(unknown), unknown.verdict) == (["AUDIT024"], AuditVerdict.UNDECIDED)
    assert (
        "records of in-0 the group g has processed: an open transaction"
        in unknown.findings[0].message
    )
    none = audited(part=InputPartition(SPAN, 0, 0))
    assert (ids(none), none.verdict) == (["AUDIT025"], AuditVerdict.UNDECIDED)
    assert "g has committed no offset of in" in none.findings[0].message


def test_what_is_not_yet_processed_is_said_and_is_not_wrong() -> None:
    audit = audited(MatchTotals(reads={("in", 0, 3): [4, 0]}))
    assert (ids(audit), audit.passed) == (["AUDIT027"], True)
    assert audit.findings[0].message == "4 records are not yet processed: in-0 4."


def test_records_without_a_key_leave_it_undecided() -> None:
    audit = audited(MatchTotals(reads={("in", 0, 1): [4, 2]}))
    assert (ids(audit), audit.verdict) == (["AUDIT014"], AuditVerdict.UNDECIDED)
    assert audit.findings[0].message == "2 records of the inputs have no value at the record key."
