"""Groups of consumers: members with what they subscribed to, and how far they have committed, to
read and to change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from typing import Any

from connectctl.ops.clients.kafka_protocol import group_offsets
from connectctl.ops.clients.kafka_protocol.client import KafkaProtocolClient
from connectctl.ops.clients.kafka_protocol.coordinator_loaded import settle
from connectctl.ops.clients.kafka_protocol.group_coordinator import Coordinator, coordinated
from connectctl.ops.clients.kafka_protocol.pending_offsets import holder_of
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.clients.librdkafka.named_groups import describe
from connectctl.ops.core.errors import BadInput, ConnectctlError, NotAuthorized
from connectctl.ops.kafka.consumer_group import (
    ClientGroup,
    GroupMember,
    assigned_partitions,
    streams_member,
)
from connectctl.ops.kafka.topic_partition import TopicPartition


class ClientGroups:
    """The groups of the cluster that ``kafka`` is connected to; see ``GroupReads``."""

    def __init__(self, kafka: Kafka):
        self._kafka = kafka

    def group(self, group_id: str) -> ClientGroup:
        found = describe(self._kafka, group_id)
        if found is None:
            return ClientGroup(group_id, "Dead", "")
        return ClientGroup(
            group_id, str(found.state), found.protocol_type, tuple(map(_member, found.members))
        )

    def committed(self, group_id: str) -> dict[TopicPartition, int]:
        settle(self._kafka, group_id)
        return coordinated(self._kafka, group_id, Coordinator.committed)

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        requested = set(partitions)
        extents = self._kafka.extents(sorted({topic for topic, _ in requested}))
        return {
            partition: extent.stable
            for topic, parts in extents.items()
            for number, extent in parts.items()
            if (partition := TopicPartition(topic, number)) in requested
        }


class GroupOffsetClient(ClientGroups):
    """The groups of one Kafka cluster, whatever protocol their members speak; see
    ``GroupOffsetWrites``.
    """

    def group(self, group_id: str) -> ClientGroup:
        """See ``GroupReads``; the members of a group of KIP-848 are not named."""
        try:
            return super().group(group_id)
        except BadInput as e:
            if e.code != "other-group":
                raise
        state = coordinated(self._kafka, group_id, group_offsets.newer_state)
        return ClientGroup(group_id, state or "Dead")

    def stable(self, group_id: str) -> dict[TopicPartition, int]:
        settle(self._kafka, group_id)
        return coordinated(
            self._kafka,
            group_id,
            lambda c: group_offsets.stable(c, lambda: holder_of(self._kafka, group_id)),
        )

    def pending(
        self, group_id: str, partitions: Collection[TopicPartition]
    ) -> frozenset[TopicPartition]:
        """See ``GroupOffsetWrites``."""
        if not partitions:
            return frozenset()
        return coordinated(self._kafka, group_id, lambda c: c.stable_offsets(partitions)[1])

    def holder(self, group_id: str) -> str:
        """See ``GroupOffsetWrites``."""
        return holder_of(self._kafka, group_id)

    def names(self) -> frozenset[str]:
        """See ``GroupOffsetWrites``."""
        (future,) = self._kafka.admin_request(
            lambda admin, seconds: {None: admin.list_consumer_groups(request_timeout=seconds)}
        ).values()
        return frozenset(
            each.group_id
            for each in self._kafka.ask("list the consumer groups", future.result).valid
        )

    def committed_of(
        self, group_ids: Sequence[str]
    ) -> dict[str, dict[TopicPartition, int] | ConnectctlError]:
        """See ``GroupOffsetWrites``. On one connection to each coordinator: there may be thousands
        of groups.
        """
        settle(self._kafka, *group_ids)
        with closing(KafkaProtocolClient(self._kafka.client, timeout=self._kafka.timeout)) as wire:
            return {group: self._one(wire, group) for group in group_ids}

    def _one(
        self, wire: KafkaProtocolClient, group_id: str
    ) -> dict[TopicPartition, int] | ConnectctlError:
        try:
            return Coordinator(wire, group_id, self._kafka.timeout).committed()
        except NotAuthorized as e:
            return e

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        coordinated(self._kafka, group_id, lambda c: group_offsets.commit(c, offsets))

    def delete(self, group_id: str, partitions: Sequence[TopicPartition]) -> None:
        coordinated(self._kafka, group_id, lambda c: group_offsets.delete(c, partitions))


def _member(raw: Any) -> GroupMember:
    host = str(raw.client_host).removeprefix("/")
    streams = streams_member(bytes(raw.metadata or b""))
    return GroupMember(
        raw.id, raw.client_id, host, streams, len(assigned_partitions(bytes(raw.assignment or b"")))
    )
