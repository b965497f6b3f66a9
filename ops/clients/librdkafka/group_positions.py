"""Partitions, offsets and memberships as librdkafka's consumers and producers take and give
them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from confluent_kafka import TopicPartition as Position
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.group_positions import GroupMembership, GroupOffset
from connectctl.ops.kafka.topic_partition import TopicPartition

_MAGIC = b"CGMDv2:"


def positions(partitions: Iterable[TopicPartition]) -> list[Position]:
    """Partitions, without offsets."""
    return [Position(topic, number) for topic, number in sorted(partitions)]


def positions_at(offsets: Mapping[TopicPartition, int]) -> list[Position]:
    """Partitions with the offset of the next record, or one of librdkafka's logical offsets."""
    return [Position(topic, number, offset) for (topic, number), offset in sorted(offsets.items())]


def group_offsets(offsets: Mapping[TopicPartition, GroupOffset]) -> list[Position]:
    """Return the offsets that a consumer group commits, with leader epoch and metadata if there are
    any.
    """
    return [_group_offset(*partition, each) for partition, each in sorted(offsets.items())]


def _group_offset(topic: str, number: int, each: GroupOffset) -> Position:
    epoch = {} if each.leader_epoch is None else {"leader_epoch": each.leader_epoch}
    return Position(topic, number, each.offset, metadata=each.metadata, **epoch)


def membership(metadata: bytes) -> GroupMembership:
    """Return the content of confluent-kafka's ``consumer_group_metadata()``, which has no
    accessors. Source: ``rd_kafka_consumer_group_metadata_write``. Raises ``ConnectctlError`` for
    another form.
    """
    form, rest = metadata[: len(_MAGIC)], metadata[len(_MAGIC) + 4 :]
    parts = rest.split(b"\0", 2)
    if form != _MAGIC or len(parts) < 3 or not parts[2]:
        raise ConnectctlError(
            "The version of librdkafka describes group members in an unknown form",
            why=f"it begins with {form!r}",
            next_step="Install confluent-kafka in a version that connectctl is tested with.",
        )
    group, member, instance = parts
    # A byte that is not 0 if there is none, then the id.
    instance_id = None if instance[0] else instance[1:].rstrip(b"\0").decode()
    generation = int.from_bytes(metadata[len(_MAGIC) : len(_MAGIC) + 4], sys.byteorder, signed=True)
    return GroupMembership(group.decode(), generation, member.decode(), instance_id)
