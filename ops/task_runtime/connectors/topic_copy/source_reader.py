"""Reads partitions of the source cluster in batches whose size in bytes is bounded, and knows when
it is at their ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.librdkafka.group_positions import positions, positions_at
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.kafka.sentinels import offset_of
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.topic_copy.source_clients import (
    UNREADABLE,
    partition_gone,
    unreachable,
)
from connectctl.ops.task_runtime.connectors.topic_copy.source_starts import (
    LostRange,
    SourceCluster,
    starts_of,
    unset,
)

WAIT = 0.05
"""Seconds that librdkafka may take to fill a batch."""
MOST, FEW = 10_000, 100
"""Records of a batch at most, and of the first one, while their size is unknown."""
BATCH_BYTES = 8 << 20
POLL = 1.0
"""Seconds between checks whether lost brokers are back."""
DEFAULTS = {
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 16_384,
    # A full queue is checked again after a moment, and not after librdkafka's second, in which it
    # would run dry.
    "fetch.queue.backoff.ms": 10,
    "fetch.wait.max.ms": 100,
}
"""The defaults of a copy's consumer: it reads 32 MB of records ahead."""
_GONE = {"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_ID"}
_PASSING = {"_ALL_BROKERS_DOWN", "_TRANSPORT", "GROUP_AUTHORIZATION_FAILED"}


@dataclass(frozen=True, slots=True)
class TopicBatch:
    """Records of one topic, as librdkafka gave them, and the last offset of each partition among
    them.
    """

    topic: str
    messages: list[Any]
    last: Mapping[int, int]

    def __len__(self) -> int:
        return len(self.messages)


