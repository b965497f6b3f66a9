"""The summary of an audit's rows in bounded memory: numbers, and the worst violations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from heapq import heappush, heappushpop
from typing import Any

from connectctl.ops.audit.occurrences import MatchTotals
from connectctl.ops.audit.scan import PartTotals
from connectctl.ops.audit.sequences import Read, SourceTotals, add_read
from connectctl.ops.audit.timeline import Timeline
from connectctl.ops.audit.transactions import TransactionTotals
from connectctl.ops.audit.violations import KINDS, Violation
from connectctl.ops.kafka.topic_partition import TopicPartition

COUNTED = ("records", "duplicates", "gaps", "reordered", "torn", "lost")
TIMED = {
    "gap": "gaps",
    "lost": "gaps",
    "missing-batches": "gaps",
    "duplicate": "duplicates",
    "torn": "torn",
} | {"torn-transaction": "torn"}
"""Which violations are drawn over time, and as what."""


@dataclass
class Summary:
    """The results of an audit. ``shown`` limits the violations of a kind, and the source
    partitions, that are kept.

    ``sums`` are over all source partitions; ``found`` counts violations, ``weights`` their records,
    by kind. ``reads`` is None if records were not read.
    """

    shown: int = 20
    parts: list[PartTotals] = field(default_factory=list)
    totals: TransactionTotals = field(default_factory=TransactionTotals)
    reads: dict[TopicPartition, Read] | None = None
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    source_partitions: int = 0
    tracked: list[SourceTotals] = field(default_factory=list)
    worst: list[tuple[int, int, SourceTotals]] = field(default_factory=list)
    violations: dict[str, list[tuple[int, int, Violation]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    found: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    weights: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    timeline: Timeline = field(default_factory=Timeline)
    matched: MatchTotals = field(default_factory=MatchTotals)
    _number: int = 0

    def add(self, found: Any) -> None:
        """Add a result of the jobs."""
        if isinstance(found, Violation):
            self.count(found.kind, 1, found.records)
            self.timeline.add(
                found.timestamp,
                TIMED.get(found.kind, ""),
                found.records if found.kind in TIMED else 0,
            )
            self.keep(found)
        elif isinstance(found, SourceTotals):
            self.source_partitions += 1
            for name in COUNTED:
                self.sums[name] += getattr(found, name)
            self.source(found)
        elif isinstance(found, PartTotals):
            self.parts.append(found)
        elif isinstance(found, TransactionTotals):
            self.totals.merge(found.as_row())
        elif isinstance(found, Read):
            self.read(found)
        elif isinstance(found, MatchTotals):
            self.matched.merge(found.as_row())

    def read(self, found: Read) -> None:
        self.reads = {} if self.reads is None else self.reads
        add_read(self.reads, found)

    def count(self, kind: str, times: int, weight: int) -> None:
        self.found[kind] += times
        self.weights[kind] += weight

    def keep(self, violation: Violation) -> None:
        self._push(self.violations[violation.kind], violation.records, violation)

    def source(self, totals: SourceTotals) -> None:
        """Keep a source partition's totals, if it is among the worst, or if its offset is known."""
        if totals.tracked:
            self.tracked.append(totals)
        self._push(self.worst, totals.offences, totals)

    def as_row(self) -> dict[str, Any]:
        return {
            "parts": [asdict(part) for part in self.parts],
            "totals": self.totals.as_row(),
            "reads": None if self.reads is None else [asdict(read) for read in self.reads.values()],
            "sums": self.sums,
            "source_partitions": self.source_partitions,
            "tracked": [asdict(totals) for totals in self.tracked],
            "worst": [asdict(entry[2]) for entry in self.worst if not entry[2].tracked],
            "violations": [list(entry[2]) for heap in self.violations.values() for entry in heap],
            "counts": [[kind, self.found[kind], self.weights[kind]] for kind in self.found],
            "timeline": self.timeline.as_row(),
            "matched": self.matched.as_row(),
        }

    def merge(self, row: dict[str, Any]) -> None:
        """Add another summary (``as_row``), also after JSON."""
        self.parts += [PartTotals(**part) for part in row["parts"]]
        self.totals.merge(row["totals"])
        for read in row["reads"] or ():
            self.read(Read(**read))
        for name in COUNTED:
            self.sums[name] += row["sums"][name]
        self.source_partitions += row["source_partitions"]
        for totals in (*row["tracked"], *row["worst"]):
            self.source(SourceTotals(**totals))
        for violation in row["violations"]:
            self.keep(Violation(*violation))
        for kind, times, weight in row["counts"]:
            self.count(kind, times, weight)
        self.timeline.merge(Timeline.of(row["timeline"]))
        self.matched.merge(row["matched"])

    def _push(self, heap: list[tuple[int, int, Any]], weight: int, item: Any) -> None:
        self._number += 1
        entry = (weight, -self._number, item)
        if len(heap) < self.shown:
            heappush(heap, entry)
        else:
            heappushpop(heap, entry)

    @property
    def sources(self) -> list[SourceTotals]:
        """Return the source partitions to show: the worst, and those with an offset, in the order
        of their names.
        """
        listed = {
            (t.stream, t.source): t
            for t in [*(entry[2] for entry in self.worst), *self.tracked[: self.shown]]
        }
        return sorted(
            listed.values(), key=lambda t: (-t.offences, t.stream, len(t.source), t.source)
        )

    @property
    def evidence(self) -> list[Violation]:
        worst = []
        for kind in KINDS:
            heap = sorted(self.violations.get(kind, ()), key=lambda entry: _rank(entry[2]))
            worst += [entry[2] for entry in heap]
        return worst

    @property
    def torn_parts(self) -> Iterable[Violation]:
        """Return the parts of torn transactions, each once: they are reported in their partition,
        and again with the others.
        """
        return {
            (o.topic, o.partition, o.offset): o
            for _, _, o in self.violations.get("torn-transaction", ())
        }.values()


def _rank(violation: Violation) -> tuple[object, ...]:
    return -violation.records, violation.topic, violation.partition, violation.offset
