"""Reads committed offsets of groups, and the first and end offsets of their partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from connectctl.ops.clients.protocols import GroupOffsetWrites, KafkaReads
from connectctl.ops.connect.config_topic import ConfiguredConnector
from connectctl.ops.connect.sink_group import sink_group, topics_of_sink, unknown_group
from connectctl.ops.core.errors import BadInput, NotAuthorized
from connectctl.ops.kafka.topics import OffsetRange
from connectctl.ops.operations.connectors.observe import matching_names
from connectctl.ops.operations.sink_offsets.changes import GroupOffsets, topics_of


def sinks_among(
    names: Sequence[str], configured: Mapping[str, ConfiguredConnector]
) -> list[ConfiguredConnector]:
    """Return the sink connectors in ``names``, by name or glob; all if it is empty.

    Raises ``BadInput`` for sources and unknown names.
    """
    sinks = sorted(name for name, connector in configured.items() if connector.looks_like == "sink")
    names = list(dict.fromkeys(matching_names(sinks, names)))
    for name in names:
        if name not in configured:
            raise BadInput(
                f"Sink connector not found: {name}",
                next_step="For a group without a connector give --group GROUP in its place.",
            )
        if configured[name].looks_like != "sink":
            raise BadInput(
                f"{name} is a source connector, and others are sinks",
                next_step="Name one kind at a time.",
            )
    return [configured[name] for name in names or sinks]


def group_of(connector: ConfiguredConnector) -> str:
    """Return the connector's consumer group. Raises ``BadInput`` if it is unknown, or on another
    Kafka cluster.
    """
    if why := unknown_group(connector.name, connector.config):
        raise BadInput(
            f"The consumer group of {connector.name} is unknown here",
            why=why,
            next_step="Give --group GROUP in place of the connector, in a context of the Kafka "
            "cluster that has it.",
            code="group-elsewhere",
        )
    return sink_group(connector.name, connector.config)


def offsets_of_connector(
    groups: GroupOffsetWrites,
    kafka: KafkaReads,
    connector: ConfiguredConnector,
    topics: frozenset[str] = frozenset(),
    *,
    stable: bool = False,
) -> GroupOffsets:
    """Return the offsets of a sink connector; see ``offsets_of_group``."""
    every = topics | topics_of_sink(connector.config)
    return offsets_of_group(
        groups, kafka, group_of(connector), every, connector=connector.name, stable=stable
    )


def offsets_of_group(
    groups: GroupOffsetWrites,
    kafka: KafkaReads,
    group_id: str,
    topics: frozenset[str] = frozenset(),
    *,
    connector: str | None = None,
    stable: bool = False,
) -> GroupOffsets:
    """Return the group's offsets, of ``topics`` and of all other topics with committed offsets.

    Kafka omits committed offsets of topics that may not be described, without an error; those of
    ``topics`` are then ``unseen``. With ``stable``, offsets that are part of an open transaction
    are an error. Raises ``NotAuthorized`` if the group may not be described, and ``BadInput`` if it
    is not a consumer group.
    """
    group = groups.group(group_id)
    if group.kind not in ("consumer", ""):
        raise BadInput(
            f"{group_id} is not a group of consumers",
            why=f"its members speak the protocol {group.kind!r}",
            code="other-group",
        )
    committed = groups.stable(group_id) if stable else groups.committed(group_id)
    ranges, unseen = _ranges(kafka, sorted({*topics_of(committed), *topics}))
    return GroupOffsets(
        connector or group_id, group, committed, ranges, unseen, connector is not None
    )


def _ranges(
    kafka: KafkaReads, topics: Sequence[str]
) -> tuple[dict[str, dict[int, OffsetRange]], frozenset[str]]:
    """Return the first and end offsets of the partitions of ``topics``, and the topics that may not
    be described.
    """
    try:
        return (kafka.extents(topics) if topics else {}), frozenset()
    except NotAuthorized:
        if len(topics) == 1:
            return {}, frozenset(topics)
    found: dict[str, dict[int, OffsetRange]] = {}
    unseen: set[str] = set()
    for topic in topics:
        ranges, hidden = _ranges(kafka, [topic])
        found |= ranges
        unseen |= hidden
    return found, frozenset(unseen)


def with_pending(groups: GroupOffsetWrites, found: GroupOffsets) -> GroupOffsets:
    """Return ``found`` with its pending offsets (KIP-447), and the transactions that hold them."""
    pending = groups.pending(found.group.id, {*found.committed, *found.uncommitted})
    return (
        replace(found, pending=pending, waits_for=groups.holder(found.group.id))
        if pending
        else found
    )