class TopicReader:
    """A consumer to which partitions of the source are assigned by hand."""

    def __init__(self, source: SourceCluster):
        self._source = source
        self._consumer: Any = None
        self._kafka: Kafka | None = None
        self._next: dict[TopicPartition, int] = {}
        self._at_end: set[TopicPartition] = set()
        self._lost: tuple[float, str] | None = None
        self._looked = 0.0
        self._size = FEW
        self.lost: list[LostRange] = []
        """The ranges that the source had lost at the last beginning."""

    @property
    def opened(self) -> bool:
        return self._consumer is not None

    def begin(self, begin: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, int]:
        """Begin at these offsets; at one that is None as auto.offset.reset is. Return the offsets
        at which ``latest`` begins.

        Raises ``ConnectctlError`` for a partition that does not exist any more, or has fewer
        records than were copied from it.
        """
        from confluent_kafka import Consumer

        # A new one each time: what it knows of topics it has read once.
        kafka = self._kafka = Kafka(self._source.admin, timeout=self._source.timeout)
        starts = starts_of(self._source, kafka, begin)
        if self._consumer is None:
            properties = kafka.properties() | DEFAULTS | dict(self._source.consumer) | self._ours()
            self._consumer = kafka.ask("open a consumer", lambda: Consumer(properties))
        self._next = {partition: start.offset for partition, start in starts.items()}
        self.lost = [start.lost for start in starts.values() if start.lost is not None]
        self._at_end, self._lost = set(), None
        assigned = positions_at(self._next)
        self._asked(lambda: self._consumer.assign(assigned))
        return {partition: start.offset for partition, start in starts.items() if start.leaves_out}

    def _ours(self) -> dict[str, Any]:
        return {
            "group.id": "connectctl",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": self._source.isolation,
            # Each assignment has its offsets. One that the leader does not have is checked, never
            # reset: a log that lost its end must not be read from its beginning.
            "auto.offset.reset": "error",
            "error_cb": self._on_error,
        }

    def _out_of_range(self, topic_partition: TopicPartition) -> ConnectctlError:
        """Return the error of a log that begins after the offset or ends before it, by ``begin``
        and the settings.
        """
        if self._source.reset == "none":
            return unset(self._source.alias, str(topic_partition))
        why = f"Offset {self._next.get(topic_partition)} of {topic_partition} is out of range"
        return Unreachable(UNREADABLE.format(self._source.alias), why=why)

    def read(self, most: int) -> list[TopicBatch]:
        """Return the next records, ``most`` of them; none where there are none for now.

        Raises ``ConnectctlError``, after which it has to begin again.
        """
        batch = self._asked(lambda: self._consumer.consume(min(self._size, most), WAIT))
        good = [m for m in batch if m.error() is None]
        found = _by_topic(good)
        for each in found:
            remaining = {
                TopicPartition(each.topic, partition): last + 1
                for partition, last in each.last.items()
            }
            self._next.update(remaining)
            self._at_end.difference_update(remaining)
        if good:
            self._lost = None
            self._size = max(1, min(MOST, BATCH_BYTES * len(good) // max(sum(map(len, good)), 1)))
        try:
            if len(good) < len(batch):
                for event in (m for m in batch if m.error() is not None):
                    self._take(event)
            if not good and self._lost is not None:
                self._look_for_brokers(*self._lost)
        except ConnectctlError:
            self.close()
            raise
        return found

    def _asked(self, call: Callable[[], Any]) -> Any:
        """Return the consumer's result; close a consumer that fails."""
        assert self._kafka is not None
        try:
            with unreachable(self._source.alias):
                return self._kafka.ask("read", call)
        except ConnectctlError:
            self.close()
            raise

    def _take(self, event: Any) -> None:
        from confluent_kafka import KafkaError

        assert self._kafka is not None
        error, partition = event.error(), TopicPartition(event.topic(), event.partition())
        if error.code() == KafkaError._PARTITION_EOF:
            if partition in self._next and event.offset() >= self._next[partition]:
                # Markers and aborted records, which consumers do not return, were passed.
                self._next[partition] = event.offset()
                self._at_end.add(partition)
        elif error.name() in _GONE:
            what = (
                f"partition {partition}" if partition.partition >= 0 else f"topic {partition.topic}"
            )
            raise partition_gone(self._source.alias, what)
        elif error.name() == "_AUTO_OFFSET_RESET":
            raise self._out_of_range(partition)
        elif not error.retriable() and error.name() not in _PASSING:
            raise self._kafka.failure(error, f"read {partition.topic or 'topics'}")

    def _on_error(self, error: Any) -> None:
        if error.name() == "_ALL_BROKERS_DOWN" and self._lost is None:
            self._lost = time.monotonic(), error.str()

    def _look_for_brokers(self, since: float, words: str) -> None:
        """Check whether a broker is back, because without new records no record shows it."""
        from confluent_kafka import KafkaException

        now = time.monotonic()
        if now - self._looked < POLL:
            return
        try:
            self._consumer.get_watermark_offsets(*positions([next(iter(self._next))]), POLL)
            self._lost = None
        except KafkaException as e:
            self._looked = time.monotonic()
            if now - since > self._source.timeout:
                why = f"{words}; no records for {now - since:.0f} s"
                raise Unreachable(UNREADABLE.format(self._source.alias), why=why) from e

    @property
    def has_more(self) -> bool:
        """Return whether there may be more to read: it does not read, an end was not reached yet,
        or no broker responds.
        """
        return (
            self._consumer is None or len(self._at_end) < len(self._next) or self._lost is not None
        )

    @property
    def lag(self) -> int | None:
        """Return the number of offsets to read, as far as the ends are known, with markers and
        aborted records.
        """
        if self._consumer is None:
            return None
        total = 0
        for partition, at in self._next.items():
            if partition not in self._at_end:
                known = self._consumer.get_watermark_offsets(*positions([partition]), cached=True)
                end = offset_of(known[1]) if known else None
                if end is None:
                    return None
                total += max(0, end - at)
        return total

    def close(self) -> None:
        from confluent_kafka import KafkaException

        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with suppress(KafkaException):
                consumer.close()


def _by_topic(messages: list[Any]) -> list[TopicBatch]:
    """Return the messages by topic, each partition's in their order."""
    found: dict[str, list[Any]] = {}
    for message in messages:
        found.setdefault(message.topic(), []).append(message)
    return [
        TopicBatch(topic, records, {m.partition(): m.offset() for m in records})
        for topic, records in found.items()
    ]
