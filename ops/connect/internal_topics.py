"""The recognition of a Connect cluster's internal topics by their records, among those of several
clusters.

A worker's three internal topics can have any name, but their records are unmistakable: the config
topic has plain keys with Connect's prefixes, the status topic has other prefixes, and the offsets
topic has JSON arrays. The owner of a topic follows from the connectors and workers that it names,
the mark of a job's group, and the transactional ids that wrote to it. No topic is chosen if the
evidence leaves more than one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect import status_topic
from connectctl.ops.connect.config_topic import CONNECTOR, MEMBERS, ConfigState, decode
from connectctl.ops.connect.connect_protocol import ConnectGroup, mirror_source
from connectctl.ops.connect.offset_store import TOPIC

if TYPE_CHECKING:
    from connectctl.ops.connect.group_mark import GroupMark
    from connectctl.ops.kafka.records import ConsumerRecord
    from connectctl.ops.kafka.visibility import Gap


class Role(StrEnum):
    CONFIG = "config"
    OFFSETS = "offsets"
    STATUS = "status"


@dataclass(frozen=True)
class TopicSignals:
    """The signals in a sample of a topic's records. ``workers`` are addresses, ``host:port``."""

    topic: str
    role: Role | None
    empty: bool = False
    partitions: int = 1
    connectors: frozenset[str] = frozenset()
    workers: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ConfigTopicSignals:
    """The signals in a whole config topic. ``dedicated`` are the offsets topics that its connectors
    name.

    ``mark`` is the mark of the owning group, if a job has written one.
    """

    topic: str
    connectors: frozenset[str]
    deleted: frozenset[str] = frozenset()
    dedicated: frozenset[str] = frozenset()
    end: int = 0
    mark: GroupMark | None = None

    def belongs_to_other_group(self, group_id: str) -> bool:
        """Return whether a job has marked it as another group's."""
        return self.mark is not None and self.mark.group_id != group_id


@dataclass(frozen=True)
class TopicChoice:
    """The topic chosen for a role; or None, with the remaining candidates. ``empty``: it has no
    record as evidence.

    ``proven``: it was named by the user, is named after the group, or contains the group's workers
    or connectors. A topic that is only the last candidate may be another group's: it may be shown,
    but not written to. ``gaps`` are topics that could not be read and may have the role.
    """

    topic: str | None
    candidates: tuple[str, ...] = ()
    empty: bool = False
    proven: bool = True
    gaps: tuple[Gap, ...] = ()


Written = Callable[[Sequence[str]], frozenset[str]]
"""A function that returns those of some topics that are known to be written to with a transactional
id of the group.
"""


def written_to_none(topics: Sequence[str]) -> frozenset[str]:
    """Return an empty set: no coordinator is asked."""
    return frozenset()


@dataclass(frozen=True)
class ClusterSignals:
    """The known facts about the cluster whose topics are searched, and about others on the same
    Kafka cluster.

    ``named`` are topics that only the group's naming suggests; they prove nothing. ``foreign`` are
    topics that certainly have another use: dedicated ones, and those of marked groups.
    """

    workers: frozenset[str] = frozenset()
    connectors: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    foreign: frozenset[str] = field(default_factory=frozenset)
    other_groups: bool = False
    named: frozenset[str] = frozenset()
    written: Written = written_to_none


def run_topic_name(group_id: str, role: str) -> str:
    """Return the name of an internal topic that ``connectctl run`` creates for a group."""
    return f"{group_id}-{'configs' if role == Role.CONFIG else role}"


MANIFEST = "-archive"
"""The suffix of the name of a manifest topic, after the connector's name."""


def run_status_topic(group_id: str) -> str:
    """Return the name of the topic of statuses of runs that took connectors over from the workers of a
    group.
    """
    return f"{group_id}-run-status"


def manifest_topic(connector: str) -> str:
    """Return the name of the topic in which a ParquetArchive commits its files."""
    return f"{connector}{MANIFEST}"


