"""The forecast for a connector's tasks, on the present workers and on another release (KIP-1004):
one word each.

Workers before 3.8 let a connector have as many tasks as it generates. Since 3.8 a connector that
generates more than tasks.max becomes FAILED and none of its tasks are published. A task of an
existing set that is too large FAILS when it starts.
"""

from __future__ import annotations

from enum import StrEnum

from connectctl.ops.connect.connector import State
from connectctl.ops.operations.tasks_max.observe import (
    TASKS_MAX,
    Release,
    TaskSet,
    TasksSeen,
    enforces,
)


class TasksMaxForecast(StrEnum):
    """The effect of tasks.max on a connector."""

    OK = "ok"
    FAILED = "FAILED"
    NEXT_START = "fails at next start"
    FAILS = "fails"
    MAY_FAIL = "may fail on resume"
    ON_RESUME = "seen on resume"
    ALLOWED = "allowed"
    UNENFORCED = "not enforced"
    INVALID = "invalid"
    UNKNOWN = "unknown"


def on_present_workers(tasks: TaskSet, facts: TasksSeen) -> TasksMaxForecast:
    """Return the forecast on the present workers. FAILED is returned only for failures because of
    tasks.max.
    """
    if tasks.refusal or tasks.refused_tasks:
        return TasksMaxForecast.FAILED
    if (unknown := _undecided(tasks, bool(facts.enforcing or not facts.releases))) is not None:
        return unknown
    if not (tasks.too_large or tasks.too_large_on_resume):
        return TasksMaxForecast.OK
    if not facts.releases:
        return TasksMaxForecast.UNKNOWN
    if not facts.enforcing:
        return TasksMaxForecast.UNENFORCED
    if tasks.enforce is False:
        return TasksMaxForecast.ALLOWED
    return TasksMaxForecast.NEXT_START if tasks.size else TasksMaxForecast.MAY_FAIL


def on_release(tasks: TaskSet, release: Release | None) -> TasksMaxForecast:
    """Return the forecast on workers of ``release``; None is a release that no longer has
    tasks.max.enforce.
    """
    if (unknown := _undecided(tasks, release is None or enforces(release))) is not None:
        return unknown
    assert tasks.limit is not None
    refused = (
        tasks.refusal is not None and (tasks.refusal.generated or tasks.limit + 1) > tasks.limit
    )
    if not (tasks.too_large or refused or tasks.too_large_on_resume):
        return TasksMaxForecast.OK
    if release is not None and not enforces(release):
        return TasksMaxForecast.UNENFORCED
    if release is not None and tasks.enforce is False:
        return TasksMaxForecast.ALLOWED
    return TasksMaxForecast.MAY_FAIL if tasks.too_large_on_resume else TasksMaxForecast.FAILS


def _undecided(tasks: TaskSet, enforced: bool) -> TasksMaxForecast | None:
    """Return the forecast if the numbers cannot be compared; ``enforced``: a worker reads
    tasks.max.enforce.
    """
    if tasks.references and (tasks.limit is None or tasks.enforce is None):
        return TasksMaxForecast.UNKNOWN
    if tasks.limit is None or (tasks.enforce is None and enforced):
        return TasksMaxForecast.INVALID
    if tasks.size == 0 and tasks.refusal is None:
        if tasks.stopped or tasks.health.verdict.state is State.PAUSED:
            return None if tasks.too_large_on_resume else TasksMaxForecast.ON_RESUME
        return None if tasks.health.verdict.state is State.RUNNING else TasksMaxForecast.UNKNOWN
    return None


def horizon(facts: TasksSeen) -> Release | None:
    """Return the next release that changes a forecast: 3.8 unless all workers are known to be
    newer, else None.

    None is the release without tasks.max.enforce.
    """
    return TASKS_MAX if not facts.releases or min(facts.releases) < TASKS_MAX else None
