"""The verdict of an audit by its summary. Pure, and tested on every combination.

Torn weighs more than duplicates, these more than gaps; undecided is any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from connectctl.ops.audit import findings as rules
from connectctl.ops.audit.input_findings import findings_of_inputs
from connectctl.ops.audit.input_partitions import InputPartition
from connectctl.ops.audit.offset_positions import Offsets
from connectctl.ops.audit.plan import AuditRequest
from connectctl.ops.audit.sequences import SourceTotals
from connectctl.ops.audit.summary import Summary
from connectctl.ops.audit.violations import Violation
from connectctl.ops.core.finding import Finding, Severity, counted
from connectctl.ops.core.rule import Rule

LONG = 60.0
"""Seconds after which an open transaction is a warning."""


class AuditVerdict(StrEnum):
    """The verdict of an audit. HEADERS_IN_ORDER: of headers alone, as requested; records were not
    read.
    """

    EXACTLY_ONCE = "exactly-once"
    DUPLICATES = "duplicates"
    GAPS = "gaps"
    TORN = "torn"
    UNDECIDED = "undecided"
    HEADERS_IN_ORDER = "headers-in-order"


_RULES: Mapping[AuditVerdict, tuple[Rule, ...]] = {
    AuditVerdict.TORN: (rules.TORN, rules.BEYOND, rules.AHEAD_OF_GROUP, rules.ARCHIVED_AHEAD),
    AuditVerdict.DUPLICATES: (
        rules.DUPLICATES,
        rules.STALE_BATCH,
        rules.IN_OUTPUT_TWICE,
        rules.ARCHIVED_TWICE,
    ),
    AuditVerdict.GAPS: (
        *(rules.GAPS, rules.LOST, rules.MISSING_BATCHES, rules.NOT_IN_OUTPUT),
        *(rules.FILE_MISSING, rules.FILE_DIFFERS, rules.NOT_ARCHIVED),
    ),
    AuditVerdict.UNDECIDED: (
        *(
            rules.UNCLEAR,
            rules.DISAGREE,
            rules.UNREAD,
            rules.NO_SEQUENCE,
            rules.UNNUMBERED,
            rules.NOT_COMPARED,
        ),
        *(rules.NO_SPARK, rules.LINES, rules.NOTHING, rules.GROUP_UNKNOWN, rules.NOTHING_COMMITTED),
        *(rules.UNMATCHED, rules.NOT_PROVABLE),
    ),
}
"""The findings of each verdict, the worst first."""
_UNPROVEN = (rules.UNCLEAR.id, rules.NOTHING.id)
"""The findings that keep headers alone from being enough."""


@dataclass(frozen=True)
class Audit:
    """The result of an audit. ``now`` is in seconds since the epoch, for the age of open
    transactions; ``offsets`` is None if they were not requested.
    """

    cluster_id: str
    request: AuditRequest
    summary: Summary
    now: float
    offsets: Offsets | None = None
    why_no_sequence: str | None = None
    unread: str | None = None
    """Why records were not read, although requested."""
    positions: tuple[int, int] | None = None
    """The position of a file source whose lines the records are, before and after they were read.
    """
    inputs: tuple[InputPartition, ...] | None = None
    """The inputs that the records were compared with, None where that was not requested."""
    findings: tuple[Finding, ...] = field(default=())

    @property
    def verdict(self) -> AuditVerdict:
        found = verdict_of(self.findings)
        only_headers = found is AuditVerdict.UNDECIDED and self.request.headers_only
        unproven = any(finding.id in _UNPROVEN for finding in self.findings)
        return AuditVerdict.HEADERS_IN_ORDER if only_headers and not unproven else found

    @property
    def passed(self) -> bool:
        """Return whether CI may continue: exactly once and in order; or headers only, as requested,
        without a violation.
        """
        errors = any(finding.severity is Severity.ERROR for finding in self.findings)
        return (
            self.verdict in (AuditVerdict.EXACTLY_ONCE, AuditVerdict.HEADERS_IN_ORDER)
            and not errors
        )


def verdict_of(findings: Iterable[Finding]) -> AuditVerdict:
    """Return the worst verdict of ``findings``."""
    ids = {finding.id for finding in findings}
    means = (verdict for verdict, its in _RULES.items() if any(rule.id in ids for rule in its))
    return next(means, AuditVerdict.EXACTLY_ONCE)


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return ``findings`` by severity, and in the order of ids and subjects."""
    rank = list(Severity)
    return tuple(sorted(findings, key=lambda f: (rank.index(f.severity), f.id, f.subject)))


