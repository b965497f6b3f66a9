"""Findings of an audit that compares a transform's output with its inputs: violations, and
unknowns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from connectctl.ops.audit import findings as rules
from connectctl.ops.audit.field_extractor import RecordPart
from connectctl.ops.audit.occurrences import ReadSide
from connectctl.ops.core.finding import Finding, counted, some_of

if TYPE_CHECKING:
    from connectctl.ops.audit.input_partitions import InputPartition
    from connectctl.ops.audit.plan import AuditRequest
    from connectctl.ops.audit.summary import Summary
    from connectctl.ops.audit.violations import Violation

NAMED = 10
"""The number of records of a kind that a finding names."""


def findings_of_inputs(
    request: AuditRequest, summary: Summary, partitions: tuple[InputPartition, ...]
) -> Iterator[Finding]:
    yield from _wrong(request, summary)
    yield from _unknown(request, summary, partitions)


def _wrong(request: AuditRequest, summary: Summary) -> Iterator[Finding]:
    inputs, outputs = ", ".join(request.inputs), ", ".join(request.topics)
    for kind, rule, what in (
        ("duplicate", rules.IN_OUTPUT_TWICE, f"in {outputs} more often than in {inputs}"),
        ("lost", rules.NOT_IN_OUTPUT, f"processed by {request.group} and missing from {outputs}"),
        (
            "torn",
            rules.AHEAD_OF_GROUP,
            f"in {outputs}, but beyond the committed offsets of {request.group}",
        ),
        ("unmatched", rules.UNMATCHED, "without a counterpart (inconclusive)"),
    ):
        if count := summary.weights.get(kind, 0):
            named = [
                entry[2] for entry in sorted(summary.violations[kind], key=lambda e: (-e[0], -e[1]))
            ]
            message = f"{counted(count, 'record')} {what}: {_named(request, named[:NAMED], count)}."
            hint = (
                _REMOVED
                if kind == "unmatched"
                else "See the evidence; --evidence DIR writes all of it."
            )
            yield rule.found(outputs, message, hint)


_REMOVED = (
    "Check that --from has all inputs, and with -o wide whether records were removed or a "
    "transaction is open."
)


def _named(request: AuditRequest, violations: list[Violation], count: int) -> str:
    by = "key" if request.source.part is RecordPart.RAW_KEY else request.source.label
    names = []
    for each in violations:
        numbers = ""
        if request.sequence is not None:
            numbers = (
                f" {each.first}" if each.first == each.last else f" {each.first} to {each.last}"
            )
        names.append(
            f"{by} {each.source!r}{numbers} at {each.topic}-{each.partition}@{each.offset} "
            f"({each.detail})"
        )
    unnamed = count - sum(each.records for each in violations)
    return "; ".join(names) + (f"; and {counted(unnamed, 'record')} more" if unnamed > 0 else "")


def _unknown(
    request: AuditRequest, summary: Summary, partitions: tuple[InputPartition, ...]
) -> Iterator[Finding]:
    group, matched = str(request.group), summary.matched
    reasons: dict[str, list[str]] = {}
    for each in partitions:
        if why := each.unknown or each.hidden:
            reasons.setdefault(why, []).append(str(each.span.topic_partition))
    for why, names in reasons.items():
        message = (
            f"Unknown which records of {some_of(names, NAMED)} the group {group} has "
            f"processed: {why}."
        )
        yield rules.GROUP_UNKNOWN.found(group, message, "Audit again, with a longer --patience.")
    if not reasons and partitions and all(each.committed is None for each in partitions):
        message = f"{group} has committed no offset of {', '.join(request.inputs)}."
        yield rules.NOTHING_COMMITTED.found(group, message, "Check --group and --from.")
    if matched.unidentified:
        what = (
            f"number at {request.sequence.text}"
            if request.sequence
            else f"value at {request.source.text}"
        )
        message = f"{counted(matched.unidentified, 'record')} of the inputs have no {what}."
        yield rules.UNNUMBERED.found(
            ", ".join(request.inputs), message, "Check --by and --sequence."
        )
    topic_partitions = [each.span.topic_partition for each in partitions if not each.unknown]
    waiting = {
        partition: matched.read(partition, ReadSide.BEYOND) for partition in topic_partitions
    }
    if count := sum(waiting.values()):
        names = [f"{partition} {number:,}" for partition, number in waiting.items() if number]
        yield rules.NOT_YET.found(
            group, f"{counted(count, 'record')} are not yet processed: {some_of(names, NAMED)}."
        )
