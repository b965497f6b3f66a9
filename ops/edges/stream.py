"""Committed records of parts of partitions, in batches as they come: what a Spark task reads of a big topic."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from connectctl.ops.errors import Unreachable

if TYPE_CHECKING:
    from connectctl.ops.edges.kafka import Kafka

BATCH = 10_000
WAIT = 0.1
"""Seconds that librdkafka may take to fill a batch."""
_IGNORED = {"GROUP_AUTHORIZATION_FAILED", "_ALL_BROKERS_DOWN", "_TRANSPORT"}
Place = tuple[str, int]


def stream(kafka: Kafka, ranges: Mapping[Place, tuple[int, int]]) -> Iterator[list[Any]]:
    """librdkafka's messages of each place from the first offset of its range to below the second, with read_committed.

    The ends are offsets that such a reader can get to. Raises what ``KafkaReads`` raises.
    """
    from confluent_kafka import TopicPartition
    from connectctl.ops.edges.reading import consumer_of

    pending = {place: end for place, (start, end) in ranges.items() if start < end}
    if not pending:
        return
    consumer = consumer_of(kafka, "read_committed")
    try:
        consumer.assign([TopicPartition(*place, ranges[place][0]) for place in sorted(pending)])
        yield from _until(kafka, consumer, pending)
    finally:
        consumer.close()


def _until(kafka: Kafka, consumer: Any, pending: dict[Place, int]) -> Iterator[list[Any]]:
    ends = dict(pending)
    heard = time.monotonic()
    while pending:
        batch = consumer.consume(BATCH, WAIT)
        if not batch:
            if time.monotonic() - heard > kafka.timeout:
                raise Unreachable(
                    f"Kafka at {kafka.bootstrap} stopped answering while topics were read",
                    why=f"nothing came for {kafka.timeout:g} s",
                    next_step="Try again, with a longer --timeout if the cluster is slow.",
                )
            continue
        heard = time.monotonic()
        good = [message for message in batch if message.error() is None]
        for message in batch if len(good) < len(batch) else ():
            if message.error() is not None:
                _event(kafka, message, pending)
        # The last record of each place in a batch tells how far it is; most batches have nothing to cut.
        last = {(message.topic(), message.partition()): message.offset() for message in good}
        over = {place for place, offset in last.items() if offset >= ends[place] - 1}
        if over:
            good = [m for m in good if m.offset() < ends[m.topic(), m.partition()]]
            _pause(consumer, over & pending.keys())
            for place in over:
                pending.pop(place, None)
        if good:
            yield good


def _pause(consumer: Any, places: set[Place]) -> None:
    """Let librdkafka fetch no more of what is read to its end: other tasks read on from there."""
    from confluent_kafka import TopicPartition

    if places:
        consumer.pause([TopicPartition(*place) for place in places])


def _event(kafka: Kafka, message: Any, pending: dict[Place, int]) -> None:
    from confluent_kafka import KafkaError

    error = message.error()
    if error.code() == KafkaError._PARTITION_EOF:
        place = (message.topic(), message.partition())
        # Behind the last committed record there may be markers and aborted records, which nobody is given.
        if place in pending and message.offset() >= pending[place]:
            del pending[place]
    elif error.name() not in _IGNORED:
        raise kafka.failure(error, f"read {message.topic() or 'topics'}")


def offsets_at(kafka: Kafka, topics: Sequence[str], timestamp: int) -> dict[str, dict[int, int]]:
    """The first offset of every partition with a record of ``timestamp`` (milliseconds) or later; its end for none."""
    from confluent_kafka import IsolationLevel
    from confluent_kafka.admin import OffsetSpec
    from connectctl.ops.edges.reading import _offsets, end_offsets

    found = _offsets(kafka, topics, OffsetSpec.for_timestamp(timestamp), IsolationLevel.READ_UNCOMMITTED)
    ends = end_offsets(kafka, topics)
    return {t: {p: at if at >= 0 else ends[t][p] for p, at in places.items()} for t, places in found.items()}
