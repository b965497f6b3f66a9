"""Who commits offsets of a consumer group in a transaction: what the group's coordinator checks it by (KIP-447)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GroupMembership:
    """A member of ``group`` as it is now. With the protocol of KIP-848 the generation is the member's epoch. ``instance_id``
    is ``group.instance.id``, None for a dynamic member.
    """

    group: str
    generation: int
    member_id: str
    instance_id: str | None = None
