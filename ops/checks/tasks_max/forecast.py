"""What becomes of a connector's tasks, on the workers as they are and on another release (KIP-1004): one word each.

Workers before 3.8 let a connector have as many tasks as it generates. From 3.8 on one that generates more than tasks.max
is made FAILED and none of its tasks are published, and every task of a set that is too large already FAILS when it starts.
"""

from __future__ import annotations

from enum import StrEnum

from connectctl.ops.checks.tasks_max.observe import TASKS_MAX, Release, TaskSet, TasksSeen, enforces
from connectctl.ops.connect.connector import State


class TasksMaxForecast(StrEnum):
    """What tasks.max does to a connector."""

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


def now(tasks: TaskSet, seen: TasksSeen) -> TasksMaxForecast:
    """What becomes of ``tasks`` on the workers as they are. FAILED is said only of a FAILED that is due to tasks.max."""
    if tasks.refusal or tasks.refused_tasks:
        return TasksMaxForecast.FAILED
    if (unknown := _undecided(tasks, bool(seen.enforcing or not seen.releases))) is not None:
        return unknown
    if not (tasks.too_large or tasks.too_large_on_resume):
        return TasksMaxForecast.OK
    if not seen.releases:
        return TasksMaxForecast.UNKNOWN
    if not seen.enforcing:
        return TasksMaxForecast.UNENFORCED
    if tasks.enforce is False:
        return TasksMaxForecast.ALLOWED
    return TasksMaxForecast.NEXT_START if tasks.size else TasksMaxForecast.MAY_FAIL


def then(tasks: TaskSet, release: Release | None) -> TasksMaxForecast:
    """What becomes of ``tasks`` on workers of ``release``; None: of one that no longer has tasks.max.enforce."""
    if (unknown := _undecided(tasks, release is None or enforces(release))) is not None:
        return unknown
    assert tasks.limit is not None
    refused = tasks.refusal is not None and (tasks.refusal.generated or tasks.limit + 1) > tasks.limit
    if not (tasks.too_large or refused or tasks.too_large_on_resume):
        return TasksMaxForecast.OK
    if release is not None and not enforces(release):
        return TasksMaxForecast.UNENFORCED
    if release is not None and tasks.enforce is False:
        return TasksMaxForecast.ALLOWED
    return TasksMaxForecast.MAY_FAIL if tasks.too_large_on_resume else TasksMaxForecast.FAILS


def _undecided(tasks: TaskSet, enforced: bool) -> TasksMaxForecast | None:
    """Why nothing can be said of the numbers; ``enforced``: whether a worker reads tasks.max.enforce at all."""
    if tasks.references and (tasks.limit is None or tasks.enforce is None):
        return TasksMaxForecast.UNKNOWN
    if tasks.limit is None or (tasks.enforce is None and enforced):
        return TasksMaxForecast.INVALID
    if tasks.size == 0 and tasks.refusal is None:
        if tasks.stopped or tasks.health.verdict.state is State.PAUSED:
            return None if tasks.too_large_on_resume else TasksMaxForecast.ON_RESUME
        return None if tasks.health.verdict.state is State.RUNNING else TasksMaxForecast.UNKNOWN
    return None


def horizon(seen: TasksSeen) -> Release | None:
    """The next release that changes anything: 3.8 while a worker is older, then the one without tasks.max.enforce."""
    return TASKS_MAX if not seen.releases or min(seen.releases) < TASKS_MAX else None
