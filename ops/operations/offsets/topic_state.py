"""The records of one connector in the global offsets topic and in its dedicated one, and which of
the two its tasks committed to last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from connectctl.ops.connect import offsets_findings
from connectctl.ops.connect.last_commit import (
    Commits,
    LastCommit,
    Side,
    age_difference,
    last_commit_of_records,
)
from connectctl.ops.connect.source_keys import connector_of, connectors_of, owners_of
from connectctl.ops.core.finding import Severity, counted, with_hint
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.operations.offsets.snapshot import OffsetsSnapshot, ReadTopic

if TYPE_CHECKING:
    from connectctl.ops.core.errors import ConnectctlError
    from connectctl.ops.kafka.records import ConsumerRecord, TopicImage
    from connectctl.ops.operations.offsets.observe import Sources

CONNECTS_DEFAULT = 25
"""Partitions of an offsets topic by default (``offset.storage.partitions``)."""
ByKey = dict[bytes, list["ConsumerRecord"]]


@dataclass(frozen=True)
class OffsetsTopicState:
    """An offsets topic of one connector: the connector's records by raw key, the newest of each
    Kafka partition.

    ``bootstrap`` is None on the workers' cluster. For a topic that does not exist yet,
    ``partitions`` is its future number of partitions. ``problem`` is the reason why the records may
    be incomplete, or why the topic must not be written; ``hint`` is the next step. ``unread`` is
    the error if no record could be read. ``in_use``: the connector's tasks commit to the topic.
    ``ends`` are the end offsets of its partitions.
    """

    topic: str
    side: Side
    partitions: int
    records: Mapping[bytes, tuple[ConsumerRecord, ...]] = field(default_factory=dict)
    bootstrap: str | None = None
    partitions_exist: bool = True
    problem: str | None = None
    in_use: bool = False
    ends: tuple[int, ...] = ()
    unread: ConnectctlError | None = None
    hint: str | None = None

    @property
    def reason(self) -> str | None:
        """Return the problem with its hint."""
        return with_hint(self.problem, self.hint) if self.problem else None

    def record(self, key: bytes) -> ConsumerRecord | None:
        """Return the record of ``key`` that workers use: the one on the partition of Java's
        partitioner, else the newest.
        """
        found = self.records.get(key, ())
        if len(found) == 1:
            return found[0]
        home = [r for r in found if r.partition == java_partition(key, self.partitions)]
        return (
            home[0]
            if home
            else max(found, key=lambda r: (r.timestamp or 0, r.offset, r.partition), default=None)
        )

    def value(self, key: bytes) -> bytes | None:
        """Return the live value of ``key``, None if there is none."""
        record = self.record(key)
        return record.value if record else None

    def live(self, key: bytes) -> bool:
        """Return whether any partition has a value of ``key``."""
        return any(record.value is not None for record in self.records.get(key, ()))


def by_connector(topic: ReadTopic) -> dict[str, ByKey]:
    """Return the records in ``topic`` by connector and raw key."""
    found: dict[str, ByKey] = {}
    records = list(topic.image.latest)
    connectors = connectors_of([record.key for record in records])
    for record, connector in zip(records, connectors, strict=True):
        if connector is not None and record.key is not None:
            found.setdefault(connector, {}).setdefault(record.key, []).append(record)
    return found


def topic_state(
    topic: ReadTopic,
    connector: str,
    *,
    problem: str | None = None,
    known: Mapping[str, ByKey] | None = None,
) -> OffsetsTopicState:
    """Return the state of ``topic`` for ``connector``; ``known`` is ``by_connector(topic)``, for
    many connectors.
    """
    records = by_key(topic.image.latest, connector) if known is None else known.get(connector, {})
    name, held, hint = topic.image.topic, topic.image.held_back, None
    if held:
        problem = f"an open transaction blocks reading {name}-{held[0].partition} to its end"
        hint = offsets_findings.end_transaction_hint(name)
    frozen = {key: tuple(found) for key, found in records.items()}
    ends = tuple(end for _, end in sorted(topic.image.end_offsets.items()))
    side = Side(topic.role)
    return OffsetsTopicState(
        name, side, len(ends), frozen, topic.bootstrap, problem=problem, ends=ends, hint=hint
    )


def by_key(records: Collection[ConsumerRecord], connector: str) -> ByKey:
    """Return the records of ``connector`` by raw key."""
    owner, found = connector.encode(errors="surrogatepass"), ByKey()
    owners = owners_of([record.key for record in records])
    own = [record for record, other in zip(records, owners, strict=True) if other == owner]
    for record, of in zip(own, connectors_of([record.key for record in own]), strict=True):
        if of == connector and record.key is not None:
            found.setdefault(record.key, []).append(record)
    return found


def is_of(raw: bytes, connector: str) -> bool:
    """Return whether ``raw`` is a key of ``connector``."""
    return connector_of(raw) == connector


def topic_states(
    sources: Sources,
    snapshot: OffsetsSnapshot,
    connector: str,
    dedicated_topic: str | None = None,
    known: Mapping[str, ByKey] | None = None,
) -> list[OffsetsTopicState]:
    """Return the global topic first, then the dedicated one, which may not exist yet.

    ``dedicated_topic`` is read if the connector's configuration does not name one. ``known`` is
    ``by_connector`` of the global topic, for many connectors.
    """
    found: list[OffsetsTopicState] = []
    if snapshot.global_topic is not None:
        found.append(topic_state(snapshot.global_topic, connector, known=known))
    partitions = found[0].partitions if found else CONNECTS_DEFAULT
    store = snapshot.stores.get(connector)
    if store is None:
        found = [replace(state, in_use=True) for state in found]
    if connector in snapshot.dedicated:
        found.append(replace(topic_state(snapshot.dedicated[connector], connector), in_use=True))
    elif store is not None:
        unreadable = (
            f for f in snapshot.findings if f.id == "OFFSETS011" and f.subject == connector
        )
        why = next(unreadable, None)
        problem, hint = (why.statement, why.next_step) if why else (None, None)
        unread = snapshot.unread.get(connector)
        side, exists = Side.DEDICATED, problem is not None
        found.append(
            OffsetsTopicState(
                store.topic,
                side,
                partitions,
                {},
                store.bootstrap,
                exists,
                problem,
                in_use=True,
                unread=unread,
                hint=hint,
            )
        )
    elif dedicated_topic is not None:
        found.append(_named(sources, connector, dedicated_topic, partitions))
    return found


def _named(sources: Sources, connector: str, topic: str, partitions: int) -> OffsetsTopicState:
    images = sources.kafka.image([topic], patience=sources.patience)
    if topic not in images:
        return OffsetsTopicState(topic, Side.DEDICATED, partitions, partitions_exist=False)
    return topic_state(
        ReadTopic(images[topic], "dedicated"),
        connector,
        problem=_unfit(sources, images[topic], topic),
    )


def _unfit(sources: Sources, image: TopicImage, topic: str) -> str | None:
    """Return the reason why an existing topic cannot become a connector's offsets topic, None if it
    can.
    """
    if topic in (sources.offsets_topic, sources.config_topic):
        return (
            f"{topic} is an internal topic of the workers; it cannot be a connector's offsets topic"
        )
    if None in connectors_of([record.key for record in image.latest]):
        return f"{topic} has records that are not source offsets: it is used for something else"
    policy = sources.kafka.topics([topic])[topic].config.get("cleanup.policy")
    bad = (
        finding
        for finding in offsets_findings.of_policy(topic, policy)
        if finding.severity is Severity.ERROR
    )
    return next((f"{topic}: {finding.message}" for finding in bad), None)


def commits_of(states: Sequence[OffsetsTopicState], *, running: bool) -> Commits:
    """Return the topic to which the tasks of the connector of ``states`` commit."""
    return Commits(next((state.side for state in states if state.in_use), None), running)


def last_commits(
    states: Sequence[OffsetsTopicState], *, running: bool
) -> Iterator[tuple[bytes, LastCommit]]:
    """Yield the verdict on each key that is in both topics."""
    by_side = {state.side: state for state in states}
    dedicated, global_ = by_side.get(Side.DEDICATED), by_side.get(Side.GLOBAL)
    if dedicated is None or global_ is None:
        return
    commits = commits_of(states, running=running)
    for key in sorted(dedicated.records.keys() & global_.records.keys()):
        yield key, last_commit_of_records(global_.record(key), dedicated.record(key), commits)


def stale(
    states: Sequence[OffsetsTopicState], *, running: bool, in_doubt: bool = False
) -> str | None:
    """Return the message that the dedicated topic is stale, with the number of source partitions;
    None if it is not.

    With ``in_doubt``, only source partitions count for which the user must choose between the two
    topics.
    """
    found = [
        (key, last)
        for key, last in last_commits(states, running=running)
        if (last.in_doubt if in_doubt else last.stale)
    ]
    if not found:
        return None
    by_side = {state.side: state for state in states}
    dedicated, global_ = by_side[Side.DEDICATED], by_side[Side.GLOBAL]
    key, last = found[0]
    old, new = text_of(dedicated.value(key)), text_of(global_.value(key)) or "tombstone"
    how = (
        f"is {age_difference(last)} older than the global {new}"
        if last.later
        else f"differs from the global {new}"
    )
    to = "" if in_doubt or last.in_doubt else f"; {last.why}"
    return (
        f"The dedicated topic {dedicated.topic} looks stale for "
        f"{counted(len(found), 'source partition')}: its offset of {text_of(key)}, {old}, "
        f"{how}{to}."
    )


def text_of(raw: bytes | None) -> str | None:
    """Return a raw key or value as text, with escapes for bytes that are not UTF-8."""
    return None if raw is None else raw.decode(errors="backslashreplace")
