"""Writes blocks of records as batches of a producer's transaction: determines the partition of each
record, and the size of batches.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, cast

from connectctl.ops.clients.kafka_protocol.batch_producer import BatchProducer
from connectctl.ops.clients.kafka_protocol.batch_sender import Answered, Parts
from connectctl.ops.clients.kafka_protocol.refusals import Named, Refusal
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.batch_rewrite import TargetTopic
from connectctl.ops.kafka.copied_records import CopiedRecords, SentBatch
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.partitioner import java_partition, java_partitions, stable_order
from connectctl.ops.kafka.record_batch_encoder import (
    ProducerState,
    RecordColumns,
    RowBatch,
    batches,
)
from connectctl.ops.kafka.record_columns import Rows
from connectctl.ops.kafka.small_batches import MOST_ROWS, as_bytes, small_batches
from connectctl.ops.kafka.topic_partition import TopicPartition

_Encode = Callable[[ProducerState], Parts]
TOPIC_PATIENCE = 30.0
"""Seconds for a topic that is not there, or has no leader."""


Delivered = Callable[[int, Iterable[int], int, int, int], None]
"""Receives a partition, the rows of one batch there in their order, and the arguments of
``Answered``.
"""


@dataclass(frozen=True)
class Block:
    """Rows or columns. ``named`` names a record by its number in them; ``delivered`` is called for
    each batch that is answered.
    """

    topic: str
    records: Rows | RecordColumns
    named: Named | None = None
    delivered: Delivered | None = None


@dataclass(frozen=True)
class CopiedBlock:
    """Batches of the same partitions of another topic. ``target`` has the limits of ``topic``.
    ``named`` names a record by its partition and its offset there; ``count`` receives whether
    batches were sent unopened, and their number.
    """

    topic: str
    batches: Sequence[CopiedRecords]
    target: TargetTopic
    named: Callable[[int, int], str]
    count: Callable[[bool, int], None]


class TransactionalWriter:
    """Writes to the transaction of ``producer``, compressed with ``codec``, in batches of at most
    ``batch_bytes`` before compression. ``largest`` is the maximum number of bytes of a record
    batch, if known. ``too_large`` returns the exception for a larger record, from its name, its
    topic and the reason. The wait for a missing topic, or for the leader of a partition, is
    ``patience`` seconds. ``check`` is called before partitions are added.
    """

    def __init__(
        self,
        producer: BatchProducer,
        codec: str,
        batch_bytes: int,
        largest: int | None,
        too_large: Callable[[str, str, str], Exception],
        patience: float = TOPIC_PATIENCE,
        check: Callable[[Collection[TopicPartition]], None] = lambda places: None,
    ):
        self._producer, self._codec, self._batch_bytes = producer, codec, batch_bytes
        self._largest, self._too_large, self._check = largest, too_large, check
        self.patience = patience
        self._next_partition = random.randrange(1 << 16)
        self._taken: deque[tuple[TopicPartition, int, _Encode, Named | None, Answered | None]]
        self._taken = deque()
        """The batches to send, as arguments of ``BatchProducer.send``."""
        self._opened: set[TopicPartition] = set()
        """The partitions of these batches that were added to the transaction."""

    def write(self, block: Block | CopiedBlock) -> None:
        """Put ``block`` into the transaction, the records of a partition in their order: each in
        the partition that it names or has, or where Java's partitioner puts it.
        """
        if isinstance(block, CopiedBlock):
            self._write_copies(block)
            return
        self.take(block)
        self.send_taken()

    def take(self, block: Block) -> None:
        """Make batches of ``block``, which ``send_taken`` sends."""
        if not self._taken:
            self._opened.clear()
        topic, rows, named = block.topic, block.records, block.named
        count = self._producer.partitions(topic, self.patience)
        numbers = rows.partitions if isinstance(rows, Rows) else ()
        given_numbers = {*numbers} - {None}
        if wrong := [number for number in given_numbers if not 0 <= number < count]:
            message = f"{topic} has {count} partitions, and no partition {wrong[0]}"
            raise Refusal(Code.UNKNOWN_TOPIC_OR_PARTITION, said=message)
        order: list[Any] = []
        records = rows.columns() if isinstance(rows, Rows) and len(rows) > MOST_ROWS else rows
        _check_timestamps(records.timestamps, named)
        if isinstance(records, Rows):
            found = self._placed_few(topic, records, count, order)
        else:
            found = self._placed(topic, records, numbers if given_numbers else (), count, order)
        for number, batch in found:
            partition = TopicPartition(topic, number)
            names = None if named is None else partial(_named, named, batch, order)
            answered = (
                None
                if block.delivered is None
                else partial(block.delivered, number, _rows(batch, order))
            )
            encoded = partial(self._encoded, partition, batch, names)
            self._taken.append((partition, len(batch), encoded, names, answered))

    @property
    def waiting(self) -> int:
        """Return the number of records that were taken and not sent."""
        return sum(records for _, records, *_ in self._taken)

    def clear(self) -> None:
        """Discard what was taken and not sent."""
        self._taken.clear()

    def send_taken(self) -> None:
        """Send the batches that were taken, those of a partition in their order. Partitions without
        a leader come last, and are waited for: they hold up no others. If the producer's limit is
        over before, ``Unacknowledged`` is raised, and the next call continues.
        """
        led = self._led(each[0] for each in self._taken)
        self._taken = deque(sorted(self._taken, key=lambda each: each[0] not in led))
        while self._taken:
            self._open(self._taken[0][0], [each[0] for each in self._taken])
            self._producer.send(*self._taken[0])
            self._taken.popleft()

    def _write_copies(self, block: CopiedBlock) -> None:
        """Send batches unchanged, except for their headers. A batch that its topic would reject, or
        that needs another compression there, is decoded and encoded again.
        """
        self._producer.partitions(block.topic, self.patience)
        self._opened.clear()
        placed = [(TopicPartition(block.topic, each.partition), each) for each in block.batches]
        led = self._led(partition for partition, _ in placed)
        placed.sort(key=lambda each: each[0] not in led)
        for partition, subset in placed:
            self._open(partition, [each for each, _ in placed])
            name = partial(block.named, subset.partition)
            # called at once
            sent = _made(subset, block.target, lambda: name(subset.offset_of(0)))  # noqa: B023
            for each in sent:
                self._producer.send(
                    partition, each.records, each.encode, partial(_copy_named, name, subset, each)
                )
            block.count(all(each.unopened for each in sent), subset.batches)

    def _led(self, places: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Return those of ``places`` that have a leader."""
        found = {*places}
        topics = {partition.topic for partition in found}
        return found & {
            TopicPartition(topic, number)
            for topic in topics
            for number in self._producer.led(topic)
        }

    def _open(self, place: TopicPartition, others: Iterable[TopicPartition]) -> None:
        """Add ``place`` to the transaction, with ``others`` if it has a leader; else wait for
        one.
        """
        if place in self._opened:
            return
        added = self._led(others)
        if place not in added:
            self._producer.await_leader(place)
            added = {place}
        self._check(added)
        self._producer.add(added)
        self._opened |= added

    def _encoded(
        self, place: TopicPartition, batch: RowBatch, named: Named | None, stamp: ProducerState
    ) -> Parts:
        encoded = batch.encode(stamp, self._codec)
        size = sum(map(len, encoded))
        if (
            self._largest is not None
            and named is not None
            and len(batch) == 1
            and size > self._largest
        ):
            limit = (
                f"the limit of {place.topic} is {self._largest} bytes (max.message.bytes or "
                "max.request.size)"
            )
            raise self._too_large(
                named(0), place.topic, f"its record batch has {size} bytes; {limit}"
            )
        return encoded

    def _in_turn(self, topic: str) -> int:
        """Return the next partition for records that name none and have no key: one that has a
        leader.
        """
        self._next_partition += 1
        led = self._producer.led(topic)
        return led[self._next_partition % len(led)]

    def _placed_few(
        self, topic: str, rows: Rows, count: int, new: list[Any]
    ) -> Iterator[tuple[int, RowBatch]]:
        """Yield as ``_placed``, for a few rows, without columns."""
        of: dict[int, list[int]] = {}
        in_turn = self._in_turn(topic)
        for row, (key, chosen) in enumerate(zip(rows.keys, rows.partitions, strict=True)):
            number = chosen
            if number is None:
                number = in_turn if key is None else java_partition(as_bytes(key), count)
            of.setdefault(number, []).append(row)
        numbers = sorted(of)
        order = [row for number in numbers for row in of[number]]
        new.append(order)
        cuts = list(accumulate(len(of[number]) for number in numbers))
        for batch in small_batches(rows, order, cuts, self._batch_bytes):
            yield numbers[bisect_right(cuts, batch.start)], batch

    def _placed(
        self,
        topic: str,
        rows: RecordColumns,
        given: Sequence[int | None],
        count: int,
        new: list[Any],
    ) -> Iterator[tuple[int, RowBatch]]:
        """Yield batches with their partitions: the ``given`` ones (empty if there are none), for
        keys those of Java's partitioner, and for other records a partition in turn for each batch.
        ``new`` receives the order of the rows, if it is another.
        """
        import numpy as np

        if len(only := {*given}) == 1:
            number = cast("int", only.pop())
            yield from ((number, batch) for batch in batches(rows, self._batch_bytes))
            return
        if rows.keys is None and not given:
            for batch in batches(rows, self._batch_bytes):
                yield self._in_turn(topic), batch
            return
        numbers = np.full(len(rows), self._in_turn(topic))
        if rows.keys is not None:
            keyed = rows.keys.is_valid().to_numpy(zero_copy_only=False)
            numbers = np.where(keyed, java_partitions(rows.keys.fill_null(b""), count), numbers)
        if given:
            chosen = np.array([-1 if number is None else number for number in given])
            numbers = np.where(chosen >= 0, chosen, numbers)
        order = stable_order(numbers, count)
        numbers = numbers[order]
        new.append(order)
        cuts = np.flatnonzero(np.diff(numbers)) + 1
        for batch in batches(rows.take(order), self._batch_bytes, cuts.tolist()):
            yield int(numbers[batch.start]), batch


