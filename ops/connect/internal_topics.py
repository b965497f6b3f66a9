"""Which topics are a Connect cluster's own: told from their records, and matched to one cluster among several.

A worker's three internal topics can have any name, but their records cannot be mistaken: the config topic has plain keys
with Connect's prefixes, the status topic others, the offsets topic JSON arrays. Which cluster a topic belongs to shows in
the connectors and workers that it names, in the mark of a job's group, and in the transactional ids that wrote to it. Where
the evidence leaves more than one topic nothing is chosen.
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
from connectctl.ops.connect.connect_protocol import mirror_source

if TYPE_CHECKING:
    from connectctl.ops.connect.connect_protocol import ConnectGroup
    from connectctl.ops.connect.group_mark import GroupMark
    from connectctl.ops.kafka.records import ConsumerRecord
    from connectctl.ops.kafka.visibility import Gap


class Role(StrEnum):
    CONFIG = "config"
    OFFSETS = "offsets"
    STATUS = "status"


@dataclass(frozen=True)
class TopicSignals:
    """What a sample of a topic's records tells. ``workers`` are addresses, ``host:port``."""

    topic: str
    role: Role | None
    empty: bool = False
    partitions: int = 1
    connectors: frozenset[str] = frozenset()
    workers: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ConfigTopicSignals:
    """What a whole config topic tells. ``dedicated`` are the offsets topics that its connectors name.

    ``mark`` tells whose it is, if a job has written to it.
    """

    topic: str
    connectors: frozenset[str]
    deleted: frozenset[str] = frozenset()
    dedicated: frozenset[str] = frozenset()
    end: int = 0
    mark: GroupMark | None = None

    def is_anothers(self, group_id: str) -> bool:
        """Whether a job has marked it as another group's."""
        return self.mark is not None and self.mark.group_id != group_id


@dataclass(frozen=True)
class TopicChoice:
    """The topic chosen for a role; or None, with the candidates that are left. ``empty``: it has no record to prove it.

    ``proven``: it was named, is called after the group, or has the group's workers or connectors in it. One that is
    only the last one left may be another group's: it may be shown, and not be written to. ``gaps`` are topics that could
    have the role, for all that is known of them.
    """

    topic: str | None
    candidates: tuple[str, ...] = ()
    empty: bool = False
    proven: bool = True
    gaps: tuple[Gap, ...] = ()


Written = Callable[[Sequence[str]], frozenset[str]]
"""Those of some topics to which a transactional id of the group is known to have written."""


def written_to_none(topics: Sequence[str]) -> frozenset[str]:
    """Return none of ``topics``: nobody is asked."""
    return frozenset()


@dataclass(frozen=True)
class ClusterSignals:
    """What is known about the cluster whose topics are looked for, and about its neighbours on the same Kafka.

    ``named`` are topics that only the group's own naming suggests; they prove nothing. ``foreign`` are topics that have
    another use for certain: dedicated ones, and those of marked groups.
    """

    workers: frozenset[str] = frozenset()
    connectors: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    foreign: frozenset[str] = field(default_factory=frozenset)
    other_groups: bool = False
    named: frozenset[str] = frozenset()
    written: Written = written_to_none


def called_after(group_id: str, role: str) -> str:
    """The name of an internal topic of a group that ``connectctl run`` made."""
    return f"{group_id}-{'configs' if role == Role.CONFIG else role}"


def mirror_topic(group_id: str, role: str) -> str | None:
    """The name of an internal topic of MirrorMaker 2 in dedicated mode; None for a group of another name than its."""
    source = mirror_source(group_id)
    return f"mm2-{'configs' if role == Role.CONFIG else role}.{source}.internal" if source is not None else None


def named_alike(config_topic: str, role: str) -> frozenset[str]:
    """The names that the ``role`` topic has beside ``config_topic``, where one word tells them apart."""
    words = {Role.OFFSETS: ("offset", "offsets"), Role.STATUS: ("status", "statuses")}[Role(role)]
    return frozenset(re.sub("configs?", word, config_topic) for word in words) - {config_topic}


def address(url: str) -> str:
    """``host:port`` of a worker's REST address: how statuses name a worker."""
    return url.partition("//")[2].partition("/")[0]


def classify(topic: str, records: Iterable[ConsumerRecord], partitions: int = 1) -> TopicSignals:
    """What ``topic`` is, from a sample of its records; more than half of them have to say the same."""
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


