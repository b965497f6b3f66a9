"""A consumer group of one member, in memory: all partitions are its own, from the committed offsets
on.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connectctl.ops.kafka.group_positions import GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.group.consumer import (
    Assigned,
    GroupEvent,
    GroupOffsets,
    Polled,
    Revoked,
)
from connectctl.ops.task_runtime.spi.transform import Record
from connectctl.ops.task_runtime.testing.faults import Fault
from connectctl.ops.task_runtime.testing.memory_kafka import MemoryKafka

EMPTY_POLL = 1.0
"""Seconds that the clock moves on, at least, in a poll that gives nothing."""
Given = Record | bytes | str | None | Mapping[str, Any] | Sequence[Any]
"""A record of an input topic: its value as bytes, text, or what JSON has for it; or a ``Record``,
to give it a key, headers, a partition or a timestamp. None is a tombstone.
"""


@dataclass(frozen=True)
class Message:
    """A message with the methods of confluent-kafka's."""

    topic_partition: TopicPartition
    number: int
    record: Record

    def topic(self) -> str:
        return self.topic_partition.topic

    def partition(self) -> int:
        return self.topic_partition.partition

    def offset(self) -> int:
        return self.number

    def key(self) -> bytes | None:
        return self.record.key

    def value(self) -> bytes | None:
        return self.record.value

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return list(self.record.headers) or None

    def timestamp(self) -> tuple[int, int]:
        """Kind and milliseconds; 0 is none, 1 CreateTime."""
        return (0, -1) if self.record.timestamp is None else (1, self.record.timestamp)

    def leader_epoch(self) -> int:
        return 0


Log = Mapping[TopicPartition, Sequence[Message]]


def log_of(topics: Mapping[str, Sequence[Given]]) -> Log:
    """Return the records of ``topics`` by partition; 0 where a record names none."""
    found: dict[TopicPartition, list[Message]] = {}
    for topic, records in topics.items():
        found[TopicPartition(topic, 0)] = []
        for each in records:
            record = each if isinstance(each, Record) else Record(_bytes(each))
            partition = TopicPartition(topic, record.partition or 0)
            messages = found.setdefault(partition, [])
            messages.append(Message(partition, len(messages), record))
    return found


def _bytes(given: Any) -> bytes | None:
    if given is None or isinstance(given, bytes):
        return given
    return given.encode() if isinstance(given, str) else json.dumps(given).encode()


class MemoryConsumer:
    """As ``GroupConsumer``. ``log`` has the input."""

    metadata: Any = None

    def __init__(self, kafka: MemoryKafka, log: Log):
        self._kafka, self._log = kafka, log
        self._positions: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._changes: Iterator[GroupEvent] = iter(())

    def took(self, call: str, seconds: float) -> None:
        """Do nothing: no interval is exceeded here."""

    @property
    def lag(self) -> int | None:
        return sum(max(0, len(self._log[each]) - at) for each, at in self._positions.items())

    @property
    def has_more(self) -> bool:
        return bool(self.lag)

    def join(self) -> None:
        self._changes = iter([self._assign(sorted(self._log))])

    def _assign(self, partitions: Sequence[TopicPartition]) -> Assigned:
        positions = {**dict.fromkeys(partitions, GroupOffset(0)), **self.committed(partitions)}
        self._positions |= {each: positions[each].offset for each in partitions}
        self._paused -= set(partitions)
        return Assigned(partitions, positions)

    def _rebalance(self, partitions: Sequence[TopicPartition]) -> Iterator[GroupEvent]:
        yield Revoked(partitions)
        self._positions = {
            each: at for each, at in self._positions.items() if each not in partitions
        }
        yield self._assign(partitions)

    def poll(self, seconds: float, most: int) -> GroupEvent:
        """Return the next event; the clock moves on where there are no records."""
        if (change := next(self._changes, None)) is not None:
            return change
        for fault, most_revoked in (
            (Fault.REBALANCE, len(self._log)),
            (Fault.PARTIAL_REBALANCE, 1),
        ):
            if self._kafka.faults.next(fault.occasion) is fault:
                self._changes = self._rebalance(sorted(self._positions)[:most_revoked])
                return self.poll(seconds, most)
        found = list(self._next(most))
        if not found:
            self._kafka.seconds += max(seconds, EMPTY_POLL)
        return Polled(found)

    def _next(self, most: int) -> Iterator[Message]:
        for each in sorted(self._positions.keys() - self._paused):
            at = self._positions[each]
            messages = self._log[each][at : at + most]
            self._positions[each] += len(messages)
            most -= len(messages)
            yield from messages

    def committed(self, partitions: Collection[TopicPartition]) -> GroupOffsets:
        return {each: self._kafka.group[each] for each in partitions if each in self._kafka.group}

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._positions |= offsets

    def rewind(self) -> bool:
        return False

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        self._paused |= set(partitions)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        self._paused -= set(partitions)

    def commit(self, offsets: GroupOffsets) -> None:
        """Commit without a transaction. Raises ``UnknownOutcome`` for such a fault."""
        self._kafka.commit((), {}, offsets)

    def close(self) -> None:
        self._positions = {}


def committed_offsets(numbers: Mapping[TopicPartition, int]) -> dict[TopicPartition, GroupOffset]:
    return {each: GroupOffset(number) for each, number in numbers.items()}
