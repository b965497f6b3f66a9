"""Determines the internal topics of a group for a run, and checks their configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.connect.internal_topics import run_status_topic, run_topic_name
from connectctl.ops.connect.transactional_ids import leader_id, task_id
from connectctl.ops.core.errors import Refused
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.operations.cluster.internal_topic_discovery import (
    find_internal_topics,
    those_that_exist,
)

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.clients.protocols import BrokerReads, ConnectCalls, TransactionCalls
    from connectctl.ops.connect.connect_protocol import ConnectGroup

ROLES = ("config", "offsets", "status")
PARTITIONS = {"config": 1, "offsets": 25, "status": 5}
"""Partitions of each topic, as workers create it."""
OWN_PARTITIONS = 1
"""Partitions of the status topic of runs."""
REPLICAS = 3


@dataclass(frozen=True)
class RunClients:
    """The clients of a run. ``target`` is the Kafka cluster that the connector writes to, most
    often that of the workers.

    ``calls`` are requests to the coordinators of the target. ``brokers`` are those of the workers'
    cluster and, last, of a target with another cluster or client. ``workers`` is None without live
    workers. ``named`` are the topics that the user named, by role.
    """

    kafka: Kafka
    target: Kafka
    calls: TransactionCalls
    brokers: Sequence[BrokerReads]
    group: ConnectGroup
    named: Mapping[str, str | None]
    workers: ConnectCalls | None = None


def internal_topics(
    scene: RunClients, name: str, *, live: bool
) -> tuple[dict[str, str], dict[str, int]]:
    """Return the group's topics by role, and the topics to create with their partitions.

    The topics of live workers are discovered, except ``status``: a run writes its statuses to a
    separate topic. Without live workers, the name of a topic that the user did not name is derived
    from the group. Raises ``Refused`` if the group was in use before and has no topics with those
    names.
    """
    if live:
        found = find_internal_topics(
            scene.kafka, scene.group, scene.named, needed=("config", "offsets")
        )
        status = run_status_topic(scene.group.id)
        create = {} if those_that_exist(scene.kafka, status) else {status: OWN_PARTITIONS}
        return {
            "config": str(found.config),
            "offsets": str(found.offsets),
            "status": status,
        }, create
    topics = default_topics(scene.group.id, scene.named)
    existing = those_that_exist(scene.kafka, *topics.values())
    create = {topic: PARTITIONS[role] for role, topic in topics.items() if topic not in existing}
    unnamed = [
        topics[role]
        for role in ("config", "offsets")
        if not scene.named.get(role) and topics[role] in create
    ]
    if unnamed:
        ids = [leader_id(scene.group.id), task_id(scene.group.id, name, 0)]
        known = [
            id_
            for id_, described in scene.calls.describe(ids).items()
            if isinstance(described, Transaction)
        ]
        if known:
            raise Refused(
                f"Group {scene.group.id} has been in use, but its topic {unnamed[0]} does not "
                "exist",
                why=f"the transactional id {known[0]} exists",
                next_step="Set its topics: --config-topic, --offsets-topic and --status-topic, or "
                "topics in the context.",
                code="topics-unknown",
            )
    return topics, create


def default_topics(group: str, named: Mapping[str, str | None]) -> dict[str, str]:
    """Return the internal topics of a group without workers, by role."""
    return {role: named.get(role) or run_topic_name(group, role) for role in ROLES}


def check_layout(
    scene: RunClients, topics: Mapping[str, str], create: Mapping[str, int], own: str | None
) -> None:
    """Raise ``Refused`` for a config topic with several partitions, and for a topic that would
    delete records. ``own`` is an existing dedicated offsets topic.
    """
    facts = scene.kafka.topics([topic for topic in topics.values() if topic not in create])
    config = facts.get(topics["config"])
    if config is not None and config.partitions != 1:
        raise Refused(
            f"{config.name} has {config.partitions} partitions; a config topic must have exactly "
            "one"
        )
    topics_of_target = scene.target.topics([own]) if own else {}
    for topic in (*facts.values(), *topics_of_target.values()):
        policy = topic.config.get("cleanup.policy")
        if policy not in (None, "compact", ""):  # an empty one (KIP-1161) removes nothing
            raise Refused(
                f"{topic.name} has cleanup.policy={policy}: records in it would be deleted",
                next_step="Set cleanup.policy=compact.",
                code="bad-topic",
            )
