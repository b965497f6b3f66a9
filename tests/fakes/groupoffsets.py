"""Groups of consumers in memory, with committed offsets that can be changed while a group has no
members.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from connectctl.ops.core.errors import BadInput, ConnectctlError, NotAuthorized, Refused
from connectctl.ops.kafka.consumer_group import ClientGroup, GroupMember
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.visibility import describe_group, not_authorized


@dataclass
class FakeGroupOffsets:
    """Keeps ``GroupOffsetWrites``. ``members`` are client ids by group; ``hidden`` groups may not
    be described.

    ``pending_groups`` have offsets in an open transaction, ``newer`` ones are of KIP-848, ``kinds``
    are of other protocols. ``gone`` are topics that do not exist. ``leaving`` is how many looks
    more a group's members are there.
    """

    offsets: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    pending_groups: set[str] = field(default_factory=set)
    newer: set[str] = field(default_factory=set)
    kinds: dict[str, str] = field(default_factory=dict)
    leaving: dict[str, int] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def group(self, group_id: str) -> ClientGroup:
        self._may(group_id)
        if group_id in self.leaving:
            self.leaving[group_id] -= 1
            if self.leaving[group_id] < 0:
                self.members.pop(group_id, None)
        ids = self.members.get(group_id, [])
        state = "Stable" if ids else "Empty" if group_id in self.offsets else "Dead"
        named = (
            ()
            if group_id in self.newer
            else tuple(GroupMember(f"{c}-1", c, "10.0.0.1") for c in ids)
        )
        return ClientGroup(group_id, state, self.kinds.get(group_id, "consumer"), named)

    def committed(self, group_id: str) -> dict[TopicPartition, int]:
        self._may(group_id)
        return dict(self.offsets.get(group_id, {}))

    def stable(self, group_id: str) -> dict[TopicPartition, int]:
        if group_id in self.pending_groups:
            raise Refused(
                f"An open transaction holds offsets of the group {group_id}", code="pending"
            )
        return self.committed(group_id)

    def pending(
        self, group_id: str, partitions: Collection[TopicPartition]
    ) -> frozenset[TopicPartition]:
        self._may(group_id)
        return frozenset(partitions) if group_id in self.pending_groups else frozenset()

    def holder(self, group_id: str) -> str:
        return "the transaction of app-0"

    def names(self) -> frozenset[str]:
        return frozenset(self.offsets) - self.hidden

    def committed_of(
        self, group_ids: Sequence[str]
    ) -> dict[str, dict[TopicPartition, int] | ConnectctlError]:
        found: dict[str, dict[TopicPartition, int] | ConnectctlError] = {}
        for group_id in group_ids:
            try:
                found[group_id] = self.committed(group_id)
            except NotAuthorized as e:
                found[group_id] = e
        return found

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        raise NotImplementedError

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        self._nobody(group_id)
        there = {place: offset for place, offset in offsets.items() if place.topic not in self.gone}
        self.offsets.setdefault(group_id, {}).update(there)
        for place in offsets.keys() - there.keys():
            raise BadInput(f"Partition not found: {place}", code="no-topic")

    def delete(self, group_id: str, partitions: Sequence[TopicPartition]) -> None:
        self._nobody(group_id)
        for place in partitions:
            self.offsets.get(group_id, {}).pop(place, None)

    def _may(self, group_id: str) -> None:
        if group_id in self.hidden:
            raise not_authorized(
                f"Not authorized to see the group {group_id}", describe_group(group_id)
            )

    def _nobody(self, group_id: str) -> None:
        self._may(group_id)
        if self.members.get(group_id):
            raise Refused(
                f"The offsets of the group {group_id} were not changed: it has members",
                code="in-use",
            )
