"""The mark of a group in its config topic: the owner of the topic, and the group's other topics.

A job of connectctl writes it as additional members of its commit records; workers ignore members
that they do not know. Thus the topics of a group without workers are not mistaken for those of
another group on the same Kafka cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GROUP, OFFSETS, STATUS = "group.id", "offset.storage.topic", "status.storage.topic"
"""The names of group, offsets topic and status topic in a worker's properties."""


@dataclass(frozen=True)
class GroupMark:
    """The group of a config topic, with its offsets and status topics where they are known."""

    group_id: str
    offsets: str | None = None
    status: str | None = None

    @property
    def topics(self) -> dict[str, str]:
        """Return the other topics of the group, by role."""
        known = {"offsets": self.offsets, "status": self.status}
        return {role: topic for role, topic in known.items() if topic}

    def members(self) -> dict[str, str]:
        """Return the members to add to the value of a commit record."""
        named = {GROUP: self.group_id, OFFSETS: self.offsets, STATUS: self.status}
        return {name: value for name, value in named.items() if value}


def mark_in(commit: Mapping[str, Any]) -> GroupMark | None:
    """Return the mark in the value of a commit record, None if it has none, as records of
    workers.
    """
    group, offsets, status = (commit.get(name) for name in (GROUP, OFFSETS, STATUS))
    if not isinstance(group, str) or not group:
        return None
    return GroupMark(
        group, *(topic if isinstance(topic, str) else None for topic in (offsets, status))
    )
