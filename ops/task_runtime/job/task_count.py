"""Evaluates ``tasks.max`` (KIP-1004) before a run begins and before Spark is opened."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError, Refused
from connectctl.ops.task_runtime.job import status_topic as words
from connectctl.ops.task_runtime.job.status_topic import StatusWriter
from connectctl.ops.task_runtime.spi.tasks_max import TaskConfig, TasksMaxResult, evaluate

if TYPE_CHECKING:
    from connectctl.ops.clients.librdkafka.client import Kafka
    from connectctl.ops.task_runtime.spi.connector import Outlook


class TooManyTasks(ConnectctlError):
    """A connector has generated too many tasks, and none of them runs (KIP-1004)."""

    code = "too-many-tasks"


def count_tasks(
    name: str,
    path: str,
    config: Mapping[str, str],
    existing: Sequence[TaskConfig],
    outlook: Outlook,
    task_configs: Callable[[], Sequence[TaskConfig]],
) -> tuple[TasksMaxResult | None, tuple[str, ...]]:
    """Return the tasks that ``tasks.max`` allows for a connector with ``existing`` tasks, and
    notes. The tasks are None if they are not known yet.

    ``task_configs`` starts the connector, generates its tasks and stops it. It is called only if
    ``outlook`` has neither the number of tasks nor steps, which a start would perform. Raises
    ``Refused`` if the connector fails.
    """
    if outlook.tasks is None and outlook.steps:
        return None, (
            f"tasks.max is checked when {name} is started: its number of tasks is unknown before.",
        )
    generated = (
        _generated(name, path, task_configs) if outlook.tasks is None else [{}] * outlook.tasks
    )
    found = evaluate(name, config, generated, existing)
    return found, tuple(_notes(found))


def _generated(
    name: str, path: str, task_configs: Callable[[], Sequence[TaskConfig]]
) -> Sequence[TaskConfig]:
    try:
        return task_configs()
    except ConnectctlError:
        raise
    except Exception as e:
        text = " ".join(str(e).split())
        raise Refused(
            f"The connector {name} failed when it was asked for its tasks",
            why=f"{type(e).__name__}: {text}" if text else type(e).__name__,
            next_step=f"Correct its configuration, or {path}.",
            code="connector-failed",
        ) from e


def _notes(found: TasksMaxResult) -> Iterator[str]:
    if found.warning:
        yield found.warning
    if found.failed and found.tasks:
        count = len(found.tasks)
        yield (
            f"{found.failed} The connector will be FAILED; its previous {count} "
            f"task{'s' * (count > 1)} will run."
        )


def refusal(found: TasksMaxResult | None) -> TooManyTasks | None:
    """Return the error of a start if no task may run; None if tasks may run, or if that is not
    known yet.
    """
    return TooManyTasks(found.failed) if found and found.failed and not found.tasks else None


def fail_tasks(statuses: StatusWriter, found: TasksMaxResult, count: int) -> None:
    """Write the status FAILED of the ``count`` existing tasks if they are too many themselves."""
    for number in range(count) if found.tasks_failed else ():
        statuses.task(number, words.FAILED, found.tasks_failed)


def store_failure(
    kafka: Kafka, topic: str, name: str, prefix: str, found: TasksMaxResult, count: int
) -> None:
    """Store the same statuses as a worker for a connector that may not run and has ``count``
    existing tasks.
    """
    statuses = StatusWriter(kafka, topic, name, socket.gethostname(), prefix)
    fail_tasks(statuses, found, count)
    statuses.connector(words.FAILED, found.failed)
    statuses.flush()
