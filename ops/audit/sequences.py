"""Whether source records are complete, not repeated, and in order: by runs of consecutive sequence
numbers in a log.

A log without violations is one run for each source partition and Kafka partition, whatever its
length. The runs of one source partition are swept in the order of their first number; the sweep
keeps only its position.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from connectctl.ops.audit.violations import Violation
from connectctl.ops.kafka.topic_partition import TopicPartition


class SequenceRange(NamedTuple):
    """Records of one source partition with consecutive numbers, in the order of the log.

    ``stream`` is the topic, or empty if all topics are one stream. A run without a ``source``
    counts records of a Kafka partition: ``first`` all of them, ``last`` those without a number,
    ``last_offset`` the characters of their values.
    """

    stream: str
    source: str | None
    first: int
    topic: str
    partition: int
    first_offset: int
    last: int
    last_offset: int
    timestamp: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def offsets_of(self, number: int) -> tuple[int, int]:
        """Return the lowest and the highest offset at which ``number`` can be: every number takes
        at least one offset.
        """
        return self.first_offset + number - self.first, self.last_offset - (self.last - number)


@dataclass(frozen=True)
class Committed:
    """The last number of a source partition in the offsets topic: before and after the records were
    read.
    """

    before: int
    after: int


@dataclass
class SourceTotals:
    """The results of one source partition. ``highest`` is its last number; ``tracked``: its offset
    is known.
    """

    stream: str
    source: str
    records: int = 0
    duplicates: int = 0
    gaps: int = 0
    reordered: int = 0
    torn: int = 0
    lost: int = 0
    lowest: int | None = None
    highest: int | None = None
    tracked: bool = False

    @property
    def offences(self) -> int:
        return self.duplicates + self.gaps + self.reordered + self.torn + self.lost


@dataclass
class Read:
    """The number of records of a Kafka partition that were read, and of those without a number."""

    topic: str
    partition: int
    records: int = 0
    unnumbered: int = 0
    characters: int = 0


def add_read(reads: dict[TopicPartition, Read], read: Read) -> None:
    """Add the numbers of ``read`` to those of its partition."""
    partition = TopicPartition(read.topic, read.partition)
    found = reads.setdefault(partition, Read(*partition))
    found.records += read.records
    found.unnumbered += read.unnumbered
    found.characters += read.characters


class SequenceCheck:
    """Sweeps runs. ``first`` is the first number of every source partition, None if unknown.

    ``committed`` has the offset of a source partition by its name.
    """

    def __init__(
        self, first: int | None = None, committed: Mapping[str, Committed] | None = None
    ) -> None:
        self._first, self._committed = first, committed or {}

    def sweep(self, runs: Iterable[SequenceRange]) -> Iterator[SourceTotals | Violation | Read]:
        """Yield the violations, and each source partition's totals after them; runs are in the
        order of their fields.
        """
        reads: dict[TopicPartition, Read] = {}
        totals: SourceTotals | None = None
        for run in runs:
            if run.source is None:
                add_read(
                    reads, Read(run.topic, run.partition, run.first, run.last, run.last_offset)
                )
                continue
            if totals is None or (totals.stream, totals.source) != (run.stream, run.source):
                if totals is not None:
                    yield from self._end(totals)
                totals = SourceTotals(run.stream, run.source)
                self._begin(run)
            yield from self._take(run, totals)
        if totals is not None:
            yield from self._end(totals)
        yield from reads.values()

    def _begin(self, run: SequenceRange) -> None:
        self._reached = min(run.first, run.first if self._first is None else self._first) - 1
        self._cover: SequenceRange = run
        self._open: list[SequenceRange] = []  # those that may hold the next number, too
        self._heights: dict[tuple[str, int], SequenceRange] = {}
        self._limit = self._committed.get(run.source or "")

    def _take(self, run: SequenceRange, totals: SourceTotals) -> Iterator[Violation]:
        totals.records += run.size
        totals.lowest = run.first if totals.lowest is None else totals.lowest
        totals.highest = run.last if totals.highest is None else max(run.last, totals.highest)
        reached = self._reached
        if run.first > reached + 1:
            totals.gaps += run.first - reached - 1
            yield _violation("gap", run, reached + 1, run.first - 1)
        fresh = run.first
        if run.first <= reached:
            fresh = min(run.last, reached) + 1
            totals.duplicates += fresh - run.first
            early, late = self._copies(run)
            yield _violation("duplicate", late, run.first, fresh - 1, early)
        else:
            self._open.clear()
        self._open.append(run)
        if fresh <= run.last:
            yield from self._order(run, fresh, totals)
        if run.last > reached:
            self._reached, self._cover = run.last, run
        if self._limit and run.last > self._limit.after:
            beyond = max(run.first, self._limit.after + 1)
            totals.torn += run.last - beyond + 1
            yield _violation(
                "torn", run, beyond, run.last, detail=f"the offset is {self._limit.after}"
            )

    def _copies(self, run: SequenceRange) -> tuple[SequenceRange, SequenceRange]:
        """Return the first run in the log that has the first number of ``run``, and the reported
        copy: ``run``, or the next.
        """
        self._open = [known for known in self._open if known.last >= run.first]
        first, *others = sorted(
            (*self._open, run), key=lambda r: (r.topic, r.partition, r.first_offset)
        )
        return first, run if first is not run else others[0]

    def _order(self, run: SequenceRange, fresh: int, totals: SourceTotals) -> Iterator[Violation]:
        """Numbers that stand before smaller ones in the same Kafka partition."""
        partition = (run.topic, run.partition)
        highest = self._heights.get(partition)
        if highest is not None and run.first_offset < highest.last_offset:
            totals.reordered += run.last - fresh + 1
            violation = _violation("reordered", run, fresh, run.last)
            # What it stands before is the beginning of that run, wherever it began.
            yield violation._replace(
                other=highest.first_offset, other_until=highest.first_offset, **_location(highest)
            )
        elif highest is None or run.last_offset > highest.last_offset:
            self._heights[partition] = run

    def _end(self, totals: SourceTotals) -> Iterator[SourceTotals | Violation]:
        limit, highest = self._limit, totals.highest
        totals.tracked = limit is not None
        if limit and highest is not None and limit.before > highest:
            totals.lost = limit.before - highest
            yield _violation(
                "lost",
                self._cover,
                highest + 1,
                limit.before,
                detail=f"the offset is {limit.before}",
            )
        yield totals


def _location(run: SequenceRange) -> dict[str, Any]:
    return {"other_topic": run.topic, "other_partition": run.partition}


def _violation(
    kind: str,
    run: SequenceRange,
    first: int,
    last: int,
    copy: SequenceRange | None = None,
    detail: str = "",
) -> Violation:
    """Return the violation of the numbers ``first`` to ``last``, found at ``run``; ``copy`` is the
    run that also has them.
    """
    within = run.first <= first <= run.last
    offset, until = run.offsets_of(first) if within else (run.first_offset, run.first_offset)
    other, other_until = copy.offsets_of(first) if copy else (-1, -1)
    return Violation(
        kind,
        source=run.source,
        topic=run.topic,
        partition=run.partition,
        offset=offset,
        until=until,
        other=other,
        other_until=other_until,
        **(_location(copy) if copy else {}),
        first=first,
        last=last,
        records=last - first + 1,
        timestamp=run.timestamp,
        detail=detail,
    )


def order(run: SequenceRange) -> tuple[object, ...]:
    """Return the order that ``SequenceCheck`` needs: counts first, then the ranges of one source
    partition after each other.
    """
    return run.source is not None, run.stream, run.source or "", run.first, *run[3:7]
