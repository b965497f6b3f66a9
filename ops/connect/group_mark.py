"""The mark of a group in its config topic: whose topic it is, and which are the group's other topics.

A job of connectctl writes it as further members of its commit records; workers read past members that they do not know. So
the topics of a group without workers are not taken for those of another group on the same Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

GROUP, OFFSETS, STATUS = "group.id", "offset.storage.topic", "status.storage.topic"
"""The names that these have in a worker's properties."""


@dataclass(frozen=True)
class GroupMark:
    """The group of a config topic, with its offsets and status topics as far as they are known."""

    group_id: str
    offsets: str | None = None
    status: str | None = None

    @property
    def topics(self) -> dict[str, str]:
        """The other topics of the group, by role."""
        known = {"offsets": self.offsets, "status": self.status}
        return {role: topic for role, topic in known.items() if topic}

    def members(self) -> dict[str, str]:
        """What is added to the value of a commit record."""
        named = {GROUP: self.group_id, OFFSETS: self.offsets, STATUS: self.status}
        return {name: value for name, value in named.items() if value}


def mark_in(commit: Mapping[str, Any]) -> GroupMark | None:
    """The mark in the value of a commit record, None where it has none, as those of workers."""
    group, offsets, status = (commit.get(name) for name in (GROUP, OFFSETS, STATUS))
    if not isinstance(group, str) or not group:
        return None
    return GroupMark(group, *(topic if isinstance(topic, str) else None for topic in (offsets, status)))