def _candidate(record: ConsumerRecord) -> tuple[Role | None, str | None, str | None]:
    """``(role, connector, worker)`` as one record has them."""
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
    return (Role.OFFSETS, name, None) if (name := _source_of(key)) is not None else (None, None, None)


def _named_in(key: str, prefix: str) -> str | None:
    rest = key.removeprefix(prefix)
    if prefix == status_topic.TASK:
        return rest.rpartition("-")[0] or None
    return rest.rpartition(":connector-")[2] if prefix == status_topic.TOPIC else rest


def _source_of(key: str) -> str | None:
    """The connector that an offsets topic's key belongs to, None where it is not such a key."""
    try:
        parts = read_json(key)
    except ValueError:
        return None
    if not (isinstance(parts, list) and len(parts) == 2 and isinstance(parts[0], str)):
        return None
    return parts[0] if parts[1] is None or isinstance(parts[1], dict) else None


def config_topic_signals(topic: str, state: ConfigState, end: int) -> ConfigTopicSignals:
    named = (c.config.get("offsets.storage.topic") for c in state.connectors.values())
    dedicated = frozenset(filter(None, named))
    return ConfigTopicSignals(topic, frozenset(state.connectors), state.deleted, dedicated, end, state.mark)


def choose_config(
    found: Sequence[ConfigTopicSignals],
    empty: Sequence[str],
    group: ConnectGroup,
    written: Written = written_to_none,
    named: frozenset[str] = frozenset(),
) -> TopicChoice:
    """The config topic of ``group``: it has every connector that the group runs, and reaches as far as its workers read.

    One that is marked as another group's is not the group's, unless no other topic has what the group runs: the group may
    have been renamed since, which nothing proves.
    """
    possible = [c for c in found if not c.is_anothers(group.id)]
    assignments = [m.assignment for m in group.members if m.assignment]
    if not assignments:
        marked = sorted(c.topic for c in possible if c.mark)
        if marked and not group.members:
            return _decided(marked, written, named)
        return _guess(sorted(c.topic for c in possible) or sorted(empty), written, named, sorted(empty))
    assigned = {connector for connector, _ in group.owners}
    read_to = max(a.config_offset for a in assignments)
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


def _fitting(found: Sequence[ConfigTopicSignals], assigned: set[str], read_to: int) -> list[ConfigTopicSignals]:
    fits = [c for c in found if assigned <= c.connectors and c.end >= read_to]
    # A connector deleted a moment ago is still assigned; half the names are then better evidence than none.
    return fits or [c for c in found if assigned & c.connectors and c.end >= read_to]


def choose(found: Sequence[TopicSignals], empty: Sequence[str], evidence: ClusterSignals) -> TopicChoice:
    """The offsets or status topic of the cluster that ``evidence`` describes, among topics of that role and empty ones."""
    candidates = [c for c in found if c.topic not in evidence.foreign]
    blank = sorted(set(empty) - evidence.foreign)
    by_worker = [c for c in candidates if c.workers & evidence.workers]
    mine = [c for c in candidates if c.connectors & evidence.connectors]
    surely = [c for c in mine if not c.connectors & evidence.others]
    for narrowed in ([c for c in by_worker if c in mine], by_worker, surely):
        if narrowed:
            return _decided(sorted(c.topic for c in narrowed), evidence.written, evidence.named)
    # What is left proves nothing by itself, so that an empty topic is as good a candidate beside a neighbour's.
    left = sorted(c.topic for c in candidates if c in mine or not c.connectors & evidence.others)
    if left:
        left += blank if evidence.other_groups else []
    return _guess(left or blank, evidence.written, evidence.named, blank)


def _decided(topics: Sequence[str], written: Written, named: frozenset[str], empty: Sequence[str] = ()) -> TopicChoice:
    """The only one of ``topics``; of several the one that the group's transactional ids wrote to, else that is ``named``.

    A name alone proves nothing.
    """
    if len(topics) == 1:
        return TopicChoice(topics[0], empty=topics[0] in empty)
    wrote = sorted(written(topics) & set(topics)) if topics else []
    if len(wrote) == 1:
        return TopicChoice(wrote[0])
    alike = sorted(named & set(topics))
    if len(alike) == 1:
        return TopicChoice(alike[0], empty=alike[0] in empty, proven=False)
    return TopicChoice(None, tuple(topics))


def _guess(topics: Sequence[str], written: Written, named: frozenset[str], empty: Sequence[str] = ()) -> TopicChoice:
    """As ``_decided``, where being the last one left proves nothing."""
    choice = _decided(topics, written, named, empty)
    return replace(choice, proven=False) if len(topics) == 1 else choice
