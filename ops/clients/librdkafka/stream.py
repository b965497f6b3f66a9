"""Committed records of parts of partitions, in batches as they come: what a Spark task reads of a
big topic.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from confluent_kafka import KafkaError
from connectctl.ops.clients.librdkafka.connection import Connection
from connectctl.ops.clients.librdkafka.group_positions import positions, positions_at
from connectctl.ops.clients.librdkafka.message_runs import Stretches, stretches
from connectctl.ops.clients.librdkafka.read import consumer_of, raise_unless_ignored, unanswered
from connectctl.ops.kafka.topic_partition import TopicPartition

BATCH = 10_000
WAIT = 0.1
"""Seconds that librdkafka may take to fill a batch."""


def stream(kafka: Connection, ranges: Mapping[TopicPartition, tuple[int, int]]) -> Stretches:
    """librdkafka's messages of each place from the first offset of its range to below the second,
    with read_committed.

    They come in stretches of one place, in which they are in order.
    The ends are offsets that such a reader can get to. Raises what ``KafkaReads`` raises.
    """
    pending = {place: end for place, (start, end) in ranges.items() if start < end}
    if not pending:
        return
    with closing(consumer_of(kafka, "read_committed")) as consumer:
        consumer.assign(positions_at({place: ranges[place][0] for place in pending}))
        yield from _until(kafka, consumer, pending)


def _until(kafka: Connection, consumer: Any, pending: dict[TopicPartition, int]) -> Stretches:
    ends = dict(pending)
    topics = {topic for topic, _ in ends}
    topic = topics.pop() if len(topics) == 1 else None
    received = time.monotonic()
    while pending:
        batch = consumer.consume(BATCH, WAIT)
        if not batch:
            if time.monotonic() - received > kafka.timeout:
                raise unanswered(kafka)
            continue
        received = time.monotonic()
        good = [message for message in batch if message.error() is None]
        for message in batch if len(good) < len(batch) else ():
            if message.error() is not None:
                _event(kafka, message, pending)
        for place, some in stretches(good, topic):
            end = ends[place]
            if some[-1].offset() >= end - 1:
                # Other tasks read on from there; librdkafka need not fetch it here.
                if pending.pop(place, None) is not None:
                    consumer.pause(positions([place]))
                # cut to its range
                some = [message for message in some if message.offset() < end]  # noqa: PLW2901
            if some:
                yield place, some


def _event(kafka: Connection, message: Any, pending: dict[TopicPartition, int]) -> None:
    error = message.error()
    if error.code() == KafkaError._PARTITION_EOF:
        place = TopicPartition(message.topic(), message.partition())
        # Behind the last committed record there may be markers and aborted records, which consumers
        # do not get.
        if place in pending and message.offset() >= pending[place]:
            del pending[place]
    else:
        raise_unless_ignored(kafka, message)
