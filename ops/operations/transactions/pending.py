"""The offsets of consumer groups that open transactions hold: pending until these end (KIP-447)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import ConnectctlError, NotAuthorized
from connectctl.ops.kafka.partitioner import coordinator_partition
from connectctl.ops.kafka.topic_partition import TopicPartition

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import GroupOffsetWrites, TransactionCalls
    from connectctl.ops.kafka.transactions import Transaction

OFFSETS_TOPIC = "__consumer_offsets"


@dataclass(frozen=True)
class PendingOffsets:
    """The ``partitions`` of which offsets of ``group`` are pending."""

    group: str
    partitions: tuple[TopicPartition, ...]

    def __str__(self) -> str:
        return f"{self.group}: {', '.join(map(str, self.partitions))}"

    def as_json(self) -> dict[str, Any]:
        """Return it for scripts."""
        partitions = [{"topic": topic, "partition": number} for topic, number in self.partitions]
        return {"groupId": self.group, "topicPartitions": partitions}


def pending_offsets(
    calls: TransactionCalls, groups: GroupOffsetWrites, transactions: Iterable[Transaction]
) -> dict[str, tuple[PendingOffsets, ...]]:
    """Return the pending offsets by the transactional id that holds them, or that may hold them
    where several open transactions have the group's partition of ``__consumer_offsets``. Of groups
    that have committed nothing before, and that this principal may not describe, nothing is seen.
    """
    holders: dict[int, list[str]] = {}
    for each in transactions:
        for place in each.partitions if each.is_open else ():
            if place.topic == OFFSETS_TOPIC:
                holders.setdefault(place.partition, []).append(each.id)
    found: dict[str, tuple[PendingOffsets, ...]] = {}
    if not holders:
        return found
    with suppress(ConnectctlError):
        count = len(calls.places([OFFSETS_TOPIC]))
        for group in sorted(groups.names()) if count else ():
            ids = holders.get(coordinator_partition(group, count), [])
            if ids and (places := _pending(groups, group)):
                found |= {id_: (*found.get(id_, ()), PendingOffsets(group, places)) for id_ in ids}
    return found


def _pending(groups: GroupOffsetWrites, group: str) -> tuple[TopicPartition, ...]:
    try:
        return tuple(sorted(groups.pending(group, groups.committed(group))))
    except NotAuthorized:
        return ()
