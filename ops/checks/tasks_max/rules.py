"""Whether connectors keep to tasks.max, now and on a release that enforces it (KIP-1004): TASK001 to TASK009."""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.checks.tasks_max.observe import TASKS_MAX, Release, TaskSet, TasksSeen, enforces
from connectctl.ops.connect.connector import State
from connectctl.ops.core.finding import Severity, counted
from connectctl.ops.core.rule import Case, rule


@rule("TASK001", Severity.ERROR, each="sets")
def refused(seen: TasksSeen, tasks: TaskSet, for_version: Release | None) -> Iterator[Case]:
    """TASK001: the worker has made the connector FAILED."""
    refusal = tasks.refusal
    if refusal is None:
        return
    many = f"{refusal.generated} tasks with a tasks.max of {refusal.limit}" if refusal.generated else "too many tasks"
    rest = f"It still has its previous {counted(tasks.size, 'task')}."
    kept = rest if tasks.size else "It has no tasks."
    yield Case(tasks.name, f"It is FAILED: it generated {many}. {kept}", _allow(refusal.generated, tasks))


@rule("TASK002", Severity.ERROR, each="sets")
def set_failed(seen: TasksSeen, tasks: TaskSet, for_version: Release | None) -> Iterator[Case]:
    """TASK002: tasks have failed because their set is too large."""
    if not tasks.refused_tasks:
        return
    restart = f"connectctl connectors restart {tasks.name} --only-failed"
    message = f"{len(tasks.refused_tasks)} of its {counted(tasks.size, 'task')} are FAILED: "
    if tasks.too_large:
        message += f"the set is larger than tasks.max, which is {tasks.limit}."
        restart = f"{_allow(tasks.size, tasks)} Then: {restart}"
    else:
        message += "the set was larger than tasks.max when they started. It no longer is."
    yield Case(tasks.name, message, restart)


@rule("TASK003", Severity.ERROR, each="sets")
def doomed(seen: TasksSeen, tasks: TaskSet, for_version: Release | None) -> Iterator[Case]:
    """TASK003: a set that is too large, none of whose tasks has had to start again yet."""
    if not tasks.too_large or tasks.enforce is False or not seen.enforcing or tasks.refused_tasks:
        return
    where = "" if len(seen.enforcing) == len(seen.workers) else f" on {', '.join(seen.enforcing)}"
    has = f"It has {counted(tasks.size, 'task')}, and tasks.max is {tasks.limit}"
    message = f"{has}: each task that starts again{where} FAILS."
    yield Case(tasks.name, message, _allow(tasks.size, tasks))


@rule("TASK004", Severity.WARNING, each="sets")
def fails_after_upgrade(seen: TasksSeen, tasks: TaskSet, for_version: Release | None) -> Iterator[Case]:
    """TASK004: no worker enforces tasks.max yet, or none reports its version; the next release does."""
    if not tasks.too_large or tasks.enforce is False or seen.enforcing:
        return
    if for_version is not None and not enforces(for_version):
        return
    text = ", ".join(sorted({str(w.version) for w in seen.workers if w.version}))
    which = (
        f"Workers of {text} allow it"
        if text
        else "Whether the workers enforce tasks.max is unknown, because they report no version"
    )
    message = (
        f"It has {counted(tasks.size, 'task')}, and tasks.max is {tasks.limit}. {which}; "
        f"on {for_version or TASKS_MAX} every task of the set FAILS."
    )
    severity = Severity.ERROR if for_version else None
    yield Case(tasks.name, message, _allow(tasks.size, tasks), severity=severity)


