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
from connectctl.ops.checks.acls.principals import Client
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


class AclWhen(StrEnum):
    """On what else a row depends."""

    ALWAYS = "always"
    TOPIC_MISSING = "topic missing"
    OLD_BROKER = "brokers before 2.8"
    CREATES_TOPICS = "topic.creation.*"


class AclName(StrEnum):
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

    role: Client
    operation: Operation
    resource: Resource
    name: AclName
    stage: AclStage = AclStage.DISABLED
    when: AclWhen = AclWhen.ALWAYS
    optional: bool = False


def _each(
    role: Client, operations: tuple[Operation, ...], resource: Resource, name: AclName, stage: AclStage
) -> tuple[Row, ...]:
    return tuple(Row(role, operation, resource, name, stage) for operation in operations)


_USE = (Operation.WRITE, Operation.DESCRIBE)
_IDEMPOTENT = (Operation.IDEMPOTENT_WRITE, Resource.CLUSTER, AclName.CLUSTER)
WORKER_ROWS = (
    Row(Client.WORKER, Operation.READ, Resource.GROUP, AclName.GROUP),
    *_each(Client.WORKER, (Operation.READ, *_USE), Resource.TOPIC, AclName.INTERNAL, AclStage.DISABLED),
    Row(Client.WORKER, Operation.CREATE, Resource.TOPIC, AclName.INTERNAL, when=AclWhen.TOPIC_MISSING),
    Row(Client.WORKER, Operation.DESCRIBE_CONFIGS, Resource.TOPIC, AclName.INTERNAL, optional=True),
    *_each(Client.WORKER, _USE, Resource.TRANSACTIONAL_ID, AclName.LEADER, AclStage.PREPARING),
    Row(Client.WORKER, *_IDEMPOTENT, AclStage.PREPARING, AclWhen.OLD_BROKER),
)
CONNECTOR_ROWS = (
    *_each(Client.PRODUCER, _USE, Resource.TRANSACTIONAL_ID, AclName.TASKS, AclStage.ENABLED),
    Row(Client.PRODUCER, Operation.WRITE, Resource.TOPIC, AclName.OFFSETS, AclStage.ENABLED),
    Row(Client.PRODUCER, *_IDEMPOTENT, AclStage.ENABLED, AclWhen.OLD_BROKER),
    *_each(Client.PRODUCER, _USE, Resource.TOPIC, AclName.TARGETS, AclStage.DISABLED),
    Row(Client.CONSUMER, Operation.READ, Resource.TOPIC, AclName.OFFSETS, AclStage.ENABLED),
    *_each(Client.ADMIN, _USE, Resource.TRANSACTIONAL_ID, AclName.TASKS, AclStage.ENABLED),
    Row(Client.ADMIN, Operation.DESCRIBE, Resource.TOPIC, AclName.OFFSETS, AclStage.ENABLED),
    Row(Client.ADMIN, Operation.CREATE, Resource.TOPIC, AclName.OFFSETS, AclStage.ENABLED, AclWhen.TOPIC_MISSING),
    Row(Client.ADMIN, Operation.DESCRIBE, Resource.TOPIC, AclName.TARGETS, when=AclWhen.CREATES_TOPICS),
)
"""Rows about the offsets topic hold in every stage for a connector with one of its own: it is used in every mode."""
_BROKERS_OWN = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that a pattern never takes (``exclude.internal.topics``)."""


@dataclass(frozen=True, order=True)
class Requirement:
    """A permission that is needed: by whom, on which Kafka cluster (its bootstrap servers), from which stage on.

    ``connector`` is empty for the workers'. ``task``: the name is a task's transactional id. ``prefix`` is what the names
    of all that it stands for begin with, empty where it stands for itself.
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
    """The stage whose permissions matter under ``goal``; NOW asks for what is in use."""
    if goal is Goal.NOW:
        return AclStage.ENABLED if enabled_now else AclStage.DISABLED
    return {Goal.PREPARING: AclStage.PREPARING, Goal.ENABLED: AclStage.ENABLED}.get(goal, AclStage.DISABLED)


def needs(facts: AclFacts, stage: AclStage) -> Iterator[Requirement]:
    """All that must be allowed at ``stage``, for every principal that is known, on every cluster with an authorizer."""
    yield from _of_workers(facts, stage)
    for source in facts.sources:
        yield from _of_source(facts, source, stage)
    for sink in facts.sinks:
        yield from _of_sink(facts, sink)


