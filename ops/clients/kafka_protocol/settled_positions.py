"""The committed offsets of a group for some partitions, which distinguish unknown ones from missing
ones.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from connectctl.ops.clients.kafka_protocol.coordinator_loaded import settle
from connectctl.ops.clients.kafka_protocol.group_coordinator import Coordinator, coordinated
from connectctl.ops.clients.kafka_protocol.pending_offsets import holder_of
from connectctl.ops.core.errors import ConnectctlError, NotAuthorized, Unreachable
from connectctl.ops.kafka.group_positions import GroupPositions
from connectctl.ops.kafka.topic_partition import TopicPartition

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka

POLL = 0.2
"""Seconds between requests for offsets that an open transaction holds."""


def positions(kafka: Kafka, group: str, topics: Sequence[str], patience: float) -> GroupPositions:
    """The committed offsets of ``group`` in ``topics``, once transactions that hold some have
    ended, or after ``patience`` seconds.

    Offsets that the group's coordinator does not give are unknown, with its reason. Raises
    ``Unreachable``.
    """

    partitions = frozenset(
        TopicPartition(t, n)
        for t, count in kafka.partition_counts(topics).items()
        for n in range(count)
    )

    def read(coordinator: Coordinator) -> GroupPositions:
        end = time.monotonic() + patience
        known, remaining = dict[TopicPartition, int](), partitions
        while remaining:
            found, remaining = coordinator.stable_offsets(remaining)
            known |= {partition: each.offset for partition, each in found.items()}
            if not remaining or time.monotonic() > end:
                break
            time.sleep(POLL)
        pending = f"{holder_of(kafka, group)} holds its offset" if remaining else ""
        return GroupPositions(known, dict.fromkeys(remaining, pending))

    try:
        settle(kafka, group)
        return coordinated(kafka, group, read)
    except ConnectctlError as e:
        if isinstance(e, Unreachable) and not isinstance(e, NotAuthorized):
            raise
        return GroupPositions(
            unknown=dict.fromkeys(partitions, f"{e}: {e.why}" if e.why else str(e))
        )
