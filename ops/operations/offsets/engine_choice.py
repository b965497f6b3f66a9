"""The engine that reads offsets topics: as requested, or by size and memory."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from connectctl.ops.kafka import memory

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import KafkaReads

AUDIT_THRESHOLD = 1_000_000
"""Records from which on ``auto`` audits with Spark: its session takes as long to start as this process to read so many."""


class Choice(StrEnum):
    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


def wants_spark(choice: Choice, kafka: KafkaReads, topic: str, *, installed: bool) -> bool:
    """Return whether Spark reads ``topic``: because it was requested, or is installed and memory might not suffice."""
    if choice is not Choice.AUTO:
        return choice is Choice.SPARK
    return installed and not memory.holds(size(kafka, topic))


def size(kafka: KafkaReads, topic: str) -> int:
    """Return how many records ``topic`` has at most: offsets that compaction has removed are counted, too."""
    return sum(extent.end - extent.first for extent in kafka.extents([topic]).get(topic, {}).values())
