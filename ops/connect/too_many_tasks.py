"""Failures because a connector has more tasks than ``tasks.max`` (KIP-1004), and the restart of the
failed parts.
"""

from __future__ import annotations

from connectctl.ops.connect.connector import Connector, verdict_of
from connectctl.ops.connect.health import failed_parts

EXCEPTION = "org.apache.kafka.connect.runtime.TooManyTasksException"


def failed_by_tasks_max(connector: Connector) -> bool:
    """Return whether a part of ``connector`` has failed with ``TooManyTasksException``."""
    return any(EXCEPTION in (status.trace or "") for status in failed_parts(connector).values())


def restart_hint(connector: Connector) -> str:
    """Return how the failed parts are restarted, which a resume does not do.

    After ``TooManyTasksException`` a restart fails again until ``tasks.max`` is raised.
    """
    name = connector.name
    if failed_by_tasks_max(connector):
        return (
            "A restart fails again: it has more tasks than tasks.max. Raise it: connectctl "
            f"connectors patch {name} tasks.max=N; connectctl tasks check {name} shows the "
            "number."
        )
    return f"Restart the failed parts: connectctl connectors restart {name} --only-failed"


def restart_warning(connector: Connector, *, only_failed: bool) -> str | None:
    """Return which parts a restart will break, None if it breaks nothing."""
    if not failed_by_tasks_max(connector):
        return None
    running = verdict_of(connector, connector.owners).running
    if only_failed or not running:
        return (
            f"{connector.name}: the failed parts will fail again, because it has more tasks "
            "than tasks.max"
        )
    tasks = "its running task" if running == 1 else f"its {running} running tasks"
    return (
        f"{connector.name}: the restart ends {tasks}, which may not start again: it has more "
        "tasks than tasks.max"
    )