def mirror_topic(group_id: str, role: str) -> str | None:
    """Return the name of an internal topic of MirrorMaker 2 in dedicated mode; None for another
    kind of group.
    """
    source = mirror_source(group_id)
    return (
        f"mm2-{'configs' if role == Role.CONFIG else role}.{source}.internal"
        if source is not None
        else None
    )


def sibling_topic_names(config_topic: str, role: str) -> frozenset[str]:
    """Return the names of the ``role`` topic that differ from ``config_topic`` by the word for the
    role only.
    """
    words = {Role.OFFSETS: ("offset", "offsets"), Role.STATUS: ("status", "statuses")}[Role(role)]
    return frozenset(re.sub("configs?", word, config_topic) for word in words) - {config_topic}


def address(url: str) -> str:
    """Return ``host:port`` of a worker's REST address, by which statuses name a worker."""
    return url.partition("//")[2].partition("/")[0]


def classify(topic: str, records: Iterable[ConsumerRecord], partitions: int = 1) -> TopicSignals:
    """Return the role of ``topic`` by a sample of its records; more than half of them must have the
    same role.
    """
    votes: Counter[Role | None] = Counter()
    connectors: set[str] = set()
    workers: set[str] = set()
    for record in records:
        role, connector, worker = _candidate(record)
        votes[role] += 1
        connectors |= {connector} if connector else set()
        workers |= {worker} if worker else set()
    if not votes:
        return TopicSignals(topic, None, empty=True, partitions=partitions)
    role, count = votes.most_common(1)[0]
    if role is None or count * 2 <= votes.total():
        return TopicSignals(topic, None, partitions=partitions)
    return TopicSignals(topic, role, False, partitions, frozenset(connectors), frozenset(workers))


def role_of(record: ConsumerRecord) -> Role | None:
    """Return the role of the topic that has such records; None for records of others."""
    return _candidate(record)[0]


def _candidate(record: ConsumerRecord) -> tuple[Role | None, str | None, str | None]:
    """Return ``(role, connector, worker)`` of one record."""
    if record.key is None:
        return None, None, None
    try:
        key, value = decode(record)
    except ValueError:
        return None, None, None
    if value is not None and not isinstance(value, dict):
        return None, None, None
    for prefix, member in MEMBERS.items():
        if key.startswith(prefix) and (value is None or member in value):
            return Role.CONFIG, key.removeprefix(prefix) if prefix == CONNECTOR else None, None
    for prefix, member in status_topic.MEMBERS.items():
        if key.startswith(prefix) and (value is None or member in value):
            worker = (value or {}).get("worker_id")
            return Role.STATUS, _named_in(key, prefix), worker if isinstance(worker, str) else None
    return (
        (Role.OFFSETS, name, None) if (name := _source_of(key)) is not None else (None, None, None)
    )


def _named_in(key: str, prefix: str) -> str | None:
    rest = key.removeprefix(prefix)
    if prefix == status_topic.TASK:
        return rest.rpartition("-")[0] or None
    return rest.rpartition(":connector-")[2] if prefix == status_topic.TOPIC else rest


def _source_of(key: str) -> str | None:
    """Return the connector of an offsets topic's key, None if it is not such a key."""
    try:
        parts = read_json(key)
    except ValueError:
        return None
    if not (isinstance(parts, list) and len(parts) == 2 and isinstance(parts[0], str)):
        return None
    return parts[0] if parts[1] is None or isinstance(parts[1], dict) else None


def config_topic_signals(topic: str, state: ConfigState, end: int) -> ConfigTopicSignals:
    named = (c.config.get(TOPIC) for c in state.connectors.values())
    dedicated = frozenset(filter(None, named))
    return ConfigTopicSignals(
        topic, frozenset(state.connectors), state.deleted, dedicated, end, state.mark
    )


