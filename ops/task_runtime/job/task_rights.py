"""The rights that the tasks of a take-over need on the workers' Kafka cluster. They are checked
before the connector is stopped on the workers.
"""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.kafka.acls import Operation, Resource, Right
from connectctl.ops.task_runtime.job.internal_topics import RunClients
from connectctl.ops.task_runtime.job.prepare import PreparedJob, offsets_topic


def task_rights(scene: RunClients, ready: PreparedJob) -> Iterator[Right]:
    """Yield the rights of a take-over; none if the target is another cluster or another client."""
    if not ready.take_over or scene.target is not scene.kafka:
        return
    if (reads := ready.subscription) is not None:
        yield Right(Operation.READ, Resource.GROUP, reads.consumer.group)
        for topic in reads.topics:
            yield Right(Operation.READ, Resource.TOPIC, topic)
    elif ready.dedicated_topic_exists:
        yield Right(Operation.WRITE, Resource.TOPIC, offsets_topic(ready))
    else:
        yield Right(Operation.CREATE, Resource.TOPIC, offsets_topic(ready))
    for topic in ready.own_topics:
        yield Right(Operation.CREATE, Resource.TOPIC, topic)
    if written := ready.config.get("topic"):
        yield Right(Operation.WRITE, Resource.TOPIC, written)
    for number in range(len(ready.before.tasks)) if ready.delivery.exactly_once else ():
        id_ = task_id(ready.group, ready.name, number)
        yield Right(Operation.WRITE, Resource.TRANSACTIONAL_ID, id_)
