"""``tasks.max`` (KIP-1004) judged before a run is begun, and before there is a Spark: how many tasks will it have?"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import ConnectctlError, Refused
from connectctl.ops.task_runtime.job import status_topic as words
from connectctl.ops.task_runtime.job.status_topic import StatusWriter
from connectctl.ops.task_runtime.spi.tasks_max import TasksMaxResult, evaluate

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.job.internal_topics import RunClients
    from connectctl.ops.task_runtime.job.prepare import PreparedJob
    from connectctl.ops.task_runtime.spi.connector import Outlook


class TooManyTasks(ConnectctlError):
    """A connector has generated too many tasks, and none of them runs (KIP-1004)."""

    code = "too-many-tasks"


def evaluated(ready: PreparedJob, outlook: Outlook) -> PreparedJob:
    """``ready`` with its ``tasks_max`` and with notes of it. The connector is started and stopped for it, unless its
    ``outlook`` has the number of its tasks, or steps, which a start would take.

    Raises ``Refused`` where the connector fails.
    """
    if outlook.tasks is None and outlook.steps:
        note = f"tasks.max is checked when {ready.name} is started: how many tasks it has is not known before."
        return replace(ready, notes=(*ready.notes, note))
    generated = _generated(ready) if outlook.tasks is None else [{}] * outlook.tasks
    verdict = evaluate(ready.name, ready.config, generated, ready.before.tasks)
    return replace(ready, tasks_max=verdict, notes=(*ready.notes, *_notes(verdict)))


def _generated(ready: PreparedJob) -> Sequence[dict[str, str]]:
    try:
        return ready.task_configs()
    except ConnectctlError:
        raise
    except Exception as e:
        text = " ".join(str(e).split())
        raise Refused(
            f"The connector {ready.name} failed when it was asked for its tasks",
            why=f"{type(e).__name__}: {text}" if text else type(e).__name__,
            next_step=f"Correct its configuration, or {ready.path}.",
            code="connector-failed",
        ) from e


def _notes(verdict: TasksMaxResult) -> Iterator[str]:
    if verdict.warning:
        yield verdict.warning
    if verdict.failed and verdict.tasks:
        count = len(verdict.tasks)
        yield f"{verdict.failed} The connector will be FAILED; the {count} task{'s' * (count > 1)} of before will run."


def refusal(verdict: TasksMaxResult | None) -> TooManyTasks | None:
    """What a start ends with where no task may run; None where some may, or nobody knows yet."""
    return TooManyTasks(verdict.failed) if verdict and verdict.failed and not verdict.tasks else None


def fail_tasks(statuses: StatusWriter, verdict: TasksMaxResult, count: int) -> None:
    """The status of the ``count`` tasks that a connector has, where they are too many themselves."""
    for number in range(count) if verdict.tasks_failed else ():
        statuses.task(number, words.FAILED, verdict.tasks_failed)


def store_failure(ready: PreparedJob, scene: RunClients, create: Callable[[], Any]) -> None:
    """Store the statuses that a worker would, of a connector that may not run; ``create`` creates the topics it lacks."""
    assert ready.tasks_max is not None
    create()
    prefix = words.RUN_PREFIX if ready.take_over else ""
    statuses = StatusWriter(scene.kafka, ready.topics["status"], ready.name, socket.gethostname(), prefix)
    fail_tasks(statuses, ready.tasks_max, len(ready.before.tasks))
    statuses.connector(words.FAILED, ready.tasks_max.failed)
    statuses.flush()
