"""The engine that reads offsets topics: as requested, or by size and memory."""

from __future__ import annotations

from enum import StrEnum

from connectctl.ops.clients.protocols import KafkaReads
from connectctl.ops.kafka import memory

AUDIT_THRESHOLD = 1_000_000
"""The number of records from which ``auto`` audits with Spark: this process reads as many while a
session starts.
"""


class Choice(StrEnum):
    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


def wants_spark(choice: Choice, kafka: KafkaReads, topic: str, *, installed: bool) -> bool:
    """Return whether Spark reads ``topic``: because it was requested, or is installed and memory
    might not suffice.
    """
    if choice is not Choice.AUTO:
        return choice is Choice.SPARK
    return installed and not memory.holds(size(kafka, topic))


def size(kafka: KafkaReads, topic: str) -> int:
    """Return the maximum number of records in ``topic``; offsets that compaction has removed are
    counted.
    """
    return sum(
        extent.end - extent.first for extent in kafka.extents([topic]).get(topic, {}).values()
    )
