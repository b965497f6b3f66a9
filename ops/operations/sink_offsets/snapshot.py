"""What was read of a sink's consumer group, and what is to become of its offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.kafka.consumer_group import ClientGroup
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.topics import OffsetRange

TOPIC, PARTITION, OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"
"""KIP-875's keys, as ``GET /connectors/NAME/offsets`` has them (``SinkUtils``)."""
_WITHOUT_MEMBERS = ("Empty", "Dead")


@dataclass(frozen=True)
class GroupOffsets:
    """A group with its offsets. ``name`` is the connector's, the group's own where no connector was named.

    ``ranges`` has the partitions of the topics that it committed, or is configured for, where those exist; ``unseen`` are
    the topics that may not be described, so that nothing is known of their partitions, and of what is committed of them.
    """

    name: str
    group: ClientGroup
    committed: Mapping[TopicPartition, int]
    ranges: Mapping[str, Mapping[int, OffsetRange]] = field(default_factory=dict)
    unseen: frozenset[str] = frozenset()
    connector: bool = True

    @property
    def members(self) -> tuple[str, ...]:
        """Who is in the group, by client id and host; the state alone where the coordinator names none."""
        named = tuple(f"{member.client_id} at {member.host}" for member in self.group.members)
        return named or (() if self.group.state in _WITHOUT_MEMBERS else (f"state {self.group.state}",))

    @property
    def uncommitted(self) -> tuple[TopicPartition, ...]:
        """The partitions without a committed offset: a task begins there by ``auto.offset.reset``."""
        there = sorted(TopicPartition(topic, p) for topic, parts in self.ranges.items() for p in parts)
        return tuple(place for place in there if place not in self.committed)

    def range_of(self, place: TopicPartition) -> OffsetRange | None:
        """Where a partition begins and ends; None where that is unknown, or the partition does not exist."""
        return self.ranges.get(place.topic, {}).get(place.partition)

    def lag(self, place: TopicPartition) -> int | None:
        """How many offsets the partition has beyond the committed one; None where its end is unknown."""
        known = self.range_of(place)
        return None if known is None else max(0, known.end - self.committed[place])


def partition_json(place: TopicPartition) -> dict[str, Any]:
    return {TOPIC: place.topic, PARTITION: place.partition}


def offset_json(offset: int | None) -> dict[str, Any] | None:
    """A committed offset as KIP-875 names it, None for none."""
    return None if offset is None else {OFFSET: offset}


def entries_json(committed: Mapping[TopicPartition, int]) -> list[dict[str, Any]]:
    """Offsets as ``GET /connectors/NAME/offsets`` has them, by topic and partition."""
    return [
        {"partition": partition_json(place), "offset": offset_json(committed[place])} for place in sorted(committed)
    ]


MOST_MEMBERS = 5
"""Members of a group that a message names."""


def topics_of(committed: Iterable[TopicPartition]) -> list[str]:
    return sorted({topic for topic, _ in committed})
