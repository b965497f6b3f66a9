"""The committed offsets of a consumer group, which distinguish unknown ones from missing ones, and
the member that commits them in a transaction: the group's coordinator verifies it (KIP-447).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.kafka.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """An offset that a consumer group has committed for a partition: the ``offset`` of the next
    record, the leader epoch of the last one if it is known, and metadata.
    """

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


@dataclass(frozen=True)
class GroupMembership:
    """A current member of ``group``. With the protocol of KIP-848 the generation is the member's
    epoch. ``instance_id`` is ``group.instance.id``, None for a dynamic member.
    """

    group: str
    generation: int
    member_id: str
    instance_id: str | None = None


def next_offsets(messages: Iterable[Any]) -> dict[TopicPartition, GroupOffset]:
    """Return for each partition the offset after the last of ``messages``, which are librdkafka's,
    with its leader epoch.
    """
    last = {TopicPartition(message.topic(), message.partition()): message for message in messages}
    found = {}
    for partition, message in last.items():
        epoch = message.leader_epoch()
        found[partition] = GroupOffset(
            message.offset() + 1, None if epoch is None or epoch < 0 else epoch
        )
    return found


@dataclass(frozen=True)
class GroupPositions:
    """The committed offsets of a group by topic and partition. ``unknown`` has the reason why an
    offset could not be read; a partition in neither has no committed offset.
    """

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    unknown: Mapping[TopicPartition, str] = field(default_factory=dict)