def choose_config(
    found: Sequence[ConfigTopicSignals],
    empty: Sequence[str],
    group: ConnectGroup,
    written: Written = written_to_none,
    named: frozenset[str] = frozenset(),
) -> TopicChoice:
    """Return the config topic of ``group``: it has the group's connectors and reaches its workers'
    config offset.

    A topic that is marked as another group's is excluded, unless no other topic has the connectors
    that the group runs: the group may have been renamed since, which nothing proves.
    """
    possible = [c for c in found if not c.belongs_to_other_group(group.id)]
    assignments = [m.assignment for m in group.members if m.assignment]
    if not assignments:
        marked = sorted(c.topic for c in possible if c.mark)
        if marked and not group.members:
            return _decided(marked, written, named)
        return _guess(
            sorted(c.topic for c in possible) or sorted(empty), written, named, sorted(empty)
        )
    assigned = {connector for connector, _ in group.owners}
    read_to = max(assignment.config_offset for assignment in assignments)
    fits = _fitting(possible, assigned, read_to)
    if fits:
        exact = [c for c in fits if assigned == c.connectors]
        likely = [c for c in fits if c.mark] or exact
        topics = sorted(c.topic for c in (likely if len(likely) == 1 else fits))
        return _decided(topics, written, named) if assigned else _guess(topics, written, named)
    if not assigned:
        return _guess(sorted(empty), written, named, sorted(empty))
    renamed = _fitting(found, assigned, read_to)
    return TopicChoice(renamed[0].topic, proven=False) if len(renamed) == 1 else TopicChoice(None)


def _fitting(
    found: Sequence[ConfigTopicSignals], assigned: set[str], read_to: int
) -> list[ConfigTopicSignals]:
    fits = [c for c in found if assigned <= c.connectors and c.end >= read_to]
    # A deleted connector stays assigned for a moment; then some of the names are better evidence
    # than none.
    return fits or [c for c in found if assigned & c.connectors and c.end >= read_to]


def choose(
    found: Sequence[TopicSignals], empty: Sequence[str], evidence: ClusterSignals
) -> TopicChoice:
    """Return the offsets or status topic of the cluster that ``evidence`` describes.

    ``found`` are the topics with that role, ``empty`` those without records.
    """
    candidates = [c for c in found if c.topic not in evidence.foreign]
    blank = sorted(set(empty) - evidence.foreign)
    by_worker = [c for c in candidates if c.workers & evidence.workers]
    of_cluster = [c for c in candidates if c.connectors & evidence.connectors]
    of_cluster_only = [c for c in of_cluster if not c.connectors & evidence.others]
    for narrowed in ([c for c in by_worker if c in of_cluster], by_worker, of_cluster_only):
        if narrowed:
            return _decided(sorted(c.topic for c in narrowed), evidence.written, evidence.named)
    # A remaining topic is no evidence, so that an empty topic is as good a candidate next to
    # another cluster's.
    remaining = sorted(
        c.topic for c in candidates if c in of_cluster or not c.connectors & evidence.others
    )
    if remaining:
        remaining += blank if evidence.other_groups else []
    return _guess(remaining or blank, evidence.written, evidence.named, blank)


def _decided(
    topics: Sequence[str], written: Written, named: frozenset[str], empty: Sequence[str] = ()
) -> TopicChoice:
    """Return the only one of ``topics``; of several, the one that the group's transactional ids
    wrote to.

    Otherwise return the one that is ``named``, as not proven: a name alone is not evidence.
    """
    if len(topics) == 1:
        return TopicChoice(topics[0], empty=topics[0] in empty)
    wrote = sorted(written(topics) & set(topics)) if topics else []
    if len(wrote) == 1:
        return TopicChoice(wrote[0])
    by_name = sorted(named & set(topics))
    if len(by_name) == 1:
        return TopicChoice(by_name[0], empty=by_name[0] in empty, proven=False)
    return TopicChoice(None, tuple(topics))


def _guess(
    topics: Sequence[str], written: Written, named: frozenset[str], empty: Sequence[str] = ()
) -> TopicChoice:
    """Return the choice of ``_decided``; a topic that is only the last candidate is not proven."""
    choice = _decided(topics, written, named, empty)
    return replace(choice, proven=False) if len(topics) == 1 else choice