def _of_workers(facts: AclFacts, stage: AclStage) -> Iterator[Requirement]:
    there = facts.guarded(facts.bootstrap)
    if facts.worker is None or there is None:
        return
    for row in WORKER_ROWS:
        if not stage.reached(row.stage) or (row.when is AclWhen.OLD_BROKER and not there.wants_idempotent_write):
            continue
        names = {
            AclName.GROUP: (facts.group_id,),
            AclName.LEADER: (leader_id(facts.group_id),),
            AclName.CLUSTER: (CLUSTER_NAME,),
            AclName.INTERNAL: facts.internal,
        }[row.name]
        for name in names:
            if row.when is not AclWhen.TOPIC_MISSING or name not in there.topics:
                action = Action(facts.worker, row.operation, row.resource, name)
                yield Requirement(facts.bootstrap, "", row.role, row.stage, action, row.optional)


def _of_source(facts: AclFacts, source: SourceAccess, stage: AclStage) -> Iterator[Requirement]:
    for row in CONNECTOR_ROWS:
        principal, cluster = source.principals.get(row.role), source.clusters[row.role]
        there = facts.guarded(cluster)
        if principal is None or there is None:
            continue
        since = AclStage.DISABLED if row.name is AclName.OFFSETS and source.dedicated else row.stage
        if not stage.reached(since) or not _holds(row, source, there.topics, there.wants_idempotent_write):
            continue
        names = {
            AclName.TASKS: tuple(task_id(facts.group_id, source.name, n) for n in range(source.ids)),
            AclName.OFFSETS: (source.offsets_topic,) if source.offsets_topic else (),
            AclName.TARGETS: source.targets,
            AclName.CLUSTER: (CLUSTER_NAME,),
        }[row.name]
        for name in names:
            action = Action(principal, row.operation, row.resource, name)
            yield Requirement(cluster, source.name, row.role, since, action, row.optional, row.name is AclName.TASKS)


def _holds(row: Row, source: SourceAccess, topics: frozenset[str], old: bool) -> bool:
    if row.when is AclWhen.OLD_BROKER:
        return old
    if row.when is AclWhen.CREATES_TOPICS:
        return source.creates_topics
    return row.when is not AclWhen.TOPIC_MISSING or source.offsets_topic not in topics


def _of_sink(facts: AclFacts, sink: SinkAccess) -> Iterator[Requirement]:
    """What ``Worker.buildSinkTask`` opens: a consumer of the group (``SinkUtils.consumerGroupId``), and for
    ``errors.deadletterqueue.topic.name`` a producer, and an admin client that creates the topic where it does not find it
    (``DeadLetterQueueReporter.createAndSetup``). Exactly-once support changes none of it.
    """

    def need(role: Client, operation: Operation, resource: Resource, name: str, use: Use) -> Iterator[Requirement]:
        who, cluster = sink.principals.get(role), sink.clusters[role]
        if who is not None and facts.guarded(cluster):
            prefix = sink.prefix if use is Use.PATTERN else ""
            action = Action(who, operation, resource, name)
            yield Requirement(cluster, sink.name, role, AclStage.DISABLED, action, use=use, prefix=prefix)

    if sink.group is not None:
        yield from need(Client.CONSUMER, Operation.READ, Resource.GROUP, sink.group, Use.SINK)
    for topic in sink.topics:
        for operation in (Operation.READ, Operation.DESCRIBE):
            yield from need(Client.CONSUMER, operation, Resource.TOPIC, topic, Use.SINK)
    there, pattern = facts.guarded(sink.clusters[Client.CONSUMER]), sink.pattern
    if there and pattern:
        for topic in filter(pattern.fullmatch, sorted(there.topics - _BROKERS_OWN)):
            yield from need(Client.CONSUMER, Operation.READ, Resource.TOPIC, topic, Use.PATTERN)
    if dead := sink.dead_letters:
        for operation in _USE:
            yield from need(Client.PRODUCER, operation, Resource.TOPIC, dead, Use.DEAD_LETTERS)
        yield from need(Client.ADMIN, Operation.DESCRIBE, Resource.TOPIC, dead, Use.DEAD_LETTERS)
        there = facts.guarded(sink.clusters[Client.ADMIN])
        if there and dead not in there.topics:
            yield from need(Client.ADMIN, Operation.CREATE, Resource.TOPIC, dead, Use.DEAD_LETTERS)
