"""Checks that a group's coordinator has loaded everything that its predecessor wrote.

A coordinator answers requests about a group (DescribeGroups, OffsetFetch) as of the high watermark
of its partition of ``__consumer_offsets`` (``CoordinatorRuntime.scheduleReadOperation``). A new
leader's high watermark may be too low until its followers have fetched from it: for that time a
group of live members is Empty or Dead, without an error. Measured on three brokers of 4.3.1: in 9
of 12 coordinators that were killed right after a member had joined, for up to 0.6 s. The same
leader does not report the end of that partition until then (OFFSET_NOT_AVAILABLE, KIP-207); so this
end is requested.
"""

from __future__ import annotations

import time

from connectctl.ops.clients.kafka_protocol.group_coordinator import (
    Coordinator,
    Described,
    coordinated,
)
from connectctl.ops.clients.librdkafka.connection import Connection
from connectctl.ops.clients.librdkafka.partition_offsets import latest_of, layouts_of
from connectctl.ops.core.errors import BadInput, NotAuthorized
from connectctl.ops.kafka.brokers import NEWER_TYPES
from connectctl.ops.kafka.offset_commits import TOPIC
from connectctl.ops.kafka.partitioner import coordinator_partition
from connectctl.ops.kafka.topic_partition import TopicPartition

BLIND = 2.0
"""Seconds to wait where the topic may not be seen: followers fetch at least every 0.5 s
(replica.fetch.wait.max.ms).
"""
PROMPT, LATER = 0.5, 1.0
"""Where answers took longer than ``PROMPT`` seconds, the coordinator may have moved meanwhile, and
that a group is empty is believed if it is so ``LATER`` seconds afterwards, too. Seen once, at a load
of 19: a group with a member was empty although its partition reported its end. Presumably the new
coordinator had not yet heard of the high watermark that its own broker reports.
"""


def described(kafka: Connection, group_id: str) -> Described | None:
    """Return the group by its coordinator; None if it has none of that name. That it has no
    members, or does not exist, is accepted only of a coordinator that has loaded everything.

    Raises ``NotAuthorized`` with the missing right, ``TimedOut`` and ``Unreachable`` if no
    coordinator responds, and ``BadInput`` for a group that is not classic.
    """
    began = time.monotonic()
    found = coordinated(kafka, group_id, Coordinator.describe)
    if not _has_members(found):
        settle(kafka, group_id)
        found = coordinated(kafka, group_id, classic)
    if not _has_members(found) and time.monotonic() - began > PROMPT:
        time.sleep(LATER)
        found = coordinated(kafka, group_id, classic)
    return found


def _has_members(found: Described | None) -> bool:
    return found is not None and bool(found.members)


def classic(coordinator: Coordinator) -> Described | None:
    """Return the group; None if no group of any type has that name. Raises ``BadInput`` for one
    that is not classic.
    """
    found = coordinator.describe()
    if found is not None or (kind := coordinator.kind()) is None:
        return found
    if kind in NEWER_TYPES:
        raise BadInput(
            f"{coordinator.group} is not a group of a classic protocol",
            why=f"it is a {kind} group ({NEWER_TYPES[kind]})",
            next_step="Give the group of Connect workers, or of an application with "
            "group.protocol=classic.",
            code="other-group",
        )
    return coordinator.describe()  # it has come between the two answers


def settle(kafka: Connection, *group_ids: str) -> None:
    """Return when the coordinators of the groups have loaded everything.

    Raises ``TimedOut`` and ``Unreachable`` without a response. A principal without Describe on
    ``__consumer_offsets`` waits for ``BLIND`` seconds instead.
    """
    try:
        partitions = layouts_of(kafka, [TOPIC])[TOPIC].partitions
        for number in sorted(
            {coordinator_partition(group_id, partitions) for group_id in group_ids}
        ):
            latest_of(kafka, TopicPartition(TOPIC, number))
    except NotAuthorized:
        time.sleep(BLIND)
    except BadInput:
        return  # no such topic: no group exists
