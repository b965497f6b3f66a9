"""The repair of a connector whose task configurations compaction removes: it publishes them again.

Neither a restart nor an identical PUT causes this, because a worker writes task configurations only
if they differ from those in its memory. A stop writes a commit of no tasks (KIP-875, Kafka 3.5).
After a resume all of them differ, and the new ones follow the connector's configuration in the
topic.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from connectctl.ops.clients.protocols import KafkaReads
from connectctl.ops.connect.connect_protocol import CONNECTOR_INSTANCE
from connectctl.ops.connect.connector import (
    Connector,
    State,
    requested_state,
    restoring_verb,
    verdict_of,
)
from connectctl.ops.connect.health import failed_parts
from connectctl.ops.connect.task_config_commits import (
    TaskConfigOrder,
    lost_task_configs,
    task_configs_lost,
)
from connectctl.ops.core.errors import ConnectctlError, Refused, TimedOut, Unreachable
from connectctl.ops.core.finding import Finding
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.step import Step
from connectctl.ops.kafka.visibility import gap_findings, gap_of
from connectctl.ops.operations.connectors.context import POLL
from connectctl.ops.operations.connectors.cure import CureContext
from connectctl.ops.operations.connectors.steps import WANTED, Await, SetTargetState

PATIENCE = 3.0
"""Seconds that an open transaction may hold up the reading of the config topic."""


def orders(kafka: KafkaReads, topic: str) -> tuple[TaskConfigOrder, ...]:
    """Return the connectors that lose their tasks by the order of records in the config topic
    ``topic``. Raises ``Unreachable``.
    """
    image = kafka.image([topic], patience=PATIENCE, superseded=True).get(topic)
    if image is None:
        return ()
    if image.held_back:
        # The missing commit may follow the open transaction.
        raise Unreachable(f"Could not read {topic} to its end", why="an open transaction blocks it")
    return tuple(lost_task_configs([*image.latest, *image.superseded], time.time()))


def findings(kafka: KafkaReads, topic: str | None) -> tuple[Finding, ...]:
    """Return TASK010 for every such connector, or a gap if the topic could not be read."""
    if topic is None:
        return ()
    try:
        return tuple(task_configs_lost(order, topic) for order in orders(kafka, topic))
    except ConnectctlError as e:
        return gap_findings([gap_of(e, f"the order of the config topic {topic}")])


@dataclass(frozen=True)
class AwaitPublished(Step[CureContext]):
    subject: str
    now: str = ""

    def describe(self) -> str:
        return f"verify that the task configurations of {self.subject} follow its configuration"

    def apply(self, context: CureContext) -> str | None:
        order: TaskConfigOrder | None = None

        def published() -> str | None:
            nonlocal order
            order = context.order(self.subject)
            return "they do" if order is None else None

        done = context.until(published, context.timeout, POLL)
        if order is not None:
            why = (
                f"its configuration is at offset {order.config}, the commit of its tasks at "
                f"{order.commit}"
            )
            hint = f"See connectctl connectors show {self.subject}, and try again."
            raise TimedOut(
                f"{self.subject} did not publish its tasks again", why=why, next_step=hint
            )
        return done


def plan_republish(
    cluster_id: str, connector: Connector, order: TaskConfigOrder, *, group_id: str = ""
) -> Plan:
    """Return the plan that makes ``connector`` publish its tasks again, and restores its state.

    Raises ``Refused`` if the connector itself has failed: it would publish no tasks, and lose its
    current ones.
    """
    name = connector.name
    if CONNECTOR_INSTANCE in failed_parts(connector):
        raise Refused(
            f"{name} is FAILED, and would publish no tasks",
            why=f"its {order.tasks} previous tasks may still run, and a stop would end them",
            next_step=f"Correct it first: connectctl connectors show {name} -o wide.",
            code="connector-failed",
        )
    verb = restoring_verb(requested_state(connector))
    steps: list[Step[CureContext]] = [
        SetTargetState(name, "stop", str(verdict_of(connector, connector.owners).state)),
        Await(name, State.STOPPED),
        SetTargetState(name, verb, ""),
        Await(name, WANTED[verb]),
        AwaitPublished(name),
    ]
    return Plan("connectors cure", cluster_id, tuple(steps), group_id=group_id, independent=True)
