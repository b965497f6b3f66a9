"""Offsets of a consumer group as librdkafka takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.librdkafka.group_positions import group_offset

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.group.consumer import GroupOffsets


def librdkafka_offsets(offsets: GroupOffsets) -> list[Any]:
    """confluent-kafka's ``TopicPartition`` of each, with leader epoch and metadata where there are any."""
    return [
        group_offset(place.topic, place.partition, each.offset, each.leader_epoch, each.metadata)
        for place, each in sorted(offsets.items())
    ]
