"""Reads a share of some topics: what a Spark task does of a big reading, with the reader that the local engine uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.librdkafka.read import Reading, consumer_of, record_of
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.sentinels import Offset
from connectctl.ops.kafka.topic_partition import TopicPartition

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.connection import Connection

Wanted = Callable[[str, bytes | None], bool]


def read_share(
    kafka: Connection, ends: Mapping[str, Mapping[int, int]], wanted: Wanted
) -> Iterator[tuple[str, ConsumerRecord]]:
    """The newest record of each wanted key in each partition below its end, with read_committed; topic and record.

    ``ends`` are offsets that such a reader can get to. ``wanted`` is asked once for each topic and key that is read.
    """
    if not ends:
        return
    reading = _Choosing(kafka, {topic: {p: Offset(end) for p, end in by.items()} for topic, by in ends.items()}, wanted)
    consumer = consumer_of(kafka, "read_committed")
    try:
        reading.run(consumer, None)
    finally:
        consumer.close()
    yield from reading.records()


class _Choosing(Reading):
    """Keeps of each partition what is wanted, and forgets the rest at once."""

    def __init__(self, kafka: Connection, ends: Mapping[str, Mapping[int, Offset]], wanted: Wanted):
        super().__init__(kafka, ends)
        self._wanted = wanted

    def _take(self, batch: Iterable[Any]) -> None:
        ends, latest, wanted = self._ends, self._latest, self._wanted
        for message in batch:
            if message.error() is not None:
                self._mark(message)
                continue
            topic, partition, offset, key = message.topic(), message.partition(), message.offset(), message.key()
            end = ends[topic][partition]
            kept = latest[topic][partition]
            if offset < end and (key in kept or wanted(topic, key)):
                kept[key] = message
            if offset >= end - 1:
                self._pending.discard(TopicPartition(topic, partition))

    def records(self) -> Iterator[tuple[str, ConsumerRecord]]:
        """What was kept, given away: nothing is left afterwards."""
        for topic, by_partition in self._latest.items():
            for kept in by_partition.values():
                while kept:
                    yield topic, record_of(kept.popitem()[1])