def committed(summary: Summary) -> int:
    return summary.totals.records["committed"] + sum(part.plain for part in summary.parts)


def torn(summary: Summary) -> int:
    """Return the number of records that are torn off: of transactions that others of their
    partitions committed, and beyond the offset.
    """
    return summary.sums["torn"] + sum(part.records for part in summary.torn_parts)


def findings_of(audit: Audit) -> tuple[Finding, ...]:
    sources = (
        _of_sources(audit)
        if audit.inputs is None
        else findings_of_inputs(audit.request, audit.summary, audit.inputs)
    )
    return worst_first([*_of_transactions(audit), *sources, *_undecided(audit), *_of_topics(audit)])


def _of_transactions(audit: Audit) -> Iterator[Finding]:
    summary = audit.summary
    for part in summary.torn_parts:
        yield rules.TORN.found(
            _location(part),
            f"{counted(part.records, 'record')} of {_who(part)} were {part.detail}.",
        )
    for part in _worst(summary, "unclear-transaction"):
        yield rules.UNCLEAR.found(
            _location(part), f"{_who(part)} {part.detail}; they overlap in time."
        )
    for kind, rule, what in (
        ("missing-batches", rules.MISSING_BATCHES, "are missing"),
        ("stale-batch", rules.STALE_BATCH, "are repeated"),
    ):
        for part in _worst(summary, kind):
            message = f"Sequence {part.first} to {part.last} of {_who(part)} {what}."
            yield rule.found(_location(part), message)
    for part in _worst(summary, "open-transaction"):
        age = max(0.0, audit.now - part.timestamp / 1000)
        message = f"{_who(part)} has {counted(part.records, 'record')} open for {age:.0f} s."
        severity = Severity.WARNING if age > LONG else None
        yield rules.OPEN.found(
            _location(part), message, "See connectctl transactions list --open.", severity=severity
        )


def _of_sources(audit: Audit) -> Iterator[Finding]:
    summary, topics = audit.summary, ", ".join(audit.request.topics)
    sums, found = summary.sums, summary.found
    for name, kind, rule, how in (
        ("duplicates", "duplicate", rules.DUPLICATES, "more than once"),
        ("gaps", "gap", rules.GAPS, "missing"),
        ("reordered", "reordered", rules.REORDERED, "out of order"),
        ("torn", "torn", rules.BEYOND, "beyond the committed offset"),
        ("lost", "lost", rules.LOST, "missing before the committed offset"),
    ):
        if sums[name]:
            worst = next(iter(_worst(summary, kind)), None)
            example = (
                f"; the most: {worst.source!r} {worst.first} to {worst.last} at {_location(worst)}"
                if worst
                else ""
            )
            message = (
                f"{counted(sums[name], 'record')} in {counted(found[kind], 'place')} "
                f"{how}{example}."
            )
            yield rule.found(topics, message, "See the evidence; --evidence DIR writes all of it.")
    yield from _of_lines(audit)


def _of_lines(audit: Audit) -> Iterator[Finding]:
    reads = audit.summary.reads
    if audit.positions is None or reads is None:
        return
    low, high = audit.positions
    length = sum(read.characters for read in reads.values())
    lines = sum(read.records for read in reads.values())
    if low <= length <= high or low <= length + lines <= high:
        return
    more = "more" if length > high else "fewer"
    message = (
        f"{lines:,} lines of {length:,} characters are committed, {more} than the position "
        f"{high:,}."
    )
    yield rules.LINES.found(str(audit.request.connector), message)


