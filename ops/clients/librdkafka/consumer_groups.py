"""Groups of consumers through librdkafka: members with what they subscribed to, and how far they have committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.kafka_protocol.coordinator_loaded import settle
from connectctl.ops.clients.kafka_protocol.group_coordinator import Coordinator, coordinated
from connectctl.ops.clients.librdkafka.named_groups import describe
from connectctl.ops.kafka.consumer_group import ClientGroup, GroupMember, assigned_partitions, streams_member
from connectctl.ops.kafka.topic_partition import TopicPartition

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka


class ClientGroups:
    """The groups of the cluster that ``kafka`` is connected to; see ``GroupReads``."""

    def __init__(self, kafka: Kafka):
        self._kafka = kafka

    def group(self, group_id: str) -> ClientGroup:
        found = describe(self._kafka, group_id)
        if found is None:
            return ClientGroup(group_id, "Dead", "")
        return ClientGroup(group_id, str(found.state), found.protocol_type, tuple(map(_member, found.members)))

    def committed(self, group_id: str) -> dict[TopicPartition, int]:
        settle(self._kafka, group_id)
        return coordinated(self._kafka, group_id, Coordinator.committed)

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        wanted = set(partitions)
        extents = self._kafka.extents(sorted({topic for topic, _ in wanted}))
        return {
            place: extent.stable
            for topic, parts in extents.items()
            for number, extent in parts.items()
            if (place := TopicPartition(topic, number)) in wanted
        }


def _member(raw: Any) -> GroupMember:
    host = str(raw.client_host).removeprefix("/")
    streams = streams_member(bytes(raw.metadata or b""))
    return GroupMember(raw.id, raw.client_id, host, streams, len(assigned_partitions(bytes(raw.assignment or b""))))
