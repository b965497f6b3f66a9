"""Brokers, and the groups that read from them, as their responses describe them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.group_state import has_members
from connectctl.ops.kafka.topic_partition import TopicPartition

TRANSACTION_VERSION = "transaction.version"
"""The feature of KIP-890: at 2, every transaction has an epoch of its own."""
LIST_OFFSETS, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN = 2, 22, 24
"""Numbers of requests, as Kafka's protocol has them."""
_VERIFIES = 4
"""The version of AddPartitionsToTxn that came with it."""
_OF_GROUPS = {28: (3, "TxnOffsetCommit"), 9: (7, "OffsetFetch")}
"""The versions that came with KIP-447 in 2.5: commits with member and generation, and fetches that
wait for what is open.
"""
CONSUMER, SHARE, CONNECT = "consumer", "share", "connect"
NEWER_TYPES = {CONSUMER: "KIP-848", SHARE: "KIP-932", "streams": "KIP-1071"}
"""Types of groups that workers never have; described as classic groups they are Dead."""


@dataclass(frozen=True)
class BrokerVersion:
    """The versions that a broker supports (ApiVersions). ``release`` is the first of Kafka with
    these versions: ``(3, 6)``.

    ``apis`` has the newest version of each request by its number. ``supported`` has the highest
    level of each feature that this broker supports, ``finalized`` the level that the cluster uses;
    both are empty before 2.7.
    """

    id: int
    release: tuple[int, ...]
    apis: Mapping[int, int] = field(default_factory=dict)
    supported: Mapping[str, int] = field(default_factory=dict)
    finalized: Mapping[str, int] = field(default_factory=dict)

    @property
    def lacks_of_groups(self) -> str | None:
        """Return the missing requests for transactions of consumer groups (KIP-447, before 2.5),
        with the broker's release; None if it has all.
        """
        lacks = [
            f"{name} {need}"
            for api, (need, name) in _OF_GROUPS.items()
            if self.apis.get(api, -1) < need
        ]
        release = ".".join(map(str, self.release)) or "unknown"
        return (
            f"broker {self.id} has the API versions of {release}, without {' and '.join(lacks)}"
            if lacks
            else None
        )

    @property
    def verifies(self) -> bool:
        """Return whether its leaders verify transactions with the coordinator before they append
        (KIP-890, part 1; since 3.6).
        """
        return self.apis.get(ADD_PARTITIONS_TO_TXN, -1) >= _VERIFIES


def bounds_min_in_sync(brokers: Iterable[BrokerVersion]) -> bool:
    """Return whether the brokers take ``min.insync.replicas`` for at most the number of replicas
    (KAFKA-15583, since 3.7).

    Older brokers refuse every write with ``acks=all`` to a topic that requires more replicas in
    sync than it has.
    """
    return all(broker.release >= (3, 7) for broker in brokers)


@dataclass(frozen=True)
class ReaderMember:
    client_id: str
    host: str
    topics: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ReaderGroup:
    """A group that is not of Connect workers. ``type`` is classic, consumer (KIP-848), share
    (KIP-932) or streams.

    ``committed`` are the offsets that it committed; those of a share group are not read.
    ``problem`` is why it could not be described.
    """

    id: str
    type: str = "classic"
    state: str = "Stable"
    coordinator: int = -1
    members: tuple[ReaderMember, ...] = ()
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    problem: ConnectctlError | None = None

    @property
    def topics(self) -> frozenset[str]:
        """Return the topics that it reads or has read."""
        committed = frozenset(partition.topic for partition in self.committed)
        return committed.union(*(member.topics for member in self.members))

    @property
    def active(self) -> bool:
        """Return whether it has members, so that its offsets cannot be changed by others."""
        return has_members(self.state)


@dataclass(frozen=True)
class ReaderGroups:
    """The groups that this principal may see; ``complete`` if it may see all. ``problems`` are
    those of brokers that do not respond.
    """

    groups: tuple[ReaderGroup, ...] = ()
    complete: bool = True
    problems: Mapping[int, ConnectctlError] = field(default_factory=dict)