def _check_timestamps(times: Any, named: Named | None) -> None:
    """Raises ``ConnectctlError`` for one before 1970, as Connect does
    (``ConnectUtils.checkAndConvertTimestamp``).
    """
    if isinstance(times, list):
        bad = (
            [row for row, when in enumerate(times) if when is not None and when < -1]
            if any(times)
            else []
        )
    else:
        bad = [] if times is None else (times < -1).nonzero()[0].tolist()
    if not bad:
        return
    raise ConnectctlError(
        f"{named(bad[0]) if named else 'A record'} has a timestamp of {times[bad[0]]} ms, which "
        "is before 1970",
        next_step="Set milliseconds since the epoch, or none for the time of sending.",
        code="INVALID_TIMESTAMP",
    )


def _rows(batch: RowBatch, order: list[Any]) -> Iterable[int]:
    """Return the rows of the source in ``batch``, in their order."""
    if not order:
        return range(batch.start, batch.end)
    rows: Any = order[0][batch.start : batch.end]
    return rows if isinstance(rows, list) else list(rows.tolist())


def _named(named: Named, batch: RowBatch, order: list[Any], record: int) -> str:
    """Return the name of a record of ``batch`` by its row in the source."""
    row = batch.start + record
    return named(int(order[0][row]) if order else row)


def _made(some: CopiedRecords, target: TargetTopic, name: Callable[[], str]) -> list[SentBatch]:
    try:
        return some.sent_to(target)
    except (ValueError, OSError) as e:
        raise ConnectctlError(
            f"{name()} is in a batch that cannot be read", why=str(e), code="garbled"
        ) from e


def _copy_named(
    name: Callable[[int], str], some: CopiedRecords, sent: SentBatch, record: int
) -> str:
    """Return the name of a record of a sent batch by its offset in the source."""
    return name(some.offset_of(sent.first + record))
