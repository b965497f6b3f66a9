"""Whether the output of a transform has the records of its inputs, each as often: by key, or by
numbers of a sequence.

Rows are records of one partition with one identity (a key), or consecutive numbers of one source
partition. Those of one source are compared where their numbers overlap, so that a topic in order is
a few rows, whatever its length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import groupby
from typing import Any, NamedTuple

from connectctl.ops.audit.sequences import Read, SequenceRange, SourceTotals, add_read
from connectctl.ops.audit.violations import Violation
from connectctl.ops.kafka.topic_partition import TopicPartition

KEYED = -1
"""The number of records that are compared by key alone."""


class ReadSide(IntEnum):
    """The position of a record that was read, relative to the group's committed offsets of its
    partition before and after the output was read.
    """

    OUTPUT = 0
    PROCESSED = 1
    """Below both."""
    PERHAPS = 2
    """Between both, or the offset is unknown: in the output or not, either is right."""
    BEYOND = 3
    """Not below either: not yet processed."""


class Occurrence(NamedTuple):
    """``times`` records with each of the numbers ``first`` to ``last`` (``KEYED``: none), from
    ``first_offset`` on.

    A row without a ``source`` counts the records of a partition: ``first`` all of them, ``last``
    those without an identity. ``timestamp`` is the first record's, in milliseconds.
    """

    source: str | None
    first: int
    side: int
    topic: str
    partition: int
    first_offset: int
    last: int
    last_offset: int
    times: int
    timestamp: int

    def early(self, number: int) -> tuple[int, int]:
        """Return the lowest and the highest offset at which the first record with ``number`` can
        be.
        """
        if self.last == KEYED:
            return self.first_offset, self.first_offset
        return self.first_offset + number - self.first, self.last_offset - (self.last - number)

    def late(self, number: int) -> tuple[int, int]:
        """Return the same for the last record with ``number``."""
        return (self.last_offset, self.last_offset) if self.last == KEYED else self.early(number)


def of_range(run: SequenceRange, side: int) -> Occurrence:
    return Occurrence(
        run.source,
        run.first,
        side,
        run.topic,
        run.partition,
        run.first_offset,
        run.last,
        run.last_offset,
        1,
        run[8],
    )


def order(row: Occurrence) -> tuple[object, ...]:
    """Return the order that ``Matching`` needs: counts first, then the rows of a source after each
    other by their numbers.
    """
    return row.source is not None, row.source or "", *row[1:6]


@dataclass
class MatchTotals:
    """The results of a comparison. ``clean`` keys have no violation; ``missing`` records are not in
    the output.

    ``reads`` has, by (topic, partition, side) of the inputs, the number of records that were read,
    and of those without an identity.
    """

    clean: int = 0
    missing: int = 0
    reads: dict[tuple[str, int, int], list[int]] = field(default_factory=dict)

    def count(self, row: Occurrence) -> None:
        found = self.reads.setdefault((row.topic, row.partition, row.side), [0, 0])
        found[0] += row.first
        found[1] += row.last

    def read(self, topic_partition: TopicPartition, *sides: ReadSide) -> int:
        """Return the number of records of an input partition that were read on ``sides``."""
        return sum(self.reads.get((*topic_partition, side), (0, 0))[0] for side in sides)

    @property
    def processed(self) -> int:
        """Return the number of input records that the group has certainly processed."""
        return sum(
            found[0] for (_, _, side), found in self.reads.items() if side == ReadSide.PROCESSED
        )

    @property
    def unidentified(self) -> int:
        return sum(found[1] for found in self.reads.values())

    def as_row(self) -> dict[str, Any]:
        return {
            "clean": self.clean,
            "missing": self.missing,
            "reads": [[*partition, *found] for partition, found in self.reads.items()],
        }

    def merge(self, row: Mapping[str, Any]) -> None:
        """Add other totals (``as_row``)."""
        self.clean += row["clean"]
        self.missing += row["missing"]
        for topic, partition, side, records, without in row["reads"]:
            found = self.reads.setdefault((topic, partition, side), [0, 0])
            found[0] += records
            found[1] += without


@dataclass
class _Counts:
    """The number of occurrences of one number: below both offsets, below the later one, in the
    whole inputs, in the output.
    """

    must: int
    may: int
    all: int
    out: int

    def __str__(self) -> str:
        return f"{self.out} in the output, {self.may or self.all} in the inputs"


class Matching:
    """Compares rows. ``subset``: records may be left out. ``inputs_whole`` and ``output_whole``:
    nothing was removed from them, and no open transaction hides records.

    Without these a record without a counterpart proves nothing, and is a violation of the kind
    ``unmatched``.
    """

    def __init__(
        self, *, subset: bool = False, inputs_whole: bool = True, output_whole: bool = True
    ) -> None:
        self._subset, self._inputs_whole, self._output_whole = subset, inputs_whole, output_whole
        self._totals = MatchTotals()

    def sweep(
        self, rows: Iterable[Occurrence]
    ) -> Iterator[Violation | SourceTotals | Read | MatchTotals]:
        """Yield the violations, the totals of each source after its violations, and the totals of
        everything at the end; rows are in ``order``.
        """
        reads: dict[TopicPartition, Read] = {}
        for source, rows_of_source in groupby(rows, key=lambda row: row.source):
            if source is not None:
                yield from self._source(source, rows_of_source)
                continue
            for row in rows_of_source:
                if row.side == ReadSide.OUTPUT:
                    add_read(reads, Read(row.topic, row.partition, row.first, row.last))
                else:
                    self._totals.count(row)
        yield from reads.values()
        yield self._totals

    def _source(
        self, source: str, rows: Iterable[Occurrence]
    ) -> Iterator[Violation | SourceTotals]:
        totals = SourceTotals("", source)
        keyed = False
        for first, last, active in _segments(rows):
            keyed = first == KEYED
            for found in self._segment(first, last, active, totals):
                if found.kind == "duplicate":
                    totals.duplicates += found.records
                elif found.kind == "lost":
                    totals.lost += found.records
                elif found.kind == "torn":
                    totals.torn += found.records
                yield found
        if keyed and not totals.offences:
            self._totals.clean += 1
            return
        yield totals

    def _segment(
        self, first: int, last: int, active: list[Occurrence], totals: SourceTotals
    ) -> Iterator[Violation]:
        """Yield the violations of the numbers ``first`` to ``last``, which all rows in ``active``
        have.
        """
        size = last - first + 1
        output = _on(active, ReadSide.OUTPUT)
        inputs = _on(active, ReadSide.PROCESSED, ReadSide.PERHAPS, ReadSide.BEYOND)
        must, may, all_ = (_count(_on(active, *sides)) for sides in _BELOW)
        n = _Counts(must, may, all_, _count(output))
        totals.records += n.out * size
        if output and first != KEYED:
            totals.lowest = first if totals.lowest is None else totals.lowest
            totals.highest = last
        if n.out < n.must:
            self._totals.missing += (n.must - n.out) * size
            if not self._subset:
                kind = "lost" if self._output_whole else "unmatched"
                yield _violation(kind, inputs[0], first, last, n.must - n.out, str(n), output[:1])
        if n.out > n.may:
            # If some are processed, it is unknown which copies are of those that are not.
            ahead = min(n.out, n.all) if n.may == 0 else 0
            if ahead:
                yield _violation(
                    "torn", output[0], first, last, ahead, "not yet processed", inputs[:1]
                )
            if surplus := n.out - n.may - ahead:
                kind = "duplicate" if n.all and self._inputs_whole else "unmatched"
                yield _violation(
                    kind, output[-1], first, last, surplus, str(n), output[:1] if n.out > 1 else ()
                )


_BELOW = (
    (ReadSide.PROCESSED,),
    (ReadSide.PROCESSED, ReadSide.PERHAPS),
    (ReadSide.PROCESSED, ReadSide.PERHAPS, ReadSide.BEYOND),
)


def _segments(rows: Iterable[Occurrence]) -> Iterator[tuple[int, int, list[Occurrence]]]:
    """Stretches of numbers that the same rows have, with these; ``rows`` are of one source and in
    order.
    """
    active: list[Occurrence] = []
    at = 0
    for row in rows:
        while active and at < row.first:
            end = min(row.first - 1, *(each.last for each in active))
            yield at, end, active
            at = end + 1
            active = [each for each in active if each.last >= at]
        at = row.first
        active.append(row)
    while active:
        end = min(each.last for each in active)
        yield at, end, active
        at = end + 1
        active = [each for each in active if each.last >= at]


def _on(rows: Iterable[Occurrence], *sides: ReadSide) -> list[Occurrence]:
    return sorted(
        (row for row in rows if row.side in sides),
        key=lambda r: (r.side, r.topic, r.partition, r.first_offset),
    )


def _count(rows: Iterable[Occurrence]) -> int:
    return sum(row.times for row in rows)


def _violation(
    kind: str,
    row: Occurrence,
    first: int,
    last: int,
    times: int,
    detail: str,
    others: Iterable[Occurrence],
) -> Violation:
    """Return ``times`` records too few or too many of each number, seen at ``row``; ``others`` has
    the counterpart, if any.
    """
    missing = row.side != ReadSide.OUTPUT
    offset, until = row.early(first) if missing or kind == "torn" else row.late(first)
    elsewhere: dict[str, Any] = {}
    for other in others:
        low, high = other.early(first)
        elsewhere = {
            "other": low,
            "other_until": high,
            "other_topic": other.topic,
            "other_partition": other.partition,
        }
    return Violation(
        kind,
        source=row.source,
        topic=row.topic,
        partition=row.partition,
        offset=offset,
        until=until,
        first=first,
        last=last,
        records=times * (last - first + 1),
        timestamp=row.timestamp,
        detail=detail,
        **elsewhere,
    )
