"""A partition's log, walked once by its headers: transactions, producers, and breaks in the order
of sequences.

The walk keeps one entry for each producer id, whatever the length of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from connectctl.ops.audit.violations import Violation
from connectctl.ops.kafka.batch_headers import ABORT, COMMIT, Batch, Marker
from connectctl.ops.kafka.topic_partition import TopicPartition

OPEN = 2
"""The outcome of a transaction that has none yet."""
REMEMBERED = 200_000
"""Producers to remember for one partition; beyond that those are forgotten that wrote longest ago
and have nothing open.
"""
_LARGEST_SEQUENCE = 0x7FFFFFFF


class PartitionRange(NamedTuple):
    """The audited range of a partition: offsets from ``start`` to before ``until``.

    Readers of read_committed read up to ``stable``; markers are read up to ``horizon``, the high
    watermark. ``whole``: nothing was ever removed from the partition, by retention or compaction,
    and it is audited from its beginning. ``side`` is its part in a comparison of inputs with an
    output: ``occurrences.Side``.
    """

    topic: str
    partition: int
    start: int
    until: int
    stable: int
    horizon: int
    whole: bool = False
    compacted: bool = False
    side: int = 0

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        return self.until - self.start


class TransactionPart(NamedTuple):
    """The part of a transaction that lies in one partition. ``readable`` records are below the last
    stable offset.

    ``marker_epoch`` is one above ``epoch`` where the coordinator moved it on: at every end with
    transaction version 2, and where it aborted because of a time-out or a successor. Timestamps are
    in milliseconds; those of an open one's marker -1.
    """

    producer_id: int
    epoch: int
    marker_ts: int
    topic: str
    partition: int
    outcome: int
    marker_epoch: int
    first: int
    last: int
    marker: int
    records: int
    readable: int
    first_ts: int
    last_ts: int
    append_time: bool


@dataclass
class PartTotals:
    """A partition's headers in numbers. ``plain`` records belong to no transaction; ``readable``
    ones of them are below the last stable offset; of ``legacy`` ones the number is unknown.
    """

    topic: str
    partition: int
    start: int
    until: int
    stable: int
    batches: int = 0
    plain: int = 0
    readable: int = 0
    legacy: int = 0
    markers: int = 0
    producers: int = 0
    epochs: int = 0

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def as_row(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True)
class _Producer:
    epoch: int = -1
    sequence: int = -1
    open: list[Any] | None = None
    aborted: tuple[int, int, int] | None = None
    """Epoch, first offset and records of the transaction that was aborted last, if nothing came
    since.
    """


class Scan:
    """Walks ``span``. Give it everything from its start on, until ``done``; take ``totals`` and
    ``left`` afterwards.
    """

    def __init__(self, span: PartitionRange) -> None:
        self._span = span
        self._known: dict[int, _Producer] = {}
        self._open = 0
        self.totals = PartTotals(span.topic, span.partition, span.start, span.until, span.stable)

    def walk(self, log: Iterable[Batch | Marker]) -> Iterator[TransactionPart | Violation]:
        """Yield the transactions as they end and what is wrong, in the order of the log; at last
        what is still open.
        """
        until = self._span.until
        for item in log:
            if item.offset >= until and not self._open:
                break
            if isinstance(item, Marker):
                yield from self._marker(item)
            elif item.offset < until:
                yield from self._batch(item)
        yield from self._left()

    def _batch(self, batch: Batch) -> Iterator[Violation]:
        totals = self.totals
        totals.batches += 1
        if batch.legacy:
            totals.legacy += 1
        records = self._inside(batch, self._span.until)
        readable = self._inside(batch, self._span.stable)
        if batch.producer_id < 0:
            totals.plain += records
            totals.readable += readable
            return
        producer = self._producer(batch.producer_id)
        if batch.sequence >= 0:
            if (
                batch.sequence != (producer.sequence + 1) & _LARGEST_SEQUENCE
            ) or batch.epoch != producer.epoch:
                yield from self._jump(batch, producer)
            producer.sequence = (
                batch.sequence + batch.last_offset - batch.offset
            ) & _LARGEST_SEQUENCE
        producer.epoch = batch.epoch
        producer.aborted = None
        if not batch.transactional:
            totals.plain += records
            totals.readable += readable
            return
        if producer.open is None:
            self._open += 1
            producer.open = [
                batch.epoch,
                batch.offset,
                0,
                0,
                0,
                batch.first_ts,
                0,
                batch.append_time,
            ]
        part = producer.open
        part[2] = batch.last_offset
        part[3] += records
        part[4] += readable
        part[6] = batch.last_ts

    def _inside(self, batch: Batch, end: int) -> int:
        """Return the number of its audited records: all, or those within the bounds."""
        start = self._span.start
        if start <= batch.offset and batch.last_offset < end:
            return batch.records
        inside = min(batch.last_offset + 1, end) - max(batch.offset, start)
        return max(0, min(inside, batch.records))

    def _producer(self, producer_id: int) -> _Producer:
        known = self._known.get(producer_id)
        if known is None:
            self.totals.producers += 1
            known = self._known[producer_id] = _Producer()
            if len(self._known) > REMEMBERED:
                for old in list(self._known)[: REMEMBERED // 2]:
                    if self._known[old].open is None:
                        del self._known[old]
        return known

    def _jump(self, batch: Batch, producer: _Producer) -> Iterator[Violation]:
        """Yield a sequence that does not follow the last one of its producer: right at the begin of
        an epoch, else wrong.
        """
        fresh = batch.epoch > producer.epoch
        if batch.epoch != producer.epoch:
            self.totals.epochs += 1
        if self._span.compacted or (producer.epoch < 0 and not self._span.whole):
            return
        expected = 0 if fresh else (producer.sequence + 1) & _LARGEST_SEQUENCE
        if batch.sequence == expected and batch.epoch >= producer.epoch:
            return
        ahead = (batch.sequence - expected) & _LARGEST_SEQUENCE
        outdated = batch.epoch < producer.epoch or ahead > _LARGEST_SEQUENCE // 2
        yield Violation(
            "stale-batch" if outdated else "missing-batches",
            topic=self._span.topic,
            partition=self._span.partition,
            offset=batch.offset,
            first=batch.sequence if outdated else expected,
            last=(batch.sequence + batch.records - 1) if outdated else batch.sequence - 1,
            records=batch.records if outdated else ahead,
            timestamp=batch.first_ts,
            producer_id=batch.producer_id,
            epoch=batch.epoch,
        )

    def _marker(self, marker: Marker) -> Iterator[TransactionPart | Violation]:
        if marker.outcome not in (ABORT, COMMIT):
            return
        self.totals.markers += 1
        producer = self._known.get(marker.producer_id)
        if producer is None:
            return
        part, producer.open = producer.open, None
        if part is not None:
            self._open -= 1
            yield self._segment(marker.producer_id, part, marker)
            producer.aborted = (part[0], part[1], part[3]) if marker.outcome == ABORT else None
        elif producer.aborted is not None:
            yield from self._contradiction(marker, *producer.aborted)
            producer.aborted = None

    def _contradiction(
        self, marker: Marker, epoch: int, first: int, records: int
    ) -> Iterator[Violation]:
        """Yield a commit that finds nothing open, because what it was to commit was aborted here
        before.

        Only where the commit is of the same transaction by its epoch: a client that commits has
        written something to every partition that it added.
        """
        if (
            marker.outcome == COMMIT
            and marker.epoch in (epoch, epoch + 1)
            and not self._span.compacted
        ):
            yield Violation(
                "torn-transaction",
                topic=self._span.topic,
                partition=self._span.partition,
                offset=first,
                first=first,
                last=marker.offset,
                records=records,
                timestamp=marker.timestamp,
                producer_id=marker.producer_id,
                epoch=epoch,
                detail="aborted here but committed by its coordinator",
            )

    def _segment(self, producer_id: int, part: list[Any], marker: Marker | None) -> TransactionPart:
        epoch, first, last, records, readable, *stamps = part
        ended = (
            (marker.timestamp, marker.outcome, marker.epoch, marker.offset)
            if marker
            else (-1, OPEN, epoch, -1)
        )
        at, outcome, marker_epoch, end = ended
        who = producer_id, epoch, at, self._span.topic, self._span.partition, outcome, marker_epoch
        return TransactionPart(*who, first, last, end, records, readable, *stamps)

    def _left(self) -> Iterator[TransactionPart]:
        for producer_id, producer in self._known.items():
            if producer.open is not None:
                yield self._segment(producer_id, producer.open, None)
