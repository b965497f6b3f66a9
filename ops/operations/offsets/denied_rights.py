"""Rights that a change needs and that brokers report as missing, without the change being tried."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from connectctl.ops.kafka.acls import Operation, Resource, Right

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import RightsReads


def denied(reads: RightsReads, rights: Iterable[Right]) -> Right | None:
    """Return the first of ``rights`` that is missing by what brokers report; None where they report nothing against them.

    Brokers report nothing of a topic that does not exist yet but whether it can be created, and of a transactional id
    only whether it may be described.
    """
    needed = list(dict.fromkeys(rights))
    topics = reads.on_topics(_names(needed, Resource.TOPIC, creates=False))
    creates = reads.creates(new) if (new := _names(needed, Resource.TOPIC, creates=True)) else {}
    described = reads.describes(ids) if (ids := _names(needed, Resource.TRANSACTIONAL_ID, creates=False)) else {}
    for right in needed:
        allowed = topics[right.name].operations if right.name in topics else None
        if right.operation is Operation.CREATE:
            missing = creates[right.name] is False
        elif right.resource is Resource.TRANSACTIONAL_ID:
            missing = described[right.name] is False
        else:
            missing = allowed is not None and right.operation not in allowed
        if missing:
            return right
    return None


def _names(rights: Iterable[Right], resource: Resource, *, creates: bool) -> list[str]:
    found = (each for each in rights if each.resource is resource)
    return [each.name for each in found if (each.operation is Operation.CREATE) is creates]
