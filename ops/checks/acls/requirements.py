"""KIP-618's tables of permissions, as data, with additions; and the requirements of each client on
its cluster.

Additions to the tables: the admin client reads the offsets topic's end in every case
(``TopicAdmin.endOffsets``). Removed tasks are fenced by their former ids, so that the ids of the
highest task count are needed. With ``topic.creation.*`` the admin client also describes the target
topics (``AbstractWorkerSourceTask.maybeCreateTopic``). Kafka's documentation has no table for
sinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from connectctl.ops.checks.acls.observe import AclFacts, SinkAccess, SourceAccess
from connectctl.ops.checks.acls.principals import Client
from connectctl.ops.connect.goal import Goal
from connectctl.ops.connect.transactional_ids import leader_id, task_id
from connectctl.ops.kafka.acls import CLUSTER_NAME, Action, Operation, Resource


class AclStage(StrEnum):
    """The target of ``exactly.once.source.support``; a later stage requires all that an earlier one
    does.
    """

    DISABLED = "disabled"
    PREPARING = "preparing"
    ENABLED = "enabled"

    def reached(self, other: AclStage) -> bool:
        """Return whether this stage is ``other`` or a later one."""
        order = list(AclStage)
        return order.index(self) >= order.index(other)


class AclWhen(StrEnum):
    """The additional condition of a row."""

    ALWAYS = "always"
    TOPIC_MISSING = "topic missing"
    OLD_BROKER = "brokers before 2.8"
    CREATES_TOPICS = "topic.creation.*"


class AclName(StrEnum):
    """The kind of name in a row, to be replaced by the cluster's names."""

    GROUP = "group.id"
    LEADER = "connect-cluster-<group.id>"
    INTERNAL = "the workers' three topics"
    TASKS = "<group.id>-<connector>-<task>, for every task"
    OFFSETS = "the connector's offsets topic"
    TARGETS = "the topics that the connector writes to"
    CLUSTER = CLUSTER_NAME


class Use(StrEnum):
    """The use of a permission: a row of KIP-618's tables, or an operation of a sink."""

    TABLES = "KIP-618"
    SINK = "a sink's group and topics"
    PATTERN = "topics that topics.regex of a sink matches"
    DEAD_LETTERS = "a sink's dead letters"


@dataclass(frozen=True)
class Row:
    """A permission that ``role`` requires from ``stage`` on. ``optional``: Connect runs without it,
    with fewer checks.
    """

    role: Client
    operation: Operation
    resource: Resource
    name: AclName
    stage: AclStage = AclStage.DISABLED
    when: AclWhen = AclWhen.ALWAYS
    optional: bool = False


def _rows(
    role: Client,
    operations: tuple[Operation, ...],
    resource: Resource,
    name: AclName,
    stage: AclStage,
) -> tuple[Row, ...]:
    return tuple(Row(role, operation, resource, name, stage) for operation in operations)


