"""Observes the workers as a group: the leader, the writers of the config topic, and other groups on
the same topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial

from connectctl.ops.clients.protocols import KafkaReads, TransactionCalls
from connectctl.ops.connect import config_topic
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.connector import statuses_from_topic
from connectctl.ops.connect.internal_topics import Role, address
from connectctl.ops.connect.transactional_ids import LeaderId
from connectctl.ops.connect.worker import Worker
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.unseen import Unseen, answer_of, unseen_by
from connectctl.ops.kafka.error_handling import PRODUCERS, Code, verdict
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import PartitionProducer, Transaction
from connectctl.ops.kafka.visibility import Complete, Gap
from connectctl.ops.operations.cluster.internal_topic_discovery import search_topics
from connectctl.ops.operations.cluster.observe import ClusterView
from connectctl.ops.operations.connectors.contradictions import OtherLists
from connectctl.ops.operations.fencing.observe import observe_leader_id

PATIENCE = 2.0
"""Seconds to wait for open transactions on the internal topics."""
CLOCKS = 60.0
"""Seconds by which the clocks of workers and brokers may differ."""


class Proof(StrEnum):
    """The proof in the leader's transactional id: PREPARING means preparing or enabled."""

    PREPARING = "preparing"
    CLAIMED = "claimed"
    """The leader has the id, and has not written with it within the last day."""
    LEFT = "left"
    """Since the last write with the id, records of leaders were written outside transactions."""
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class WorkersSeen:
    """The observations; ``now`` is their time in seconds since the epoch.

    ``lists`` are the connectors that each worker lists, by its URL. ``leader_id`` is the leader's
    transactional id, or the gap if it is unknown. ``other_groups`` are the other groups of Connect
    workers on the same Kafka cluster, ``groups_sharing_topics`` those whose config topic seems to
    be ours, ``statuses`` the worker by part in our status topic.
    """

    group: ConnectGroup
    workers: tuple[Worker, ...]
    leader_id: LeaderId | Gap
    now: float = 0.0
    lists: OtherLists = field(default_factory=dict)
    config: ConfigTopic | None = None
    other_groups: tuple[ConnectGroup, ...] = ()
    groups_sharing_topics: frozenset[str] = frozenset()
    statuses: Mapping[tuple[str, int], str] = field(default_factory=dict)
    unseen: tuple[Unseen, ...] = ()

    @property
    def leader(self) -> Transaction | None:
        """Return the leader's transactional id as its coordinator describes it; None if it has none
        or it is unknown.
        """
        return self.leader_id.transaction if isinstance(self.leader_id, LeaderId) else None

    @property
    def leading_worker(self) -> Worker | None:
        return next((worker for worker in self.workers if worker.leader), None)

    @property
    def proof(self) -> Proof:
        """Return the proof that the leader writes with its transactional id, as preparing and
        enabled leaders do.
        """
        if isinstance(self.leader_id, Gap):
            return Proof.UNKNOWN
        if self.leader is None:
            return Proof.ABSENT
        wrote = self.config.leader_wrote if self.config else None
        if wrote is None:
            return Proof.CLAIMED
        newest = self.config.newest if self.config else None
        return (
            Proof.LEFT
            if newest and newest.outside and newest.at > wrote + CLOCKS
            else Proof.PREPARING
        )


def observe(
    view: ClusterView, kafka: KafkaReads, transactions: TransactionCalls, now: float
) -> WorkersSeen:
    """Observe the workers of ``view``; a single observation that fails raises nothing. ``now`` is in
    seconds since the epoch.
    """
    observer = _KafkaObserver(view, kafka, transactions)
    known = observer.leader_id()
    config = observer.config(known.transaction if isinstance(known, LeaderId) else None)
    other_groups = observer.other_groups()
    groups_sharing_topics = observer.groups_sharing_topics(config, other_groups)
    statuses = observer.statuses() if other_groups else {}
    return WorkersSeen(
        group=view.group,
        workers=view.workers,
        now=now,
        lists=view.lists,
        leader_id=known,
        config=config,
        other_groups=other_groups,
        groups_sharing_topics=groups_sharing_topics,
        statuses=statuses,
        unseen=tuple(observer.unseen),
    )


