"""Reads the versions of a configuration from the config topic and the journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import BadInput, ConnectctlError, TimedOut
from connectctl.ops.operations.cluster.internal_topic_discovery import find_internal_topics
from connectctl.ops.operations.connectors.config.history import (
    ConfigVersion,
    journal_versions,
    merged,
    topic_versions,
)

if TYPE_CHECKING:
    from connectctl.ops.kafka.records import ConsumerRecord
    from connectctl.ops.operations.connectors.access import ClusterAccess


def versions_of(
    cluster: ClusterAccess, name: str, kinds: Mapping[str, type[Any]]
) -> tuple[list[ConfigVersion], str | None]:
    """Return the versions of ``name``, and why the config topic was not read, None if it was.

    ``kinds`` are the steps of the journal's plans. Raises ``BadInput`` for a connector without any
    version.
    """
    unseen: ConnectctlError | None = None
    topic: list[ConfigVersion] = []
    try:
        topic = topic_versions(config_records(cluster), name)
    except ConnectctlError as e:
        unseen = e
    journal = cluster.clients.journal(read_only=True)
    found = merged(
        topic, journal_versions(journal, name, cluster.cluster_id(), cluster.group_id, kinds)
    )
    if not found and unseen is not None:
        raise unseen
    if not found:
        raise BadInput(
            f"No configuration of {name} is known",
            why="neither the config topic nor the journal of this machine has one",
            next_step="See connectctl connectors list.",
            code="unknown-connector",
        )
    return found, unseen.what if unseen is not None else None


def config_records(cluster: ClusterAccess) -> list[ConsumerRecord]:
    """Return all committed records of the config topic. Raises ``ConnectctlError`` if it is not
    read to its end.
    """
    if cluster.kafka is None or cluster.group is None:
        raise BadInput(
            "The config topic was not read: the brokers are not given",
            next_step="Add --bootstrap-servers.",
        )
    topic = str(
        find_internal_topics(
            cluster.kafka, cluster.group, cluster.clients.named_topics, needed=("config",)
        ).config
    )
    image = cluster.kafka.image([topic], patience=cluster.clients.timeout, superseded=True)[topic]
    if image.held_back:
        raise TimedOut(f"{topic} was not read to its end", why="a transaction is open on it")
    return [*image.superseded, *image.latest]
