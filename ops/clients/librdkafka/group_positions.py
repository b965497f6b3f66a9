"""Partitions and offsets as librdkafka's consumers and producers take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka import TopicPartition


def positions(partitions: Iterable[tuple[str, int]]) -> list[TopicPartition]:
    """Partitions, without offsets."""
    return [TopicPartition(topic, number) for topic, number in sorted(partitions)]


def positions_at(offsets: Mapping[tuple[str, int], int]) -> list[TopicPartition]:
    """Partitions with the offset of the next record, or one of librdkafka's logical offsets."""
    return [TopicPartition(topic, number, offset) for (topic, number), offset in sorted(offsets.items())]


def group_offset(topic: str, number: int, offset: int, leader_epoch: int | None, metadata: str) -> TopicPartition:
    """What a consumer group is to have committed."""
    epoch = {} if leader_epoch is None else {"leader_epoch": leader_epoch}
    return TopicPartition(topic, number, offset, metadata=metadata, **epoch)
