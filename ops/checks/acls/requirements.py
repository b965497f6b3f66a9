"""KIP-618's tables of permissions, as data, with what they leave out; and who needs what of them, on a given cluster.

Left out there: the admin client reads the offsets topic's end in every case (``TopicAdmin.endOffsets``); tasks that are no
more are fenced by their old ids, so that as many ids are needed as any count of tasks says; with ``topic.creation.*`` the
admin client also asks for the target topics (``AbstractWorkerSourceTask.maybeCreateTopic``). Kafka's documentation has no
table for sinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from connectctl.ops.checks.acls.observe import AclFacts, SinkAccess, SourceAccess
from connectctl.ops.checks.acls.principals import Role
from connectctl.ops.checks.types import Goal
from connectctl.ops.connect.transactional_ids import leader_id, task_id
from connectctl.ops.kafka.acls import CLUSTER_NAME, Action, Operation, Resource


class AclStage(StrEnum):
    """What ``exactly.once.source.support`` is to be; a later stage needs all that an earlier one does."""

    DISABLED = "disabled"
    PREPARING = "preparing"
    ENABLED = "enabled"

    def reached(self, other: AclStage) -> bool:
        """Whether this stage is ``other`` or a later one."""
        order = list(AclStage)
        return order.index(self) >= order.index(other)


class When(StrEnum):
    """On what else a row depends."""

    ALWAYS = "always"
    TOPIC_MISSING = "topic missing"
    OLD_BROKER = "brokers before 2.8"
    CREATES_TOPICS = "topic.creation.*"


class Name(StrEnum):
    """What a row is about, to be filled in for the cluster."""

    GROUP = "group.id"
    LEADER = "connect-cluster-<group.id>"
    INTERNAL = "the workers' three topics"
    TASKS = "<group.id>-<connector>-<task>, for every task"
    OFFSETS = "the connector's offsets topic"
    TARGETS = "the topics that the connector writes to"
    CLUSTER = CLUSTER_NAME


class Use(StrEnum):
    """What a permission is used for: a row of KIP-618's tables, or something that a sink does."""

    TABLES = "KIP-618"
    SINK = "a sink's group and topics"
    PATTERN = "topics that topics.regex of a sink matches"
    DEAD_LETTERS = "a sink's dead letters"


@dataclass(frozen=True)
class Row:
    """A permission that ``role`` needs from ``stage`` on. ``optional``: Connect runs without it, and sees less."""

    role: Role
    operation: Operation
    resource: Resource
    name: Name
    stage: AclStage = AclStage.DISABLED
    when: When = When.ALWAYS
    optional: bool = False


def _each(
    role: Role, operations: tuple[Operation, ...], resource: Resource, name: Name, stage: AclStage
) -> tuple[Row, ...]:
    return tuple(Row(role, operation, resource, name, stage) for operation in operations)


