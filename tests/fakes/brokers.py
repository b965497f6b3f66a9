"""Brokers that are a few dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.brokers import (
    TRANSACTION_VERSION,
    BrokerVersion,
    ReaderGroup,
    ReaderGroups,
    ReaderMember,
)
from connectctl.ops.kafka.topic_partition import TopicPartition

APIS = {2: 11, 22: 5, 24: 5}
DEFAULTS = {
    "transaction.max.timeout.ms": "900000",
    "transactional.id.expiration.ms": "604800000",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.partition.verification.enable": "true",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "10000",
    "group.min.session.timeout.ms": "6000",
    "group.max.session.timeout.ms": "1800000",
}


def broker(
    id_: int = 1, release: tuple[int, ...] = (4, 3), *, finalized: int = 2, supported: int = 2
) -> BrokerVersion:
    """A broker of today, with its levels of transaction.version."""
    return BrokerVersion(
        id_, release, APIS, {TRANSACTION_VERSION: supported}, {TRANSACTION_VERSION: finalized}
    )


@dataclass
class FakeBrokers:
    """Keeps ``BrokerReads``. ``unseen`` topics are hidden; ``down`` is raised by every question."""

    known: dict[int, BrokerVersion | ConnectctlError] = field(default_factory=lambda: {1: broker()})
    told: dict[int, dict[str, str] | ConnectctlError] = field(
        default_factory=lambda: {1: dict(DEFAULTS)}
    )
    unseen: set[str] = field(default_factory=set)
    groups: dict[str, ReaderGroup] = field(default_factory=dict)
    complete: bool = True
    problems: dict[int, ConnectctlError] = field(default_factory=dict)
    down: ConnectctlError | None = None
    offline: dict[int, str] = field(default_factory=dict)

    def cluster_id(self) -> str:
        return "fake-cluster"

    def versions(self) -> dict[int, BrokerVersion | ConnectctlError]:
        self._answer()
        return self.known

    def unreachable(self) -> dict[int, str]:
        self._answer()
        return self.offline

    def settings(self, names: Sequence[str]) -> dict[int, dict[str, str] | ConnectctlError]:
        self._answer()
        return {
            id_: {name: told[name] for name in names if name in told}
            if isinstance(told, dict)
            else told
            for id_, told in self.told.items()
        }

    def hidden(self, topics: Sequence[str]) -> frozenset[str]:
        self._answer()
        return frozenset(self.unseen & set(topics))

    def readers(self) -> ReaderGroups:
        self._answer()
        return ReaderGroups(
            tuple(sorted(self.groups.values(), key=lambda g: g.id)), self.complete, self.problems
        )

    def _answer(self) -> None:
        if self.down is not None:
            raise self.down

    def commit(self, group: str, place: TopicPartition, offset: int) -> None:
        """A commit of a group without members."""
        before = self.groups.get(group, ReaderGroup(group, state="Empty"))
        self.groups[group] = replace(before, committed={**before.committed, place: offset})

    def join(self, group: str, topic: str, client: str) -> None:
        """A member that is assigned partitions of the topic."""
        self.groups[group] = ReaderGroup(
            group, members=(ReaderMember(client, "/127.0.0.1", frozenset({topic})),)
        )
