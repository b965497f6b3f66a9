"""The loop that reads partitions to their ends with librdkafka's consumer.

Every reading of a whole topic is one use of it: images of internal topics, committed offsets of a
task, audits, the shares of Spark's tasks.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import groupby
from operator import methodcaller
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError
from connectctl.ops.clients.librdkafka.connection import Connection
from connectctl.ops.clients.librdkafka.group_positions import positions, positions_at
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.core.finding import some_of
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.visibility import read_topic

BATCH = 10_000
WAIT = 0.01
"""Seconds that librdkafka may take to fill a batch; the last one of a topic is never full."""
BULK_WAIT = 0.1
"""The same for large topics, where few full batches cost less than many small ones."""
_IGNORED = {"GROUP_AUTHORIZATION_FAILED", "_ALL_BROKERS_DOWN", "_TRANSPORT"}
"""Errors of the consumer that do not end a reading: it joins no group, and librdkafka connects to
lost brokers again.
"""
_PARTITION, _TOPIC, _ERROR = map(methodcaller, ("partition", "topic", "error"))

MessageRuns = Iterator[tuple[TopicPartition, list[Any]]]
"""Consecutive messages of one partition. Attributes are read once for each run, not for each
message.
"""


def consumer_of(kafka: Connection, isolation: str) -> confluent_kafka.Consumer:
    """Return a consumer for partitions that are assigned by hand. ``isolation`` is
    ``read_committed`` or ``read_uncommitted``.
    """
    # librdkafka requires a group id; the consumer joins no group and commits nothing.
    return confluent_kafka.Consumer(
        kafka.properties(
            group__id="connectctl",
            isolation__level=isolation,
            enable__auto__commit=False,
            enable__partition__eof=True,
            auto__offset__reset="earliest",
            fetch__wait__max__ms=20,
            queued__min__messages=500_000,
        )
    )


class Progress:
    """The progress of a reading of partitions. ``starts`` and ``ends`` are offsets: the first one
    to read, and the one after the last.
    """

    def __init__(
        self, ends: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int] | None = None
    ):
        self.ends = dict(ends)
        # From 0 and not from OFFSET_BEGINNING, which costs librdkafka a request and half a second.
        # auto.offset.reset finds the beginning of a partition that begins later.
        self.positions = dict.fromkeys(ends, 0) | dict(starts or {})
        self.pending = {each for each, end in ends.items() if self.positions[each] < end}
        self.held_back: dict[TopicPartition, int] = {}
        """Partitions whose committed records end before their end offset: a transaction is open,
        or the leader has not caught up. By each the offset where they end.
        """
        self.received = time.monotonic()

    @property
    def is_held_back(self) -> bool:
        """Return whether every partition that is not read to its end is held back."""
        return bool(self.pending) and self.pending <= self.held_back.keys()

    def check_answers(self, kafka: Connection) -> None:
        """Raise ``Unreachable`` if no record was received for the timeout of ``kafka``."""
        if time.monotonic() - self.received > kafka.timeout:
            names = some_of(list(map(str, sorted(self.pending))), 3)
            raise Unreachable(
                f"Kafka at {kafka.bootstrap} stopped answering while topics were read",
                why=f"no records received for {kafka.timeout:g} s, and {names} was not read to "
                "its end",
                next_step="Try again, with a longer --timeout if the cluster is slow.",
            )

    def advance(self, topic_partition: TopicPartition, position: int) -> None:
        """Note that everything before ``position`` and the end was returned."""
        self.received = time.monotonic()
        self.positions[topic_partition] = max(
            min(position, self.ends[topic_partition]), self.positions[topic_partition]
        )
        if self.positions[topic_partition] >= self.ends[topic_partition]:
            self.pending.discard(topic_partition)

    def end_event(self, topic_partition: TopicPartition, position: int) -> None:
        """Note that the consumer has reached the end of what it may read."""
        self.advance(topic_partition, position)
        if topic_partition in self.pending:
            self.held_back[topic_partition] = position


def consume_to(
    kafka: Connection, consumer: Any, progress: Progress, *, wait: float = WAIT
) -> Iterator[list[tuple[TopicPartition, list[Any]]]]:
    """Read until every partition is at its end, and yield the messages of each call of the
    consumer, none where it returned none; the caller decides how long to continue.

    Messages are those below the ends, in runs of one partition. Raises ``ConnectctlError`` for
    errors that librdkafka does not recover from.
    """
    topics = {topic for topic, _ in progress.ends}
    topic = topics.pop() if len(topics) == 1 else None
    consumer.assign(
        positions_at({partition: progress.positions[partition] for partition in progress.pending})
    )
    progress.received = time.monotonic()
    while progress.pending:
        batch = consumer.consume(BATCH, wait)
        runs = list(_runs_below_ends(kafka, consumer, progress, batch, topic))
        yield runs
        if runs:
            # the time that the caller took for the messages is not silence
            progress.received = time.monotonic()


def _runs_below_ends(
    kafka: Connection, consumer: Any, progress: Progress, batch: list[Any], topic: str | None
) -> MessageRuns:
    for are_events, messages_or_events in _events_apart(batch):
        if are_events:
            for message in messages_or_events:
                _handle_event(kafka, message, progress, topic)
            continue
        for partition, messages in message_runs(messages_or_events, topic):
            end, last = progress.ends[partition], messages[-1].offset()
            progress.held_back.pop(partition, None)
            was_pending = partition in progress.pending
            progress.advance(partition, last + 1)
            if was_pending and partition not in progress.pending and progress.pending:
                consumer.pause(positions([partition]))
            below = messages if last < end else [m for m in messages if m.offset() < end]
            if below:
                yield partition, below


def _events_apart(batch: list[Any]) -> Iterable[tuple[bool, list[Any]]]:
    if not any(map(_ERROR, batch)):  # a KafkaError cannot be compared to None
        return [(False, batch)] if batch else []
    runs = groupby(batch, key=lambda message: message.error() is not None)
    return ((are_events, list(run)) for are_events, run in runs)


def _handle_event(kafka: Connection, message: Any, progress: Progress, topic: str | None) -> None:
    """Handle the end of a partition or an error, which the consumer returns as a message."""
    error = message.error()
    if error.code() == KafkaError._PARTITION_EOF:
        # Only the end offset shows that markers and aborted records after the last record were
        # passed.
        partition = TopicPartition(topic or message.topic(), message.partition())
        progress.end_event(partition, message.offset())
    elif not error.retriable() and error.name() not in _IGNORED:
        name = message.topic()
        raise kafka.failure(error, f"read {name or 'topics'}", read_topic(name) if name else None)


def message_runs(batch: list[Any], topic: str | None) -> MessageRuns:
    """Split ``batch`` where the partition changes. With ``topic``, the only one, the topics of
    messages are not read, which takes time.
    """
    keys: Iterable[Any] = map(_PARTITION, batch)
    if topic is None:
        keys = zip(map(_TOPIC, batch), keys, strict=True)
    start = 0
    for key, same in groupby(keys):
        end = start + len(list(same))
        partition = TopicPartition(*key) if topic is None else TopicPartition(topic, key)
        yield partition, batch[start:end]
        start = end


def read_ranges(
    kafka: Connection,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    *,
    isolation: str = "read_committed",
) -> MessageRuns:
    """Yield librdkafka's messages of each partition from the first offset of its range to before
    the second, in runs of one partition.

    Ends are offsets that a reader with ``isolation`` can reach. Raises what ``KafkaReads`` raises.
    """
    progress = Progress(
        {partition: end for partition, (_, end) in ranges.items()},
        {partition: start for partition, (start, _) in ranges.items()},
    )
    if not progress.pending:
        return
    with closing(consumer_of(kafka, isolation)) as consumer:
        for runs in consume_to(kafka, consumer, progress, wait=BULK_WAIT):
            yield from runs
            if not runs:
                progress.check_answers(kafka)


def record_of(message: Any) -> ConsumerRecord:
    kind, timestamp = message.timestamp()
    when = timestamp if kind and timestamp >= 0 else None
    return ConsumerRecord(
        message.key(), message.value(), message.partition(), message.offset(), when
    )