_USE = (Operation.WRITE, Operation.DESCRIBE)
WORKER_ROWS = (
    Row(Role.WORKER, Operation.READ, Resource.GROUP, Name.GROUP),
    *_each(Role.WORKER, (Operation.READ, *_USE), Resource.TOPIC, Name.INTERNAL, AclStage.DISABLED),
    Row(Role.WORKER, Operation.CREATE, Resource.TOPIC, Name.INTERNAL, when=When.TOPIC_MISSING),
    Row(Role.WORKER, Operation.DESCRIBE_CONFIGS, Resource.TOPIC, Name.INTERNAL, optional=True),
    *_each(Role.WORKER, _USE, Resource.TRANSACTIONAL_ID, Name.LEADER, AclStage.PREPARING),
    Row(Role.WORKER, Operation.IDEMPOTENT_WRITE, Resource.CLUSTER, Name.CLUSTER, AclStage.PREPARING, When.OLD_BROKER),
)
CONNECTOR_ROWS = (
    *_each(Role.PRODUCER, _USE, Resource.TRANSACTIONAL_ID, Name.TASKS, AclStage.ENABLED),
    Row(Role.PRODUCER, Operation.WRITE, Resource.TOPIC, Name.OFFSETS, AclStage.ENABLED),
    Row(Role.PRODUCER, Operation.IDEMPOTENT_WRITE, Resource.CLUSTER, Name.CLUSTER, AclStage.ENABLED, When.OLD_BROKER),
    *_each(Role.PRODUCER, _USE, Resource.TOPIC, Name.TARGETS, AclStage.DISABLED),
    Row(Role.CONSUMER, Operation.READ, Resource.TOPIC, Name.OFFSETS, AclStage.ENABLED),
    *_each(Role.ADMIN, _USE, Resource.TRANSACTIONAL_ID, Name.TASKS, AclStage.ENABLED),
    Row(Role.ADMIN, Operation.DESCRIBE, Resource.TOPIC, Name.OFFSETS, AclStage.ENABLED),
    Row(Role.ADMIN, Operation.CREATE, Resource.TOPIC, Name.OFFSETS, AclStage.ENABLED, When.TOPIC_MISSING),
    Row(Role.ADMIN, Operation.DESCRIBE, Resource.TOPIC, Name.TARGETS, when=When.CREATES_TOPICS),
)
"""Rows about the offsets topic hold in every stage for a connector with one of its own: it is used in every mode."""
_BROKERS_OWN = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that a pattern never takes (``exclude.internal.topics``)."""


@dataclass(frozen=True, order=True)
class Need:
    """A permission that is needed: by whom, on which Kafka cluster (its bootstrap servers), from which stage on.

    ``connector`` is empty for the workers'. ``task``: the name is a task's transactional id. ``prefix`` is what the names
    of all that it stands for begin with, empty where it stands for itself.
    """

    cluster: str
    connector: str
    role: Role
    stage: AclStage
    action: Action
    optional: bool = False
    task: bool = False
    use: Use = Use.TABLES
    prefix: str = ""


def stage_of(goal: Goal, enabled_now: bool) -> AclStage:
    """The stage whose permissions matter under ``goal``; NOW asks for what is in use."""
    if goal is Goal.NOW:
        return AclStage.ENABLED if enabled_now else AclStage.DISABLED
    return {Goal.PREPARING: AclStage.PREPARING, Goal.ENABLED: AclStage.ENABLED}.get(goal, AclStage.DISABLED)


def needs(facts: AclFacts, stage: AclStage) -> Iterator[Need]:
    """All that must be allowed at ``stage``, for every principal that is known, on every cluster with an authorizer."""
    yield from _of_workers(facts, stage)
    for source in facts.sources:
        yield from _of_source(facts, source, stage)
    for sink in facts.sinks:
        yield from _of_sink(facts, sink)


def _of_workers(facts: AclFacts, stage: AclStage) -> Iterator[Need]:
    there = facts.guarded(facts.bootstrap)
    if facts.worker is None or there is None:
        return
    for row in WORKER_ROWS:
        if not stage.reached(row.stage) or (row.when is When.OLD_BROKER and not there.wants_idempotent_write):
            continue
        names = {
            Name.GROUP: (facts.group_id,),
            Name.LEADER: (leader_id(facts.group_id),),
            Name.CLUSTER: (CLUSTER_NAME,),
            Name.INTERNAL: facts.internal,
        }[row.name]
        for name in names:
            if row.when is not When.TOPIC_MISSING or name not in there.topics:
                action = Action(facts.worker, row.operation, row.resource, name)
                yield Need(facts.bootstrap, "", row.role, row.stage, action, row.optional)


def _of_source(facts: AclFacts, source: SourceAccess, stage: AclStage) -> Iterator[Need]:
    for row in CONNECTOR_ROWS:
        principal, cluster = source.principals.get(row.role), source.clusters[row.role]
        there = facts.guarded(cluster)
        if principal is None or there is None:
            continue
        since = AclStage.DISABLED if row.name is Name.OFFSETS and source.dedicated else row.stage
        if not stage.reached(since) or not _holds(row, source, there.topics, there.wants_idempotent_write):
            continue
        names = {
            Name.TASKS: tuple(task_id(facts.group_id, source.name, n) for n in range(source.ids)),
            Name.OFFSETS: (source.offsets_topic,) if source.offsets_topic else (),
            Name.TARGETS: source.targets,
            Name.CLUSTER: (CLUSTER_NAME,),
        }[row.name]
        for name in names:
            action = Action(principal, row.operation, row.resource, name)
            yield Need(cluster, source.name, row.role, since, action, row.optional, row.name is Name.TASKS)


def _holds(row: Row, source: SourceAccess, topics: frozenset[str], old: bool) -> bool:
    if row.when is When.OLD_BROKER:
        return old
    if row.when is When.CREATES_TOPICS:
        return source.creates_topics
    return row.when is not When.TOPIC_MISSING or source.offsets_topic not in topics


def _of_sink(facts: AclFacts, sink: SinkAccess) -> Iterator[Need]:
    """What ``Worker.buildSinkTask`` opens: a consumer of the group (``SinkUtils.consumerGroupId``), and for
    ``errors.deadletterqueue.topic.name`` a producer, and an admin client that creates the topic where it does not find it
    (``DeadLetterQueueReporter.createAndSetup``). Exactly-once support changes none of it.
    """

    def need(role: Role, operation: Operation, resource: Resource, name: str, use: Use) -> Iterator[Need]:
        who, cluster = sink.principals.get(role), sink.clusters[role]
        if who is not None and facts.guarded(cluster):
            prefix = sink.prefix if use is Use.PATTERN else ""
            action = Action(who, operation, resource, name)
            yield Need(cluster, sink.name, role, AclStage.DISABLED, action, use=use, prefix=prefix)

    if sink.group is not None:
        yield from need(Role.CONSUMER, Operation.READ, Resource.GROUP, sink.group, Use.SINK)
    for topic in sink.topics:
        for operation in (Operation.READ, Operation.DESCRIBE):
            yield from need(Role.CONSUMER, operation, Resource.TOPIC, topic, Use.SINK)
    there, pattern = facts.guarded(sink.clusters[Role.CONSUMER]), sink.pattern
    if there and pattern:
        for topic in filter(pattern.fullmatch, sorted(there.topics - _BROKERS_OWN)):
            yield from need(Role.CONSUMER, Operation.READ, Resource.TOPIC, topic, Use.PATTERN)
    if dead := sink.dead_letters:
        for operation in _USE:
            yield from need(Role.PRODUCER, operation, Resource.TOPIC, dead, Use.DEAD_LETTERS)
        yield from need(Role.ADMIN, Operation.DESCRIBE, Resource.TOPIC, dead, Use.DEAD_LETTERS)
        there = facts.guarded(sink.clusters[Role.ADMIN])
        if there and dead not in there.topics:
            yield from need(Role.ADMIN, Operation.CREATE, Resource.TOPIC, dead, Use.DEAD_LETTERS)
