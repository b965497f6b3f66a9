"""Which topics are a Connect cluster's own: told from their records, and matched to one cluster among several.

A worker's three internal topics can have any name, but their records cannot be mistaken: the config topic has plain keys
with Connect's prefixes, the status topic others, the offsets topic JSON arrays. Which cluster a topic belongs to shows in
the connectors and workers that it names. Where the evidence leaves more than one topic nothing is chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from connectctl.ops.config.json_text import read_json
from connectctl.ops.connect import status_topic
from connectctl.ops.connect.config_topic import CONNECTOR, MEMBERS, ConfigState, decode

if TYPE_CHECKING:
    from connectctl.ops.connect.connect_protocol import ConnectGroup
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
    """What a whole config topic tells. ``dedicated`` are the offsets topics that its connectors name."""

    topic: str
    connectors: frozenset[str]
    deleted: frozenset[str] = frozenset()
    dedicated: frozenset[str] = frozenset()
    end: int = 0


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


@dataclass(frozen=True)
class ClusterSignals:
    """What is known about the cluster whose topics are looked for, and about its neighbours on the same Kafka."""

    workers: frozenset[str] = frozenset()
    connectors: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    dedicated: frozenset[str] = field(default_factory=frozenset)
    other_groups: bool = False


def called_after(group_id: str, role: str) -> str:
    """The name of an internal topic of a group that ``connectctl run`` made."""
    return f"{group_id}-{'configs' if role == Role.CONFIG else role}"


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
    return ConfigTopicSignals(topic, frozenset(state.connectors), state.deleted, frozenset(filter(None, named)), end)


def choose_config(found: Sequence[ConfigTopicSignals], empty: Sequence[str], group: ConnectGroup) -> TopicChoice:
    """The config topic of ``group``: it has every connector that the group runs, and reaches as far as its workers read."""
    assignments = [m.assignment for m in group.members if m.assignment]
    if not assignments:
        return _guess(sorted(c.topic for c in found)) if found else _guess(sorted(empty), empty=True)
    assigned = {connector for connector, _ in group.owners}
    read_to = max(a.config_offset for a in assignments)
    fits = [c for c in found if assigned <= c.connectors and c.end >= read_to]
    # A connector deleted a moment ago is still assigned; half the names are then better evidence than none.
    fits = fits or [c for c in found if assigned & c.connectors and c.end >= read_to]
    exact = [c for c in fits if assigned == c.connectors]
    if fits:
        choice = _only(sorted(c.topic for c in (exact if len(exact) == 1 else fits)))
        return choice if assigned else replace(choice, proven=False)
    return _guess(sorted(empty), empty=True) if not assigned else TopicChoice(None)


def choose(found: Sequence[TopicSignals], empty: Sequence[str], evidence: ClusterSignals) -> TopicChoice:
    """The offsets or status topic of the cluster that ``evidence`` describes, among topics of that role and empty ones."""
    candidates = [c for c in found if c.topic not in evidence.dedicated]
    blank = sorted(set(empty) - evidence.dedicated)
    by_worker = [c for c in candidates if c.workers & evidence.workers]
    mine = [c for c in candidates if c.connectors & evidence.connectors]
    surely = [c for c in mine if not c.connectors & evidence.others]
    for narrowed in ([c for c in by_worker if c in mine], by_worker, surely):
        if narrowed:
            return _only(sorted(c.topic for c in narrowed))
    # What is left proves nothing by itself, so that an empty topic is as good a candidate beside a neighbour's.
    left = sorted(c.topic for c in candidates if c in mine or not c.connectors & evidence.others)
    if left:
        return _guess(left + (blank if evidence.other_groups else []))
    if blank:
        return _guess(blank, empty=True)
    return _guess(sorted(c.topic for c in found if c.topic in evidence.dedicated))


def _only(topics: Sequence[str], *, empty: bool = False) -> TopicChoice:
    if len(topics) == 1:
        return TopicChoice(topics[0], empty=empty)
    return TopicChoice(None, tuple(topics))


def _guess(topics: Sequence[str], *, empty: bool = False) -> TopicChoice:
    """The last one left, which nothing proves."""
    choice = _only(topics, empty=empty)
    return replace(choice, proven=choice.topic is None)
