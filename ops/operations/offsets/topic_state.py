"""The records of one connector in the global offsets topic and in its dedicated one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.ops.connect import offsets_findings
from connectctl.ops.connect.source_keys import SourceKey, parse_key
from connectctl.ops.core.finding import Severity
from connectctl.ops.operations.offsets.changes import Side
from connectctl.ops.operations.offsets.record_changes import OffsetsTopicState, topic_state
from connectctl.ops.operations.offsets.snapshot import OffsetsSnapshot, ReadTopic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectctl.ops.kafka.records import TopicImage
    from connectctl.ops.operations.offsets.observe import Sources
    from connectctl.ops.operations.offsets.record_changes import ByKey

CONNECTS_DEFAULT = 25
"""Partitions of a new offsets topic where there is no global one to go by."""


def topic_states(
    sources: Sources,
    snapshot: OffsetsSnapshot,
    connector: str,
    dedicated_topic: str | None = None,
    known: Mapping[str, ByKey] | None = None,
) -> list[OffsetsTopicState]:
    """The global topic first, then the dedicated one, which may not exist yet.

    ``dedicated_topic`` stands in for one that the connector's configuration does not name, yet or any more. ``known`` is
    ``by_connector`` of the global topic, where many connectors are asked about.
    """
    found: list[OffsetsTopicState] = []
    if snapshot.global_topic is not None:
        found.append(topic_state(snapshot.global_topic, connector, known=known))
    partitions = found[0].partitions if found else CONNECTS_DEFAULT
    store = snapshot.stores.get(connector)
    if connector in snapshot.dedicated:
        found.append(topic_state(snapshot.dedicated[connector], connector))
    elif store is not None:
        unreadable = (f for f in snapshot.findings if f.id == "OFFSETS011" and f.subject == connector)
        problem = next((f.message for f in unreadable), None)
        found.append(
            OffsetsTopicState(
                store.topic, Side.DEDICATED, partitions, {}, store.bootstrap, problem is not None, problem
            )
        )
    elif dedicated_topic is not None:
        found.append(_named(sources, connector, dedicated_topic, partitions))
    return found


def _named(sources: Sources, connector: str, topic: str, partitions: int) -> OffsetsTopicState:
    images = sources.kafka.image([topic], patience=sources.patience)
    if topic not in images:
        return OffsetsTopicState(topic, Side.DEDICATED, partitions, partitions_exist=False)
    return topic_state(ReadTopic(images[topic], "dedicated"), connector, problem=_unfit(sources, images[topic], topic))


def _unfit(sources: Sources, image: TopicImage, topic: str) -> str | None:
    """Why an existing topic cannot become a connector's offsets topic."""
    if topic in (sources.offsets_topic, sources.config_topic):
        return f"{topic} is an internal topic of the workers; it cannot be a connector's offsets topic"
    if not all(isinstance(parse_key(record.key), SourceKey) for record in image.latest):
        return f"{topic} has records that are not source offsets: it is used for something else"
    policy = sources.kafka.topics([topic])[topic].config.get("cleanup.policy")
    bad = (finding for finding in offsets_findings.of_policy(topic, policy) if finding.severity is Severity.ERROR)
    return next((f"{topic}: {finding.message}" for finding in bad), None)
