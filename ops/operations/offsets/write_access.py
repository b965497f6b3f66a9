"""Checks the right to write offsets before a connector is stopped or fenced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.ops.core.errors import Refused
from connectctl.ops.kafka.acls import Operation, Resource, Right
from connectctl.ops.kafka.visibility import grant
from connectctl.ops.operations.connectors.steps import SetTargetState
from connectctl.ops.operations.offsets.task_producers import FenceTasks

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectctl.ops.clients.protocols import RightsReads
    from connectctl.ops.operations.offsets.planning import Changes

_DISTURBS = (SetTargetState, FenceTasks)
"""The steps after which a write that is not allowed would leave the connector stopped, and its offsets as they were."""


def refuse_without_write(changes: Changes, rights: Callable[[], RightsReads]) -> None:
    """Raises ``Refused`` where a plan disturbs a connector and then writes to a topic that may not be written.

    The brokers tell which operations a topic allows. Topics that are still to be created, and those on another cluster than
    the workers', are not asked about: the steps find out, and say so.
    """
    if not any(isinstance(step, _DISTURBS) for step in changes.plan.steps):
        return
    topics = sorted({write.topic for write in changes.writes if write.bootstrap is None})
    if not topics:
        return
    for topic, allowed in rights().on_topics(topics).items():
        if allowed.operations is not None and Operation.WRITE not in allowed.operations:
            right = Right(Operation.WRITE, Resource.TOPIC, topic)
            raise Refused(
                f"Not authorized to write offsets to {topic}; nothing was changed",
                why=f"this principal lacks {right}",
                next_step=grant(right),
                code="no-write-right",
            )
