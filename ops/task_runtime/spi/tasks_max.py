"""Enforces ``tasks.max`` (KIP-1004). Pure; the messages are those of ``TooManyTasksException``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TaskConfig = Mapping[str, str]


@dataclass(frozen=True)
class TasksMaxResult:
    """The tasks that run. ``failed`` is the connector's failure, ``tasks_failed`` that of all its
    tasks.
    """

    tasks: Sequence[TaskConfig]
    failed: str | None = None
    tasks_failed: str | None = None
    warning: str | None = None


def limit(config: Mapping[str, str]) -> int:
    """Return ``tasks.max`` of a validated configuration."""
    return int(config.get("tasks.max", "1"))


def enforced(config: Mapping[str, str]) -> bool:
    return config.get("tasks.max.enforce", "true").strip().lower() != "false"


def evaluate(
    connector: str,
    config: Mapping[str, str],
    generated: Sequence[TaskConfig],
    existing: Sequence[TaskConfig],
) -> TasksMaxResult:
    """Return the tasks to run: those ``generated`` now, or the ``existing`` ones if the new ones
    are too many.
    """
    most = limit(config)
    if len(generated) <= most:
        return TasksMaxResult(generated)
    if not enforced(config):
        return TasksMaxResult(generated, warning=_tolerated(connector, len(generated), most))
    failed = too_many(connector, len(generated), most)
    if not existing:
        return TasksMaxResult((), failed)
    if len(existing) > most:
        return TasksMaxResult((), failed, too_many(connector, len(existing), most))
    return TasksMaxResult(existing, failed)


def too_many(connector: str, tasks: int, most: int) -> str:
    """Return the failure of a connector with too many tasks."""
    return (
        f"The connector {connector} has generated {tasks} tasks, which is greater than {most}, "
        "the maximum number of tasks it is configured to create. This behaviour should be "
        "considered a bug and is disallowed. If necessary, it can be permitted by reconfiguring "
        "the connector with 'tasks.max.enforce' set to false; however, this option will be "
        "removed in a future release of Kafka Connect."
    )


def _tolerated(connector: str, tasks: int, most: int) -> str:
    return (
        f"The connector {connector} has generated {tasks} tasks, which is greater than {most}, "
        "the maximum number of tasks it is configured to create. This behavior should be "
        "considered a bug and will be disallowed in future releases of Kafka Connect. Please "
        "report this to the maintainers of the connector and request that they adjust their "
        "connector's taskConfigs() method to respect the maxTasks parameter."
    )
