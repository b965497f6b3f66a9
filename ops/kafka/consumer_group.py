"""Decodes the metadata of members of a consumer group, which shows processes of Kafka Streams and
their release.

Source: ``ConsumerProtocolSubscription``, ``ConsumerProtocolAssignment`` and
``SubscriptionInfoData`` of Apache Kafka. Streams puts its process id, its ``application.server``
and the newest version of its protocol into every subscription.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from connectctl.ops.kafka.field_reader import FieldReader
from connectctl.ops.kafka.topic_partition import TopicPartition

GROUP_AWARE = 7
"""Streams' protocol from 2.6 on; 2.5 speaks 6. From there on offsets go with member and generation
(KIP-447).
"""
KNOWS_V2 = 10
"""Streams' protocol from 3.0 on, which knows ``exactly_once_v2``."""
_RELEASES = {
    5: "2.4",
    6: "2.5",
    7: "2.6",
    8: "2.6 or 2.7",
    9: "2.8",
    10: "3.0 or 3.1",
    11: "3.2 or newer",
}


@dataclass(frozen=True)
class StreamsMember:
    """A thread of Kafka Streams: its ``process``, the newest protocol it supports, its ``server``."""

    process: str
    protocol: int
    server: str | None = None


@dataclass(frozen=True)
class GroupMember:
    """A member of a consumer group. ``streams`` is None for other clients, and while a rebalance
    hides subscriptions.

    ``partitions`` is how many it was assigned.
    """

    id: str
    client_id: str
    host: str
    streams: StreamsMember | None = None
    partitions: int = 0


@dataclass(frozen=True)
class ClientGroup:
    """A group as its coordinator describes it. ``kind`` is the protocol type, ``consumer`` for
    consumers.
    """

    id: str
    state: str
    kind: str = "consumer"
    members: tuple[GroupMember, ...] = ()


def release_of(protocol: int) -> str:
    """Return the releases of Kafka Streams that speak this version of its protocol."""
    if protocol > max(_RELEASES):
        return "4.4 or newer"
    return _RELEASES.get(protocol, "2.3 or older")


def first_release_of(protocol: int) -> str:
    return release_of(protocol).split(" ")[0]


def streams_member(subscription: bytes) -> StreamsMember | None:
    """Return the Streams part of a subscription, None where there is none, or none that can be
    read.
    """
    try:
        return _streams_member(_user_data(subscription))
    except ValueError:
        return None


def assigned_partitions(assignment: bytes) -> frozenset[TopicPartition]:
    """Return the partitions in a member's assignment; none where it is empty or cannot be read."""
    found: set[TopicPartition] = set()
    reader = FieldReader(assignment)
    try:
        reader.number(2)  # version
        for _ in range(reader.number(4)):
            topic = reader.take(reader.number(2)).decode()
            found |= {TopicPartition(topic, reader.number(4)) for _ in range(reader.number(4))}
    except ValueError:
        return frozenset()
    return frozenset(found)


def _user_data(subscription: bytes) -> bytes:
    reader = FieldReader(subscription)
    reader.number(2)  # version
    for _ in range(reader.number(4)):
        reader.take(reader.number(2))  # topic
    return reader.take(reader.number(4))


def _streams_member(data: bytes) -> StreamsMember | None:
    # Others put data of their own there: the sticky assignor its partitions.
    reader = FieldReader(data)
    version, newest = reader.number(4), reader.number(4)
    if not 3 <= version <= newest <= 100:
        return None
    process = uuid.UUID(bytes=reader.take(16))
    if version < GROUP_AWARE:
        for _ in ("active", "standby"):
            reader.take(8 * max(0, reader.number(4)))
    return StreamsMember(str(process), newest, reader.take(reader.number(4)).decode() or None)
