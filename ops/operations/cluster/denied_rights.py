"""Rights that a change requires and that brokers report as missing before the change."""

from __future__ import annotations

from collections.abc import Iterable

from connectctl.ops.clients.protocols import RightsReads
from connectctl.ops.kafka.acls import Operation, Resource, Right


def denied(reads: RightsReads, rights: Iterable[Right]) -> Right | None:
    """Return the first of ``rights`` that brokers report as missing, None if they report none.

    For a topic that does not exist, brokers report only whether it can be created. For a
    transactional id, they report only whether it may be described.
    """
    needed = list(dict.fromkeys(rights))
    topics = reads.on_topics(_names(needed, Resource.TOPIC, creates=False))
    creates = reads.creates(new) if (new := _names(needed, Resource.TOPIC, creates=True)) else {}
    described = (
        reads.describes(ids)
        if (ids := _names(needed, Resource.TRANSACTIONAL_ID, creates=False))
        else {}
    )
    consumers = _names(needed, Resource.GROUP, creates=False)
    groups = reads.on_groups(consumers) if consumers else {}
    for right in needed:
        reported = groups if right.resource is Resource.GROUP else topics
        allowed = reported[right.name].operations if right.name in reported else None
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
    found = (right for right in rights if right.resource is resource)
    return [right.name for right in found if (right.operation is Operation.CREATE) is creates]
