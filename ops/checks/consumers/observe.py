"""Observes the consumers of source connectors' topics, and the evidence of their isolation levels;
evaluates nothing.

No request returns a consumer's ``isolation.level``. The evidence is the configuration of sinks and
mirrors, and a committed offset beyond the last stable offset, which no read_committed consumer can
have reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property

from connectctl.ops.checks.context import CheckContext
from connectctl.ops.clients.protocols import BrokerReads, TransactionCalls
from connectctl.ops.connect.connector_class import configured_topics
from connectctl.ops.connect.goal import Goal, leads_to_enabled
from connectctl.ops.connect.mirror_topics import replicates
from connectctl.ops.connect.offset_store import connects_to
from connectctl.ops.connect.partition_fields import matches
from connectctl.ops.connect.sink_group import sink_group, topics_of_sink
from connectctl.ops.core.finding import some_of
from connectctl.ops.core.unseen import Unseen, answer_of, reason, unseen_by
from connectctl.ops.kafka.bootstrap import share_a_server
from connectctl.ops.kafka.brokers import SHARE, ReaderGroup, ReaderGroups
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Bounds
from connectctl.ops.kafka.visibility import DESCRIBE_CLUSTER, describe_topic, grant
from connectctl.ops.operations.connectors.tracked_topics import FEW, active_topics

SINK, MIRROR = "sink", "mirror"
ISOLATION = "isolation.level"
COMMITTED = "read_committed"
_MIRROR_CLASS = "MirrorSourceConnector"


@dataclass(frozen=True)
class ReaderConnector:
    """A connector of this Connect cluster that reads ``topics``, which source connectors write.

    ``level`` is its consumer's configured isolation level, None if none is known, which means
    Kafka's default. ``property`` is the property that sets it, ``group`` the consumer group of a
    sink.
    """

    name: str
    kind: str
    topics: frozenset[str]
    level: str | None
    property: str
    group: str | None = None


@dataclass(frozen=True)
class ReadBeyondLso:
    """A committed offset above the last stable offset, which was requested later; ``end`` is the
    high watermark.
    """

    partition: TopicPartition
    committed: int
    stable: int
    end: int


@dataclass(frozen=True)
class ReaderFacts:
    """The observations. ``groups`` are those that read one of the topics; ``beyond`` is evidence,
    by group.

    ``sources`` are the source connectors whose topics may be read, with their topics on the
    workers' Kafka cluster. ``sinks`` are all sink connectors, ``sharing`` all share groups.
    ``enabled`` is whether tasks have transactions now, None if no worker reports it.
    """

    sources: Mapping[str, frozenset[str]] = field(default_factory=dict)
    connectors: tuple[ReaderConnector, ...] = ()
    groups: tuple[ReaderGroup, ...] = ()
    beyond: Mapping[str, tuple[ReadBeyondLso, ...]] = field(default_factory=dict)
    sinks: tuple[str, ...] = ()
    sharing: tuple[str, ...] = ()
    enabled: bool | None = None
    unseen: tuple[Unseen, ...] = ()

    @property
    def topics(self) -> frozenset[str]:
        """Return every topic that a source connector writes to."""
        return frozenset().union(*self.sources.values())

    @cached_property
    def unexplained(self) -> dict[str, list[str]]:
        """Return, by topic, the groups that read it with an unknown isolation.level."""
        known = {reading.group for reading in self.connectors} | set(self.beyond)
        found: dict[str, list[str]] = {}
        for group in self.groups:
            if group.id not in known:
                for topic in group.topics:
                    found.setdefault(topic, []).append(group.id)
        return found


def observe(context: CheckContext, goal: Goal) -> ReaderFacts:
    """Observe the readers. Without transactional writes no requests are sent."""
    sinks = tuple(
        sorted(connector.name for connector in context.all_connectors if connector.type == SINK)
    )
    empty = ReaderFacts(sinks=sinks, enabled=context.enabled)
    if not leads_to_enabled(context.enabled, goal) or not context.sources:
        return empty
    brokers = context.edges.brokers()
    unseen: list[Unseen] = []
    with ThreadPoolExecutor(1) as pool:
        listing = pool.submit(brokers.readers)
        written = _written(context, unseen)
        readers = answer_of(listing.result, unseen, "consumer groups") or ReaderGroups()
    topics = frozenset[str]().union(*written.values())
    unseen += _unlisted(readers) + _hidden(brokers, topics)
    groups = tuple(group for group in readers.groups if group.topics & topics)
    return replace(
        empty,
        sources=written,
        connectors=tuple(_readings(context, topics)),
        groups=groups,
        sharing=tuple(group.id for group in readers.groups if group.type == SHARE),
        beyond=_beyond(context.edges.transactions(), groups, topics, unseen),
        unseen=tuple(unseen),
    )


# ---------------------------------------------------------------------------------- what is written


def _written(context: CheckContext, unseen: list[Unseen]) -> dict[str, frozenset[str]]:
    """Return the topics of each source connector: those that it wrote to, and those that its
    configuration names.
    """
    remote = [
        source
        for source in context.sources
        if not connects_to(source.config, "producer", context.edges.bootstrap)
    ]
    if remote:
        names = some_of(sorted(source.name for source in remote), FEW)
        hint = "Check the consumer groups of that cluster, and their isolation.level."
        unseen.append(Unseen(f"who reads from {names}", "it writes to another Kafka cluster", hint))
    remote_names = frozenset(source.name for source in remote)
    local = [source for source in context.sources if source.name not in remote_names]
    reported = context.recorded
    active, failures = active_topics(
        context.edges.calls, [source.name for source in local], reported
    )
    missing = [source.name for source in local if source.name not in active]
    recorded = {name: reported[name] for name in missing if name in reported} if reported else {}
    # The status topic has the same data; without it only the configurations remain.
    unseen += [] if recorded else failures
    return {
        source.name: frozenset(
            (*active.get(source.name, ()), *recorded.get(source.name, ()), *_named(source.config))
        )
        for source in local
    }


def _named(config: Mapping[str, str]) -> frozenset[str]:
    """Return the topics that a configuration names as targets; none for a mirror, which names the
    topics that it reads.
    """
    return frozenset() if _is_mirror(config) else configured_topics(config)


# ------------------------------------------------------------------------------------- who reads it


def _readings(context: CheckContext, topics: frozenset[str]) -> Iterable[ReaderConnector]:
    for connector in context.all_connectors:
        if connector.type == SINK:
            if not connects_to(connector.config, "consumer", context.edges.bootstrap):
                continue
            topics_read = _of_sink(connector.config, topics)
            property_ = f"consumer.override.{ISOLATION}"
            level = (
                connector.config.get(property_) or context.worker_property(f"consumer.{ISOLATION}")
                if topics_read
                else None
            )
            reading = ReaderConnector(
                connector.name,
                SINK,
                topics_read,
                level,
                property_,
                sink_group(connector.name, connector.config),
            )
        elif _is_mirror(connector.config):
            if not share_a_server(
                connector.config.get("source.cluster.bootstrap.servers", ""),
                context.edges.bootstrap,
            ):
                continue
            # Both prefixes count, and the longer one wins
            # (MirrorConnectorConfig.sourceConsumerConfig).
            property_ = f"source.consumer.{ISOLATION}"
            level = connector.config.get(property_) or connector.config.get(f"consumer.{ISOLATION}")
            reading = ReaderConnector(
                connector.name, MIRROR, _of_mirror(connector.config, topics), level, property_
            )
        else:
            continue
        if reading.topics:
            yield reading


def _of_sink(config: Mapping[str, str], topics: frozenset[str]) -> frozenset[str]:
    """Return those of ``topics`` that a sink subscribes to."""
    pattern = config.get("topics.regex")
    if pattern:
        return frozenset(topic for topic in topics if matches([pattern], topic) is not False)
    return topics & topics_of_sink(config)


def _of_mirror(config: Mapping[str, str], topics: frozenset[str]) -> frozenset[str]:
    """Return those of ``topics`` that a mirror replicates, or may replicate."""
    return frozenset(topic for topic in topics if replicates(config, topic) is not False)


def _is_mirror(config: Mapping[str, str]) -> bool:
    """Return whether this is a MirrorSourceConnector, a source connector that reads from Kafka."""
    return config.get("connector.class", "").rsplit(".", 1)[-1] == _MIRROR_CLASS


# ----------------------------------------------------------------------------------------- evidence


def _beyond(
    calls: TransactionCalls,
    groups: Sequence[ReaderGroup],
    topics: frozenset[str],
    unseen: list[Unseen],
) -> dict[str, tuple[ReadBeyondLso, ...]]:
    """Return the commits of groups beyond the offsets that read_committed consumers reach.

    The last stable offset is requested after the commits and never decreases: a commit above it was
    above it before.
    """
    partitions = sorted(
        {
            partition
            for group in groups
            for partition in group.committed
            if partition.topic in topics
        }
    )
    bounds = (
        answer_of(
            lambda: calls.bounds(partitions) if partitions else {}, unseen, "last stable offsets"
        )
        or {}
    )
    found = {
        group.id: tuple(
            ReadBeyondLso(partition, committed, known.stable, known.end)
            for partition, committed in sorted(group.committed.items())
            if isinstance(known := bounds.get(partition), Bounds)
            and known.stable < committed <= known.end
        )
        for group in groups
    }
    return {id: evidence for id, evidence in found.items() if evidence}


def _unlisted(readers: ReaderGroups) -> list[Unseen]:
    found = [
        unseen_by(f"the groups of broker {broker}", error)
        for broker, error in sorted(readers.problems.items())
    ]
    if not readers.complete:
        why = (
            f"this principal is shown only those that it may describe: {DESCRIBE_CLUSTER} is "
            "missing"
        )
        found.append(Unseen("all consumer groups", why, grant(DESCRIBE_CLUSTER)))
    by_reason: dict[tuple[str, str | None], list[str]] = {}
    for group in readers.groups:
        if group.problem is not None:
            by_reason.setdefault((reason(group.problem), group.problem.next_step), []).append(
                group.id
            )
    found += [
        Unseen(f"the topics that {', '.join(ids)} reads", why, hint)
        for (why, hint), ids in by_reason.items()
    ]
    return found


def _hidden(reads: BrokerReads, topics: frozenset[str]) -> list[Unseen]:
    """Return the topics whose committed offsets this principal may not read."""
    found: list[Unseen] = []
    hidden = sorted(
        answer_of(
            lambda: reads.hidden(sorted(topics)), found, "who reads the topics of source connectors"
        )
        or ()
    )
    if not hidden:
        return found
    missing = ", ".join(str(describe_topic(topic)) for topic in hidden)
    why = f"this principal may not see the topics: {missing} is missing"
    return [Unseen(f"who reads {', '.join(hidden)}", why, grant(describe_topic(hidden[0])))]