class _KafkaObserver:
    """Observes the Kafka side. Failed observations are added to ``unseen``."""

    def __init__(
        self, view: ClusterView, kafka: KafkaReads, transactions: TransactionCalls
    ) -> None:
        self._view = view
        self._kafka = kafka
        self._transactions = transactions
        self.unseen: list[Unseen] = []

    def leader_id(self) -> LeaderId | Gap:
        """Return the leader's transactional id, or the gap if it is unknown."""
        found = observe_leader_id(self._transactions, self._view.group.id)
        if isinstance(found, Gap):
            self.unseen.append(Unseen(found.subject, found.detail or found.why, found.next_step))
        return found

    def config(self, leader: Transaction | None) -> ConfigTopic | None:
        """Return the config topic and its writers; None if the topic is unknown or cannot be
        read.
        """
        image = self._image(Role.CONFIG, superseded=True)
        if image is None:
            return None
        connectors = frozenset(config_topic.state_of(image).connectors)
        return self._with_writers(ConfigTopic(image.topic, connectors, newest_write(image)), leader)

    def _with_writers(self, topic: ConfigTopic, leader: Transaction | None) -> ConfigTopic:
        partition = TopicPartition(topic.name, 0)
        what = f"who writes to the config topic {topic.name}"
        try:
            producers = self._transactions.producers([partition]).get(
                partition, Code.UNKNOWN_TOPIC_OR_PARTITION
            )
            if isinstance(producers, Code):
                problem = verdict(PRODUCERS, producers, topic.name)
                self.unseen.append(Unseen(what, problem.meaning, problem.advice))
                return topic
            of_leader = [
                p for p in producers if leader is not None and p.producer_id == leader.producer_id
            ]
            foreign = tuple(p for p in producers if p not in of_leader)
            producer_ids = sorted({p.producer_id for p in foreign})
            listed = (
                self._transactions.listed(producer_ids=producer_ids) if foreign else Complete(())
            )
        except ConnectctlError as e:
            self.unseen.append(unseen_by(what, e))
            return topic
        if len(listed.seen) < len(foreign):
            self.unseen += [Unseen(what, gap.why, gap.next_step) for gap in listed.gaps]
        last_write = max((p.last_timestamp / 1000 for p in of_leader), default=None)
        owners = {listing.producer_id: listing.id for listing in listed.seen}
        return replace(topic, leader_wrote=last_write, foreign=foreign, owners=owners)

    def other_groups(self) -> tuple[ConnectGroup, ...]:
        """Return the other groups of Connect workers that have members."""

        def listed() -> list[ConnectGroup]:
            groups = self._transactions.connect_groups()
            self.unseen += [Unseen(gap.subject, gap.why, gap.next_step) for gap in groups.gaps]
            return [self._kafka.group(name) for name in sorted(groups.seen - {self._view.group.id})]

        found = answer_of(listed, self.unseen, "the other groups of Connect workers") or []
        return tuple(group for group in found if group.members)

    def groups_sharing_topics(
        self, config: ConfigTopic | None, other_groups: Sequence[ConnectGroup]
    ) -> frozenset[str]:
        """Return the groups whose connectors are all in our config topic, without a config topic of
        their own.
        """
        if config is None:
            return frozenset()
        running = {group.id: {name for name, _ in group.owners} for group in other_groups}
        candidates = [
            group
            for group in other_groups
            if running[group.id] and running[group.id] <= config.connectors
        ]
        found: set[str] = set()
        for group in candidates:
            search = partial(search_topics, self._kafka, group, {}, ["config"])
            choices = answer_of(search, self.unseen, f"the config topic of the group {group.id}")
            if choices and choices["config"].topic == config.name:
                found.add(group.id)
        return frozenset(found)

    def statuses(self) -> dict[tuple[str, int], str]:
        """Return the worker that wrote the status of each part, by our status topic."""
        image = self._image(Role.STATUS)
        known = statuses_from_topic(image.latest, image.topic) if image else {}
        return {part: status.worker for part, status in known.items() if status.worker}

    def _image(self, role: Role, *, superseded: bool = False) -> TopicImage | None:
        known = (t.name for t in self._view.topics if t.role is role and t.facts is not None)
        topic = next(known, None)
        if topic is None:
            return None
        read = partial(self._kafka.image, [topic], patience=PATIENCE, superseded=superseded)
        return (answer_of(read, self.unseen, f"the {role} topic {topic}") or {}).get(topic)


def addresses(group: ConnectGroup) -> frozenset[str]:
    return frozenset(address(member.url) for member in group.members if member.url)


_LEADER_KEYS = (config_topic.COMMIT, config_topic.FENCING, "session-key", "restart-connector-")
"""Records that only the leader writes, each in a transaction of its own
(``KafkaConfigBackingStore``).
"""


@dataclass(frozen=True)
class LeaderWrite:
    """The newest record of the config topic that only a leader writes. ``at`` is in seconds since
    the epoch.

    ``outside``: it was certainly written outside a transaction, because no marker follows it.
    """

    key: str
    offset: int
    at: float
    outside: bool


@dataclass(frozen=True)
class ConfigTopic:
    """The config topic: its connectors, and the producers that write to it.

    ``foreign`` are the producers on its partition that are not the leader's; ``owners`` are their
    transactional ids. ``leader_wrote`` is when the leader's producer last wrote, in seconds since
    the epoch.
    """

    name: str
    connectors: frozenset[str] = frozenset()
    newest: LeaderWrite | None = None
    leader_wrote: float | None = None
    foreign: tuple[PartitionProducer, ...] = ()
    owners: Mapping[int, str] = field(default_factory=dict)


def newest_write(image: TopicImage) -> LeaderWrite | None:
    """Return the newest record that only a leader writes, and whether it is outside a transaction.

    A preparing or enabled leader writes each in a transaction of its own, so that the next offset
    is the marker's and holds no record. Compaction also leaves offsets without a record, but never
    a record at a marker's offset.
    """
    records = [*image.latest, *image.superseded]
    of_leaders = [
        record
        for record in records
        if record.key
        and record.timestamp is not None
        and record.key.decode(errors="replace").startswith(_LEADER_KEYS)
    ]
    if not of_leaders:
        return None
    newest = max(of_leaders, key=lambda record: record.offset)
    next_offset = newest.offset + 1
    outside = image.end_offsets.get(newest.partition) == next_offset or _has(records, next_offset)
    key = (newest.key or b"").decode(errors="replace")
    return LeaderWrite(key, newest.offset, (newest.timestamp or 0) / 1000, outside)


def _has(records: Iterable[ConsumerRecord], offset: int) -> bool:
    return any(record.offset == offset for record in records)
