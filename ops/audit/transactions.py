"""Joins the parts of transactions in partitions: which parts are of one transaction, and whether
all have the same outcome.

A part is identified by producer id and epoch. With transaction version 2 (KIP-890) the epoch
changes with every transaction, which identifies it; a commit marker one above its records' epoch
shows this version. Before, one epoch has many transactions. A coordinator then begins none before
the last is marked everywhere, so that the parts of two never overlap in time: parts with the same
outcome are joined by time, and for parts with different outcomes time is the evidence, if
clocks can be trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from connectctl.ops.audit.scan import OPEN, TransactionPart
from connectctl.ops.audit.timeline import Sizes, Timeline
from connectctl.ops.audit.violations import Violation
from connectctl.ops.kafka.batch_headers import ABORT, COMMIT

NEAR = 2
"""Milliseconds within which a coordinator marks all partitions of a transaction, if nothing but
time joins them.

It is a guess, and changes only the number of transactions: parts with the same outcome are never
evidence.
"""
AT_ONCE = 10
"""The same for parts with different outcomes."""
_OUTCOMES = {ABORT: "aborted", COMMIT: "committed", OPEN: "open"}


class Relation(Enum):
    """Whether two parts of one producer epoch are of one transaction."""

    SAME = "same"
    OTHER = "other"
    UNCLEAR = "unclear"


@dataclass
class TransactionTotals:
    """Transactions and their records in numbers; ``readable`` committed records are below the last
    stable offset.
    """

    transactions: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(_OUTCOMES.values(), 0)
    )
    records: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_OUTCOMES.values(), 0))
    readable: int = 0
    torn: int = 0
    sizes: Sizes = field(default_factory=Sizes)
    timeline: Timeline = field(default_factory=Timeline)

    def merge(self, other: dict[str, Any]) -> None:
        for mine, theirs in (
            (self.transactions, other["transactions"]),
            (self.records, other["records"]),
        ):
            for name, count in theirs.items():
                mine[name] += count
        self.readable += other["readable"]
        self.torn += other["torn"]
        self.sizes.merge(other["sizes"])
        self.timeline.merge(Timeline.of(other["timeline"]))

    def as_row(self) -> dict[str, Any]:
        return {
            "transactions": self.transactions,
            "records": self.records,
            "readable": self.readable,
            "torn": self.torn,
            "sizes": dict(self.sizes.counts),
            "timeline": self.timeline.as_row(),
        }


def order(part: TransactionPart) -> tuple[Any, ...]:
    """Return the order in which ``TransactionJoin`` wants parts: by producer and epoch, then as
    they ended.
    """
    return (
        part.producer_id,
        part.epoch,
        part.marker_ts if part.marker_ts >= 0 else 1 << 62,
        part.topic,
        part.partition,
    )


class TransactionJoin:
    """Puts parts together that come in ``order``; holds the parts of one transaction at a time."""

    def __init__(self) -> None:
        self.totals = TransactionTotals()
        self._parts: list[TransactionPart] = []
        self._unclear: list[TransactionPart] = []
        self._ends: dict[tuple[str, int], int] = {}
        self._distrust = False

    def join(self, parts: Iterable[TransactionPart]) -> Iterator[Violation]:
        """Yield the violations of the transactions of ``parts``, and those that are open."""
        for part in parts:
            if self._parts and not self._belongs(part):
                yield from self._end()
            if self._parts and self._parts[0].producer_id != part.producer_id:
                raise AssertionError("written by two producers in one transaction")
            self._parts.append(part)
            self._watch_clock(part)
        if self._parts:
            yield from self._end()

    def _watch_clock(self, part: TransactionPart) -> None:
        """Note records that are older than the transaction before in their own partition: their
        timestamps are no evidence.
        """
        partition = (part.topic, part.partition)
        before = self._ends.get(partition)
        if before is not None and part.marker_ts >= 0:
            self._distrust |= before - part.first_ts > max(AT_ONCE, (part.marker_ts - before) // 2)
        self._ends[partition] = part.marker_ts

    def _belongs(self, part: TransactionPart) -> bool:
        head = self._parts[0]
        if head.producer_id != part.producer_id:
            self._ends, self._distrust = {}, False
            return False
        if head.epoch != part.epoch or any(
            (p.topic, p.partition) == (part.topic, part.partition) for p in self._parts
        ):
            return False
        relations = {relation(each, part, distrust=self._distrust) for each in self._parts}
        if relations == {Relation.UNCLEAR} or (
            Relation.UNCLEAR in relations and Relation.SAME not in relations
        ):
            self._unclear = [self._parts[-1], part]
        return Relation.SAME in relations

    def _end(self) -> Iterator[Violation]:
        parts, unclear, totals = self._parts, self._unclear, self.totals
        self._parts, self._unclear = [], []
        outcomes = {part.outcome for part in parts if part.outcome != OPEN}
        outcome = outcomes.pop() if len(outcomes) == 1 else OPEN if not outcomes else COMMIT
        torn = bool(outcomes)
        size = sum(part.records for part in parts)
        totals.transactions[_OUTCOMES[outcome]] += 1
        totals.sizes.add(size)
        for part in parts:
            totals.records[_OUTCOMES[part.outcome]] += part.records
            totals.readable += part.readable if part.outcome == COMMIT else 0
        when = max(part.marker_ts if part.marker_ts >= 0 else part.last_ts for part in parts)
        totals.timeline.add(when, _OUTCOMES[outcome], 1)
        if torn:
            totals.torn += 1
            aborted = [part for part in parts if part.outcome == ABORT]
            kept = next(part for part in parts if part.outcome == COMMIT)
            for part in aborted:
                yield _violation(
                    "torn-transaction",
                    part,
                    f"committed in {kept.topic}-{kept.partition}, aborted here",
                )
        elif outcome == OPEN:
            for part in parts:
                yield _violation("open-transaction", part, "")
        if unclear:
            other = unclear[0]
            yield _violation(
                "unclear-transaction",
                unclear[1],
                f"ended with a different outcome in {other.topic}-{other.partition}",
            )


def relation(a: TransactionPart, b: TransactionPart, *, distrust: bool = False) -> Relation:
    """Return whether two parts of one producer epoch, in different partitions, are of one
    transaction.
    """
    if OPEN in (a.outcome, b.outcome):
        # What is open in one partition and marked in another is being marked right now, or began
        # after.
        ended = a if b.outcome == OPEN else b
        still = b if b.outcome == OPEN else a
        if a.outcome == b.outcome:
            return Relation.SAME
        return (
            Relation.SAME
            if moved(ended) and not distrust and still.first_ts < ended.marker_ts
            else Relation.OTHER
        )
    if any(part.outcome == COMMIT and moved(part) for part in (a, b)) or (moved(a) and moved(b)):
        # The epoch ended with this transaction, so that there is no other of this epoch that moved
        # it.
        return Relation.SAME
    apart = abs(a.marker_ts - b.marker_ts)
    same_outcome = a.outcome == b.outcome
    if distrust:
        is_close = apart <= (NEAR if same_outcome else AT_ONCE)
        return (
            Relation.OTHER if not is_close else Relation.SAME if same_outcome else Relation.UNCLEAR
        )
    overlap = _overlap(a, b)
    shorter = min(part.marker_ts - part.first_ts for part in (a, b))
    together = overlap * 2 > shorter if overlap > 0 else overlap == 0 and apart <= NEAR
    if same_outcome:
        return Relation.SAME if together else Relation.OTHER
    if a.append_time and b.append_time:
        return Relation.SAME if overlap > 0 else Relation.OTHER
    return Relation.UNCLEAR if together and overlap > 0 else Relation.OTHER


def moved(part: TransactionPart) -> bool:
    """Return whether the coordinator raised the epoch when it ended this transaction."""
    return part.marker_epoch > part.epoch


def _overlap(a: TransactionPart, b: TransactionPart) -> int:
    """Milliseconds for which both were open, below 0 where one began after the other's end."""
    return min(a.marker_ts, b.marker_ts) - max(a.first_ts, b.first_ts)


def _violation(kind: str, part: TransactionPart, detail: str) -> Violation:
    return Violation(
        kind,
        topic=part.topic,
        partition=part.partition,
        offset=part.first,
        first=part.first,
        last=part.last,
        records=part.records,
        timestamp=part.marker_ts if part.marker_ts >= 0 else part.first_ts,
        producer_id=part.producer_id,
        epoch=part.epoch,
        detail=detail,
    )
