"""The topics that a copy reads and those that it writes: what has to be created or to grow before
tasks start.

As ``MirrorSourceConnector`` does it: a remote topic has as many partitions as its source and the
configuration that the source has of its own, ``config.properties.exclude`` apart; one that is there
and has fewer partitions grows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import ConnectctlError, Refused, TimedOut
from connectctl.ops.core.wait import wait_until
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.operations.cluster.internal_topic_discovery import those_that_exist
from connectctl.ops.task_runtime.connectors.topic_copy.replication_policy import (
    PROPERTIES_EXCLUDE,
    Selection,
    pattern,
)

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka

REPLICAS = 2
"""``replication.factor`` where none is given, as MirrorMaker has it; fewer on a cluster with fewer
brokers.
"""
PAUSE = 0.1


@dataclass(frozen=True)
class RemoteTopics:
    """The source's ``topics`` that are copied, by name with their partitions. ``missing`` are
    remote topics that are not there, ``short`` those with too few partitions, by remote name with
    the source's.
    """

    topics: Mapping[str, int]
    missing: Mapping[str, str] = field(default_factory=dict)
    short: Mapping[str, str] = field(default_factory=dict)

    @property
    def topic_partitions(self) -> list[TopicPartition]:
        return [
            TopicPartition(topic, n)
            for topic, count in sorted(self.topics.items())
            for n in range(count)
        ]

    def descriptions(self) -> list[str]:
        """Return the changes of ``prepare``, a line for each topic."""
        changes = [
            (f"create the topic {remote} with", topic)
            for remote, topic in sorted(self.missing.items())
        ]
        changes += [
            (f"increase {remote} to", topic) for remote, topic in sorted(self.short.items())
        ]
        counts = {
            topic: f"{count} partition{'s' * (count > 1)}" for topic, count in self.topics.items()
        }
        return [
            f"{change} {counts[topic]}, as for {topic} on the source cluster"
            for change, topic in changes
        ]


def plan_remote_topics(source: Kafka, target: Kafka, selection: Selection) -> RemoteTopics:
    """Return the topics to copy and the topics to create for them. Raises ``Refused`` for a topic
    that would be copied into itself.
    """
    policy = selection.policy
    topics = source.partition_counts(
        [t for t in sorted(source.topic_names()) if selection.includes(t)]
    )
    itself = [topic for topic in topics if policy.remote(topic) == topic]
    if itself and source.cluster_id() == target.cluster_id():
        raise Refused(
            f"The topic {itself[0]} would be copied into itself in a loop",
            why="source and target are the same cluster, and the replication policy does not "
            "rename topics",
            next_step="Use DefaultReplicationPolicy.",
            code="copied-into-itself",
        )
    existing = those_that_exist(target, *map(policy.remote, topics))
    missing = {policy.remote(t): t for t in topics if policy.remote(t) not in existing}
    sizes = target.partition_counts(
        [policy.remote(t) for t in topics if policy.remote(t) in existing]
    )
    short = {
        policy.remote(t): t
        for t, count in topics.items()
        if sizes.get(policy.remote(t), count) < count
    }
    return RemoteTopics(topics, missing, short)


def prepare(source: Kafka, target: Kafka, wanted: RemoteTopics, config: Mapping[str, str]) -> None:
    """Create what is missing, and let grow what is short."""
    configs = _own_configs(
        source, list(wanted.missing.values()), config.get("config.properties.exclude")
    )
    configured = config.get("replication.factor")
    replicas = REPLICAS if configured is None else int(configured)
    for remote, topic in wanted.missing.items():
        target.create_topic(
            remote, wanted.topics[topic], replicas, configs[topic], exactly=configured is not None
        )
    if wanted.short:
        _grow(target, {remote: wanted.topics[topic] for remote, topic in wanted.short.items()})


def _own_configs(
    source: Kafka, topics: list[str], exclude: str | None
) -> dict[str, dict[str, str]]:
    """Return the configuration that is set on each topic itself, without defaults."""
    from confluent_kafka.admin import ConfigResource, ConfigSource, ResourceType

    if not topics:
        return {}
    unwanted = pattern(PROPERTIES_EXCLUDE if exclude is None else exclude)
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    found: dict[str, dict[str, str]] = {}
    answers = source.admin_request(
        lambda admin, seconds: admin.describe_configs(resources, request_timeout=seconds)
    )
    for resource, future in answers.items():
        entries: Mapping[str, Any] = source.ask("describe topics", future.result)
        found[resource.name] = {
            name: entry.value
            for name, entry in entries.items()
            if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
            and not (unwanted and unwanted.fullmatch(name))
            and entry.value is not None
        }
    return found


def _grow(target: Kafka, sizes: Mapping[str, int]) -> None:
    from confluent_kafka.admin import NewPartitions

    requests = [NewPartitions(topic, count) for topic, count in sizes.items()]
    answers = target.admin_request(
        lambda admin, seconds: admin.create_partitions(requests, request_timeout=seconds),
        repeats=False,
    )
    for topic, future in answers.items():
        try:
            target.ask(f"create partitions of {topic}", future.result)
        except ConnectctlError as e:
            if e.code != "INVALID_PARTITIONS":  # it has them already
                raise

    # A producer that knows of fewer partitions than a record wants would fail for good.
    def led() -> bool | None:
        return None if any(_led(target, topic) < count for topic, count in sizes.items()) else True

    if not wait_until(led, target.timeout, PAUSE):
        topics = ", ".join(sizes)
        raise TimedOut(
            f"Partitions were added to {topics}, but not all have a leader after "
            f"{target.timeout:g} s"
        )


def _led(target: Kafka, topic: str) -> int:
    """Return the number of partitions of ``topic`` that have a leader."""
    found = target.ask(
        f"describe the topic {topic}", lambda: target.admin.list_topics(topic, target.timeout)
    )
    return sum(each.leader >= 0 for each in found.topics[topic].partitions.values())
