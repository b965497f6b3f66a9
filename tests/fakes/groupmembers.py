"""A consumer group and its members."""

from __future__ import annotations

import struct
from collections.abc import Collection
from typing import Any

from connectctl.ops.clients.kafka_protocol.group_coordinator import Described, RawMember
from connectctl.ops.kafka.topic_partition import TopicPartition


class Group:
    """A coordinator that describes ``members`` and remembers who was removed."""

    def __init__(
        self, *members: RawMember, state: str = "Stable", refuses: dict[str, int] | None = None
    ):
        self.described: Described | None = Described(
            state, "consumer", "cooperative-sticky", members
        )
        self.removed: list[str] = []
        self.pending: frozenset[TopicPartition] = frozenset()
        self.refuses = refuses or {}

    def describe(self) -> Described | None:
        return self.described

    def stable_offsets(self, partitions: Collection[TopicPartition]) -> Any:
        return {}, frozenset(partitions) & self.pending

    def remove_static(self, ids: Collection[str]) -> dict[str, int]:
        self.removed += sorted(ids)
        return {id_: code for id_, code in self.refuses.items() if id_ in ids}


def member(instance: str | None, *partitions: int, topic: str = "in") -> RawMember:
    name = topic.encode()
    data = struct.pack(">hih", 1, 1, len(name)) + name
    data += struct.pack(f">i{len(partitions)}i", len(partitions), *partitions) + struct.pack(
        ">i", -1
    )
    return RawMember("m", "c", "/h", b"", data, instance)
