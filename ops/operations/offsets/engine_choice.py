"""Which engine reads the offsets topics: as requested, or by size."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import KafkaReads

THRESHOLD = 12_000_000
"""Records in the global offsets topic from which on ``auto`` takes Spark: docs/decisions/0005."""
AUDIT_THRESHOLD = 1_000_000
"""Records from which on ``auto`` audits with Spark: its session takes as long to start as this process to read so many."""


class Choice(StrEnum):
    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


def wants_spark(choice: Choice, kafka: KafkaReads, topic: str, *, installed: bool) -> bool:
    """Whether Spark is to read ``topic``: because it was requested, or because the topic is large and Spark is installed."""
    if choice is not Choice.AUTO:
        return choice is Choice.SPARK
    return installed and size(kafka, topic) >= THRESHOLD


def size(kafka: KafkaReads, topic: str) -> int:
    """How many records ``topic`` has at most: offsets that compaction has removed are counted, too."""
    return sum(extent.end - extent.first for extent in kafka.extents([topic]).get(topic, {}).values())
