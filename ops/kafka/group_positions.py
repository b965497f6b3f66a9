"""The committed offsets of a consumer group, with what is unknown told apart from what was never committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from connectctl.ops.kafka.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """What a consumer group has committed for a partition: the ``offset`` of the next record, the leader epoch of the last
    one where it is known, and metadata.
    """

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


@dataclass(frozen=True)
class GroupPositions:
    """What a group has committed by topic and partition. ``unknown`` says why, where that could not be read; what is in
    neither has no committed offset.
    """

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    unknown: Mapping[TopicPartition, str] = field(default_factory=dict)