def _undecided(audit: Audit) -> Iterator[Finding]:
    summary, request = audit.summary, audit.request
    topics = ", ".join(request.topics)
    if _nothing(audit):
        where = (
            "between --since and --until"
            if request.since and request.until
            else "from --since on"
            if request.since
            else ""
        )
        where = where or ("up to --until" if request.until else "in the topic")
        message = f"No committed record {where}: nothing to verify."
        yield rules.NOTHING.found(topics, message, "Check the topic, --since and --until.")
    if audit.unread:
        yield rules.NO_SPARK.found(
            topics, f"{audit.unread}.", "Or use --headers-only or --engine local."
        )
    if summary.reads is not None:
        yield from _disagreements(summary)
        unnumbered = sum(read.unnumbered for read in summary.reads.values())
        if unnumbered and (request.sequence is not None or audit.inputs is not None):
            what = (
                f"number at {request.sequence.text}"
                if request.sequence
                else f"value at {request.source.text}"
            )
            message = f"{counted(unnumbered, 'record')} of {committed(summary):,} have no {what}."
            option = "--sequence" if request.sequence else "--by"
            yield rules.UNNUMBERED.found(topics, message, f"Check {option} against a record.")
    unread = committed(summary) - _readable(summary)
    if unread > 0 and not request.headers_only:
        message = f"{counted(unread, 'record')} are committed but beyond the last stable offset."
        yield rules.UNREAD.found(
            topics,
            message,
            "Audit again when the open transaction has ended: connectctl transactions lag.",
        )
    if (
        audit.inputs is None
        and request.sequence is None
        and not audit.unread
        and (committed(summary) or request.headers_only)
    ):
        why = f": {audit.why_no_sequence}" if audit.why_no_sequence else ""
        proven = (
            "Transactions, markers and producers' sequences were checked; records were not "
            "read (--headers-only)"
        )
        why_not = proven if request.headers_only else f"--sequence is not set{why}"
        hint = (
            None
            if request.headers_only
            else "Use --sequence '$.field' with --by, or --headers-only."
        )
        severity = Severity.INFO if request.headers_only else None
        yield rules.NO_SEQUENCE.found(topics, f"{why_not}.", hint, severity=severity)
    if audit.offsets is not None and audit.offsets.why and request.sequence is not None:
        yield rules.NOT_COMPARED.found(
            str(request.connector), f"{audit.offsets.why[:1].upper()}{audit.offsets.why[1:]}."
        )


def _nothing(audit: Audit) -> bool:
    """Return whether there was nothing that could prove anything; headers alone also need no
    aborted or open transactions.
    """
    others = sum(audit.summary.totals.records.values()) if audit.request.headers_only else 0
    return committed(audit.summary) + others + audit.summary.matched.processed == 0


def _readable(summary: Summary) -> int:
    return summary.totals.readable + sum(part.readable for part in summary.parts)


def _disagreements(summary: Summary) -> Iterator[Finding]:
    """Yield the findings of differences between headers and records; by partition where headers
    show it, else over all.
    """
    assert summary.reads is not None
    read = sum(each.records for each in summary.reads.values())
    readable = _readable(summary)
    if read != readable and not any(part.legacy for part in summary.parts):
        subject = ", ".join(sorted({part.topic for part in summary.parts}))
        message = (
            f"Batch headers count {readable:,} readable committed records, but {read:,} were read."
        )
        yield rules.DISAGREE.found(
            subject, message, "Audit again; if the difference persists, check the brokers' logs."
        )


def _of_topics(audit: Audit) -> Iterator[Finding]:
    summary = audit.summary
    plain: dict[str, int] = {}
    for part in summary.parts:
        plain[part.topic] = plain.get(part.topic, 0) + part.plain
    for topic, count in plain.items():
        if count:
            yield rules.PLAIN.found(
                topic, f"{counted(count, 'record')} are outside of transactions."
            )
    if audit.request.since is None:
        for topic in sorted({part.topic for part in summary.parts if part.start > 0}):
            first = min(part.start for part in summary.parts if part.topic == topic)
            yield rules.REMOVED.found(topic, f"The first is at offset {first:,}.")


def _worst(summary: Summary, kind: str) -> list[Violation]:
    return [
        entry[2] for entry in sorted(summary.violations.get(kind, ()), key=lambda e: (-e[0], -e[1]))
    ]


def _location(part: Violation) -> str:
    return f"{part.topic}-{part.partition} offset {part.offset}"


def _who(part: Violation) -> str:
    return f"producer {part.producer_id} epoch {part.epoch}"


def matching(summary: Summary, offsets: Offsets) -> Offsets:
    """Return ``offsets``, or the reason why they are not compared if none of them is of a source
    partition in the records.
    """
    read = any(each.records for each in (summary.reads or {}).values())
    if offsets.numbers and (summary.source_partitions or read) and not summary.tracked:
        name = next(iter(offsets.numbers))
        return Offsets(
            why=f"no record belongs to the source partition {name!r} of the committed offsets; "
            "use --by"
        )
    return offsets


def unseen(summary: Summary, offsets: Offsets, first: int | None) -> Iterator[SourceTotals]:
    """Yield the source partitions that have an offset and no record: all records up to the offset
    are lost.
    """
    known = {totals.source for totals in summary.tracked}
    for name, committed_ in offsets.numbers.items():
        if name not in known:
            lost = max(0, committed_.before - (first or 0) + 1)
            yield SourceTotals("", name, lost=lost, tracked=True)
