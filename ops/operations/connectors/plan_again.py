"""What would be planned now for the request of a saved plan: compared with it before it is carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from connectctl.ops.operations.cluster import loggers
from connectctl.ops.operations.connectors import tracked_topics
from connectctl.ops.operations.connectors.steps import Await, Restart, RestartTask, plan_restart, plan_state

if TYPE_CHECKING:
    from connectctl.ops.core.plan import Plan
    from connectctl.ops.operations.connectors.access import ConnectorAccess


def plan_again(access: ConnectorAccess, saved: Plan) -> Plan:
    """The plan of now for the connectors, or the loggers, of ``saved``. Raises ``BadInput`` for unknown connectors."""
    if saved.operation == "loggers set":
        return loggers.plan_again(saved.cluster_id, access.calls, saved) if saved.steps else saved
    if saved.operation == "connectors topics":
        (name,) = saved.resources
        topics = tracked_topics.read(access.calls, name)
        return tracked_topics.plan_reset(saved.cluster_id, name, topics, saved.group_id)
    return _states(access, saved)


def _states(access: ConnectorAccess, saved: Plan) -> Plan:
    waits = [step.subject for step in saved.steps if isinstance(step, Await)]
    found = access.connectors(list(dict.fromkeys((*waits, *saved.resources))))
    where: Any = {"wait": bool(waits), "group_id": saved.group_id}
    verb = saved.operation.removeprefix("connectors ")
    if verb != "restart":
        return plan_state(saved.cluster_id, found, verb, **where)
    only_failed = any(isinstance(step, Restart) and step.only_failed for step in saved.steps)
    task = next((step.task for step in saved.steps if isinstance(step, RestartTask)), None)
    return plan_restart(saved.cluster_id, found, only_failed=only_failed, task=task, named=False, **where)
