"""What sink connectors need: their group, the topics they read, and the topic of their dead letters.

Kafka's documentation has no table for them; the rows are what ``Worker.buildSinkTask`` opens: a consumer of the group
(``SinkUtils.consumerGroupId``), and for ``errors.deadletterqueue.topic.name`` a producer, and an admin client that creates
the topic where it does not find it (``DeadLetterQueueReporter.createAndSetup``). Exactly-once support changes none of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.checks.acls.observe import AclFacts
from connectctl.ops.checks.acls.principals import Role
from connectctl.ops.checks.acls.requirements import AclStage, Need, Use
from connectctl.ops.checks.acls.sinks import SinkAccess
from connectctl.ops.kafka.acls import Action, Operation, Resource

_BROKERS_OWN = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that a pattern never takes (``exclude.internal.topics``)."""


def needs_of_sinks(facts: AclFacts) -> Iterator[Need]:
    """All that sinks must be allowed, for every principal that is known, on every cluster with an authorizer."""
    for sink in facts.sinks:
        yield from _reading(facts, sink)
        if sink.dead_letters:
            yield from _dead_letters(facts, sink, sink.dead_letters)


def _reading(facts: AclFacts, sink: SinkAccess) -> Iterator[Need]:
    who, cluster = sink.principals.get(Role.CONSUMER), sink.clusters[Role.CONSUMER]
    there = facts.clusters.get(cluster)
    if who is None or there is None or there.acls is None:
        return
    if sink.group is not None:
        action = Action(who, Operation.READ, Resource.GROUP, sink.group)
        yield Need(cluster, sink.name, Role.CONSUMER, AclStage.DISABLED, action, use=Use.SINK)
    for topic in sink.topics:
        for operation in (Operation.READ, Operation.DESCRIBE):
            action = Action(who, operation, Resource.TOPIC, topic)
            yield Need(cluster, sink.name, Role.CONSUMER, AclStage.DISABLED, action, use=Use.SINK)
    if pattern := sink.pattern:
        for topic in sorted(there.topics - _BROKERS_OWN):
            if pattern.fullmatch(topic):
                action = Action(who, Operation.READ, Resource.TOPIC, topic)
                yield Need(
                    cluster, sink.name, Role.CONSUMER, AclStage.DISABLED, action, use=Use.PATTERN, prefix=sink.prefix
                )


def _dead_letters(facts: AclFacts, sink: SinkAccess, topic: str) -> Iterator[Need]:
    for role, operations in (
        (Role.PRODUCER, (Operation.WRITE, Operation.DESCRIBE)),
        (Role.ADMIN, (Operation.DESCRIBE, Operation.CREATE)),
    ):
        who, cluster = sink.principals.get(role), sink.clusters[role]
        there = facts.clusters.get(cluster)
        if who is None or there is None or there.acls is None:
            continue
        for operation in operations:
            if operation is not Operation.CREATE or topic not in there.topics:
                action = Action(who, operation, Resource.TOPIC, topic)
                yield Need(cluster, sink.name, role, AclStage.DISABLED, action, use=Use.DEAD_LETTERS)