@rule("TASK005", Severity.WARNING, each="sets")
def needs_allowance(seen: TasksSeen, tasks: TaskSet, for_version: Release | None) -> Iterator[Case]:
    """TASK005: without tasks.max.enforce=false it would fail."""
    if tasks.enforce is not False or not (tasks.too_large or tasks.too_large_on_resume):
        return
    size = tasks.size or tasks.last
    message = f"It has {size} tasks with a tasks.max of {tasks.limit}, which only tasks.max.enforce=false allows."
    if not tasks.size:
        message = (
            f"When it last ran it had {size} tasks, and tasks.max is {tasks.limit}; tasks.max.enforce=false allows it."
        )
    severity = None if seen.enforcing or not seen.releases else Severity.INFO
    hint = f"Set tasks.max to {size}, remove tasks.max.enforce, and report it to the plugin's maintainers."
    yield Case(tasks.name, message, hint, severity=severity)


@rule("TASK006", Severity.INFO, each="sets")
def unused_allowance(seen: TasksSeen, tasks: TaskSet, for_version: Release | None) -> Iterator[Case]:
    """TASK006: tasks.max.enforce=false, and nothing that needs it."""
    if tasks.enforce is not False or tasks.limit is None or tasks.too_large or tasks.too_large_on_resume:
        return
    size = tasks.size or (tasks.last if tasks.stopped else None)
    if size:
        had = "It has" if tasks.size else "When it last ran it had"
        message = f"{had} {counted(size, 'task')} with a tasks.max of {tasks.limit}."
        yield Case(tasks.name, message, "Remove tasks.max.enforce from its configuration.")


@rule("TASK007", Severity.INFO, each="sets")
def fewer(seen: TasksSeen, tasks: TaskSet, for_version: Release | None) -> Iterator[Case]:
    """TASK007: it has fewer tasks than it may have."""
    if tasks.limit is None or tasks.stopped or tasks.size >= tasks.limit or tasks.refusal:
        return
    if tasks.size:
        yield Case(tasks.name, f"It has {counted(tasks.size, 'task')} with a tasks.max of {tasks.limit}.")
    elif tasks.health.verdict.state is State.RUNNING:
        hint = f"connectctl connectors show {tasks.name}"
        yield Case(tasks.name, "It has generated no task: it runs, and copies nothing.", hint)


@rule("TASK008", Severity.ERROR, each="sets")
def invalid(seen: TasksSeen, tasks: TaskSet, for_version: Release | None) -> Iterator[Case]:
    """TASK008: a value that is not a number, or neither true nor false."""
    if tasks.limit is None and "tasks.max" not in tasks.references:
        message = f"tasks.max is {tasks.config.get('tasks.max')!r}, which is not an integer of at least 1."
        yield Case(tasks.name, message, "Set tasks.max to a number.")
    if tasks.enforce is None and "tasks.max.enforce" not in tasks.references:
        message = f"tasks.max.enforce is {tasks.config.get('tasks.max.enforce')!r}, which is neither true nor false."
        later = not seen.enforcing and bool(seen.releases)
        if later:
            message += f" Its workers ignore the property; workers of {for_version or TASKS_MAX} fail on it."
        severity = Severity.WARNING if later and not enforces(for_version) else None
        yield Case(tasks.name, message, "Remove tasks.max.enforce from its configuration.", severity=severity)


@rule("TASK009", Severity.WARNING, each="sets")
def too_many_on_resume(seen: TasksSeen, tasks: TaskSet, for_version: Release | None) -> Iterator[Case]:
    """TASK009: the task configs that it generated last would be too many now."""
    if not tasks.too_large_on_resume or tasks.enforce is False:
        return
    message = f"It is STOPPED. When it last ran it had {tasks.last} tasks, and tasks.max is {tasks.limit}."
    if tasks.last_limit is not None and (tasks.last or 0) > tasks.last_limit:
        message += f" They were generated for a tasks.max of {tasks.last_limit}: its plugin ignores it."
    if seen.releases and not seen.enforcing:
        message += f" From {TASKS_MAX} on that is enforced."
    yield Case(tasks.name, message, f"Set tasks.max to {tasks.last} before you resume it.")


def _allow(size: int | None, tasks: TaskSet) -> str:
    number = max(size or 0, tasks.size)
    first = f"Set tasks.max to {number} or more" if number else "Raise tasks.max"
    return f"{first}; tasks.max.enforce=false helps until it is removed."
