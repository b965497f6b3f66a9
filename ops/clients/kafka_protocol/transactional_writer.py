"""Writes blocks of records as batches of a producer's transaction: determines the partition of each
record, and the size of batches.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, TypeVar, cast

from connectctl.ops.clients.kafka_protocol.batch_producer import BatchProducer
from connectctl.ops.clients.kafka_protocol.batch_sender import Parts
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

T = TypeVar("T")
TOPIC_PATIENCE = 30.0
"""Seconds for a topic that is not there, or has no leader."""


@dataclass(frozen=True)
class Block:
    """Rows or columns. ``named`` names a record by its number in them."""

    topic: str
    records: Rows | RecordColumns
    named: Named | None = None


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
        check: Callable[[Collection[TopicPartition]], None] = lambda topic_partitions: None,
    ):
        self._producer, self._codec, self._batch_bytes = producer, codec, batch_bytes
        self._largest, self._too_large, self._check = largest, too_large, check
        self.patience = patience
        self._next_partition = random.randrange(1 << 16)

    def write(self, block: Block | CopiedBlock) -> None:
        """Put ``block`` into the transaction, the records of a partition in their order: each in
        the partition that it names or has, or where Java's partitioner puts it.
        """
        if isinstance(block, CopiedBlock):
            self._write_copies(block)
            return
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
        for partition, batch in self._ready(topic, found):
            names = None if named is None else partial(_named, named, batch, order)
            encoded = partial(self._encoded, partition, batch, names)
            self._producer.send(partition, len(batch), encoded, names)

    def _write_copies(self, block: CopiedBlock) -> None:
        """Send batches unchanged, except for their headers. A batch that its topic would reject, or
        that needs another compression there, is decoded and encoded again.
        """
        self._producer.partitions(block.topic, self.patience)
        numbered = ((each.partition, each) for each in block.batches)
        for partition, subset in self._ready(block.topic, numbered):
            name = partial(block.named, subset.partition)
            # called at once
            sent = _made(subset, block.target, lambda: name(subset.offset_of(0)))  # noqa: B023
            for each in sent:
                self._producer.send(
                    partition, each.records, each.encode, partial(_copy_named, name, subset, each)
                )
            block.count(all(each.unopened for each in sent), subset.batches)

    def _ready(
        self, topic: str, numbered: Iterable[tuple[int, T]]
    ) -> Iterator[tuple[TopicPartition, T]]:
        """Yield batches, given with the numbers of their partitions, when these are in the
        transaction, those of a partition in their order. Partitions without a leader come last, and
        are waited for: they hold up no others.
        """
        led = {*self._producer.led(topic)}
        placed = sorted(numbered, key=lambda each: each[0] not in led)
        added = {TopicPartition(topic, number) for number, _ in placed if number in led}
        self._add(added)
        for number, batch in placed:
            partition = TopicPartition(topic, number)
            if partition not in added:
                self._producer.await_leader(partition)
                self._add({partition})
                added.add(partition)
            yield partition, batch

    def _add(self, partitions: Collection[TopicPartition]) -> None:
        """Add ``partitions``, which have leaders, to the transaction."""
        self._check(partitions)
        self._producer.add(partitions)

    def _encoded(
        self,
        topic_partition: TopicPartition,
        batch: RowBatch,
        named: Named | None,
        stamp: ProducerState,
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
                f"the limit of {topic_partition.topic} is {self._largest} bytes "
                "(max.message.bytes or max.request.size)"
            )
            raise self._too_large(
                named(0), topic_partition.topic, f"its record batch has {size} bytes; {limit}"
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