_USE = (Operation.WRITE, Operation.DESCRIBE)
_IDEMPOTENT = (Operation.IDEMPOTENT_WRITE, Resource.CLUSTER, AclName.CLUSTER)
WORKER_ROWS = (
    Row(Client.WORKER, Operation.READ, Resource.GROUP, AclName.GROUP),
    *_rows(
        Client.WORKER, (Operation.READ, *_USE), Resource.TOPIC, AclName.INTERNAL, AclStage.DISABLED
    ),
    Row(
        Client.WORKER,
        Operation.CREATE,
        Resource.TOPIC,
        AclName.INTERNAL,
        when=AclWhen.TOPIC_MISSING,
    ),
    Row(Client.WORKER, Operation.DESCRIBE_CONFIGS, Resource.TOPIC, AclName.INTERNAL, optional=True),
    *_rows(Client.WORKER, _USE, Resource.TRANSACTIONAL_ID, AclName.LEADER, AclStage.PREPARING),
    Row(Client.WORKER, *_IDEMPOTENT, AclStage.PREPARING, AclWhen.OLD_BROKER),
)
CONNECTOR_ROWS = (
    *_rows(Client.PRODUCER, _USE, Resource.TRANSACTIONAL_ID, AclName.TASKS, AclStage.ENABLED),
    Row(Client.PRODUCER, Operation.WRITE, Resource.TOPIC, AclName.OFFSETS, AclStage.ENABLED),
    Row(Client.PRODUCER, *_IDEMPOTENT, AclStage.ENABLED, AclWhen.OLD_BROKER),
    *_rows(Client.PRODUCER, _USE, Resource.TOPIC, AclName.TARGETS, AclStage.DISABLED),
    Row(Client.CONSUMER, Operation.READ, Resource.TOPIC, AclName.OFFSETS, AclStage.ENABLED),
    *_rows(Client.ADMIN, _USE, Resource.TRANSACTIONAL_ID, AclName.TASKS, AclStage.ENABLED),
    Row(Client.ADMIN, Operation.DESCRIBE, Resource.TOPIC, AclName.OFFSETS, AclStage.ENABLED),
    Row(
        Client.ADMIN,
        Operation.CREATE,
        Resource.TOPIC,
        AclName.OFFSETS,
        AclStage.ENABLED,
        AclWhen.TOPIC_MISSING,
    ),
    Row(
        Client.ADMIN,
        Operation.DESCRIBE,
        Resource.TOPIC,
        AclName.TARGETS,
        when=AclWhen.CREATES_TOPICS,
    ),
)
"""Rows about the offsets topic apply in every stage to a connector with a dedicated one, which is
used in every mode.
"""
_BROKERS_OWN = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that a pattern never matches (``exclude.internal.topics``)."""


@dataclass(frozen=True, order=True)
class Requirement:
    """A required permission: the client, the Kafka cluster (its bootstrap servers), and the first
    stage.

    ``connector`` is empty for the workers'. ``task``: the name is a task's transactional id.
    ``prefix`` is the common prefix of all names that the requirement stands for, empty if it stands
    for itself.
    """

    cluster: str
    connector: str
    role: Client
    stage: AclStage
    action: Action
    optional: bool = False
    task: bool = False
    use: Use = Use.TABLES
    prefix: str = ""


def stage_of(goal: Goal, enabled_now: bool) -> AclStage:
    """Return the stage whose permissions ``goal`` requires; NOW requires those that are in use."""
    if goal is Goal.NOW:
        return AclStage.ENABLED if enabled_now else AclStage.DISABLED
    return {Goal.PREPARING: AclStage.PREPARING, Goal.ENABLED: AclStage.ENABLED}.get(
        goal, AclStage.DISABLED
    )


def needs(facts: AclFacts, stage: AclStage) -> Iterator[Requirement]:
    """Yield all requirements at ``stage``, for every known principal, on every cluster with an
    authorizer.
    """
    yield from _of_workers(facts, stage)
    for source in facts.sources:
        yield from _of_source(facts, source, stage)
    for sink in facts.sinks:
        yield from _of_sink(facts, sink)


def _of_workers(facts: AclFacts, stage: AclStage) -> Iterator[Requirement]:
    cluster = facts.with_authorizer(facts.bootstrap)
    if facts.worker is None or cluster is None:
        return
    for row in WORKER_ROWS:
        if not stage.reached(row.stage) or (
            row.when is AclWhen.OLD_BROKER and not cluster.wants_idempotent_write
        ):
            continue
        names = {
            AclName.GROUP: (facts.group_id,),
            AclName.LEADER: (leader_id(facts.group_id),),
            AclName.CLUSTER: (CLUSTER_NAME,),
            AclName.INTERNAL: facts.internal,
        }[row.name]
        for name in names:
            if row.when is not AclWhen.TOPIC_MISSING or name not in cluster.topics:
                action = Action(facts.worker, row.operation, row.resource, name)
                yield Requirement(facts.bootstrap, "", row.role, row.stage, action, row.optional)


def _of_source(facts: AclFacts, source: SourceAccess, stage: AclStage) -> Iterator[Requirement]:
    for row in CONNECTOR_ROWS:
        principal, cluster = source.principals.get(row.role), source.clusters[row.role]
        observed = facts.with_authorizer(cluster)
        if principal is None or observed is None:
            continue
        since = AclStage.DISABLED if row.name is AclName.OFFSETS and source.dedicated else row.stage
        if not stage.reached(since) or not _holds(
            row, source, observed.topics, observed.wants_idempotent_write
        ):
            continue
        names = {
            AclName.TASKS: tuple(
                task_id(facts.group_id, source.name, n) for n in range(source.ids)
            ),
            AclName.OFFSETS: (source.offsets_topic,) if source.offsets_topic else (),
            AclName.TARGETS: source.targets,
            AclName.CLUSTER: (CLUSTER_NAME,),
        }[row.name]
        for name in names:
            action = Action(principal, row.operation, row.resource, name)
            yield Requirement(
                cluster,
                source.name,
                row.role,
                since,
                action,
                row.optional,
                row.name is AclName.TASKS,
            )


def _holds(row: Row, source: SourceAccess, topics: frozenset[str], old_brokers: bool) -> bool:
    if row.when is AclWhen.OLD_BROKER:
        return old_brokers
    if row.when is AclWhen.CREATES_TOPICS:
        return source.creates_topics
    return row.when is not AclWhen.TOPIC_MISSING or source.offsets_topic not in topics


def _of_sink(facts: AclFacts, sink: SinkAccess) -> Iterator[Requirement]:
    """Yield the requirements of the clients that ``Worker.buildSinkTask`` opens.

    These are a consumer of the group (``SinkUtils.consumerGroupId``), and for
    ``errors.deadletterqueue.topic.name`` a producer and an admin client, which creates the topic if
    it does not exist (``DeadLetterQueueReporter.createAndSetup``). Exactly-once support does not
    change them.
    """

    def need(
        role: Client, operation: Operation, resource: Resource, name: str, use: Use
    ) -> Iterator[Requirement]:
        principal, cluster = sink.principals.get(role), sink.clusters[role]
        if principal is not None and facts.with_authorizer(cluster):
            prefix = sink.prefix if use is Use.PATTERN else ""
            action = Action(principal, operation, resource, name)
            yield Requirement(
                cluster, sink.name, role, AclStage.DISABLED, action, use=use, prefix=prefix
            )

    if sink.group is not None:
        yield from need(Client.CONSUMER, Operation.READ, Resource.GROUP, sink.group, Use.SINK)
    for topic in sink.topics:
        for operation in (Operation.READ, Operation.DESCRIBE):
            yield from need(Client.CONSUMER, operation, Resource.TOPIC, topic, Use.SINK)
    observed, pattern = facts.with_authorizer(sink.clusters[Client.CONSUMER]), sink.pattern
    if observed and pattern:
        for topic in filter(pattern.fullmatch, sorted(observed.topics - _BROKERS_OWN)):
            yield from need(Client.CONSUMER, Operation.READ, Resource.TOPIC, topic, Use.PATTERN)
    if queue := sink.dead_letters:
        for operation in _USE:
            yield from need(Client.PRODUCER, operation, Resource.TOPIC, queue, Use.DEAD_LETTERS)
        yield from need(Client.ADMIN, Operation.DESCRIBE, Resource.TOPIC, queue, Use.DEAD_LETTERS)
        observed = facts.with_authorizer(sink.clusters[Client.ADMIN])
        if observed and queue not in observed.topics:
            yield from need(Client.ADMIN, Operation.CREATE, Resource.TOPIC, queue, Use.DEAD_LETTERS)
