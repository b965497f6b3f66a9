"""TASK001 to TASK009: connectors and tasks.max, now and on a release that enforces it
(KIP-1004).
"""

from __future__ import annotations

from collections.abc import Iterator

from connectctl.ops.connect.connector import State
from connectctl.ops.core.finding import Severity, counted
from connectctl.ops.core.rule import Case, rule
from connectctl.ops.operations.tasks_max.observe import (
    TASKS_MAX,
    Release,
    TaskSet,
    TasksSeen,
    enforces,
)


@rule("TASK001", Severity.ERROR, each="sets")
def refused(facts: TasksSeen, tasks: TaskSet, for_version: Release | None) -> Iterator[Case]:
    """Yield TASK001 if the worker has made the connector FAILED."""
    refusal = tasks.refusal
    if refusal is None:
        return
    generated = (
        f"{refusal.generated} tasks with a tasks.max of {refusal.limit}"
        if refusal.generated
        else "too many tasks"
    )
    previous = f"It still has its previous {counted(tasks.size, 'task')}."
    remaining = previous if tasks.size else "It has no tasks."
    yield Case(
        tasks.name,
        f"It is FAILED: it generated {generated}. {remaining}",
        _allow_step(refusal.generated, tasks),
    )


@rule("TASK002", Severity.ERROR, each="sets")
def set_failed(facts: TasksSeen, tasks: TaskSet, for_version: Release | None) -> Iterator[Case]:
    """Yield TASK002 if tasks have failed because their set is too large."""
    if not tasks.refused_tasks:
        return
    restart = f"connectctl connectors restart {tasks.name} --only-failed"
    message = f"{len(tasks.refused_tasks)} of its {counted(tasks.size, 'task')} are FAILED: "
    if tasks.too_large:
        message += f"the set is larger than tasks.max, which is {tasks.limit}."
        restart = f"{_allow_step(tasks.size, tasks)} Then: {restart}"
    else:
        message += "the set was larger than tasks.max when they started. It no longer is."
    yield Case(tasks.name, message, restart)


@rule("TASK003", Severity.ERROR, each="sets")
def doomed(facts: TasksSeen, tasks: TaskSet, for_version: Release | None) -> Iterator[Case]:
    """Yield TASK003 for a set that is too large and none of whose tasks has had to start again
    yet.
    """
    if not tasks.too_large or tasks.enforce is False or not facts.enforcing or tasks.refused_tasks:
        return
    on_workers = (
        "" if len(facts.enforcing) == len(facts.workers) else f" on {', '.join(facts.enforcing)}"
    )
    counts = f"It has {counted(tasks.size, 'task')}, and tasks.max is {tasks.limit}"
    message = f"{counts}: each task that starts again{on_workers} FAILS."
    yield Case(tasks.name, message, _allow_step(tasks.size, tasks))


@rule("TASK004", Severity.WARNING, each="sets")
def fails_after_upgrade(
    facts: TasksSeen, tasks: TaskSet, for_version: Release | None
) -> Iterator[Case]:
    """Yield TASK004 for a set that the next release refuses, because no worker is known to enforce
    tasks.max yet.
    """
    if not tasks.too_large or tasks.enforce is False or facts.enforcing:
        return
    if for_version is not None and not enforces(for_version):
        return
    text = ", ".join(sorted({str(w.version) for w in facts.workers if w.version}))
    which = (
        f"Workers of {text} allow it"
        if text
        else "It is unknown whether the workers enforce tasks.max, because they report no version"
    )
    message = (
        f"It has {counted(tasks.size, 'task')}, and tasks.max is {tasks.limit}. {which}; "
        f"on {for_version or TASKS_MAX} every task of the set FAILS."
    )
    severity = Severity.ERROR if for_version else None
    yield Case(tasks.name, message, _allow_step(tasks.size, tasks), severity=severity)


@rule("TASK005", Severity.WARNING, each="sets")
def needs_allowance(
    facts: TasksSeen, tasks: TaskSet, for_version: Release | None
) -> Iterator[Case]:
    """Yield TASK005 if the connector would fail without tasks.max.enforce=false."""
    if tasks.enforce is not False or not (tasks.too_large or tasks.too_large_on_resume):
        return
    size = tasks.size or tasks.last
    message = (
        f"It has {size} tasks with a tasks.max of {tasks.limit}, which only "
        "tasks.max.enforce=false allows."
    )
    if not tasks.size:
        message = (
            f"When it last ran it had {size} tasks, and tasks.max is {tasks.limit}; "
            "tasks.max.enforce=false allows it."
        )
    severity = None if facts.enforcing or not facts.releases else Severity.INFO
    hint = (
        f"Set tasks.max to {size}, remove tasks.max.enforce, and report it to the plugin's "
        "maintainers."
    )
    yield Case(tasks.name, message, hint, severity=severity)


@rule("TASK006", Severity.INFO, each="sets")
def unused_allowance(
    facts: TasksSeen, tasks: TaskSet, for_version: Release | None
) -> Iterator[Case]:
    """Yield TASK006 for tasks.max.enforce=false that the connector does not need."""
    if (
        tasks.enforce is not False
        or tasks.limit is None
        or tasks.too_large
        or tasks.too_large_on_resume
    ):
        return
    size = tasks.size or (tasks.last if tasks.stopped else None)
    if size:
        had = "It has" if tasks.size else "When it last ran it had"
        message = f"{had} {counted(size, 'task')} with a tasks.max of {tasks.limit}."
        yield Case(tasks.name, message, "Remove tasks.max.enforce from its configuration.")


@rule("TASK007", Severity.INFO, each="sets")
def fewer(facts: TasksSeen, tasks: TaskSet, for_version: Release | None) -> Iterator[Case]:
    """Yield TASK007 if it has fewer tasks than tasks.max."""
    if tasks.limit is None or tasks.stopped or tasks.size >= tasks.limit or tasks.refusal:
        return
    if tasks.size:
        yield Case(
            tasks.name, f"It has {counted(tasks.size, 'task')} with a tasks.max of {tasks.limit}."
        )
    elif tasks.health.verdict.state is State.RUNNING:
        hint = f"connectctl connectors show {tasks.name}"
        yield Case(tasks.name, "It has generated no task: it runs, and copies nothing.", hint)


@rule("TASK008", Severity.ERROR, each="sets")
def invalid(facts: TasksSeen, tasks: TaskSet, for_version: Release | None) -> Iterator[Case]:
    """Yield TASK008 for a value that is not a number, or neither true nor false."""
    if tasks.limit is None and "tasks.max" not in tasks.references:
        message = (
            f"tasks.max is {tasks.config.get('tasks.max')!r}, which is not an integer of at "
            "least 1."
        )
        yield Case(tasks.name, message, "Set tasks.max to a number.")
    if tasks.enforce is None and "tasks.max.enforce" not in tasks.references:
        message = (
            f"tasks.max.enforce is {tasks.config.get('tasks.max.enforce')!r}, which is "
            "neither true nor false."
        )
        later = not facts.enforcing and bool(facts.releases)
        if later:
            message += (
                f" Its workers ignore the property; workers of {for_version or TASKS_MAX} "
                "fail on it."
            )
        severity = Severity.WARNING if later and not enforces(for_version) else None
        yield Case(
            tasks.name,
            message,
            "Remove tasks.max.enforce from its configuration.",
            severity=severity,
        )


@rule("TASK009", Severity.WARNING, each="sets")
def too_many_on_resume(
    facts: TasksSeen, tasks: TaskSet, for_version: Release | None
) -> Iterator[Case]:
    """Yield TASK009 if the task configs that it generated last would be too many now."""
    if not tasks.too_large_on_resume or tasks.enforce is False:
        return
    message = (
        f"It is STOPPED. When it last ran it had {tasks.last} tasks, and tasks.max is "
        f"{tasks.limit}."
    )
    if tasks.last_limit is not None and (tasks.last or 0) > tasks.last_limit:
        message += (
            f" They were generated for a tasks.max of {tasks.last_limit}: its plugin ignores it."
        )
    if facts.releases and not facts.enforcing:
        message += f" From {TASKS_MAX} on that is enforced."
    yield Case(tasks.name, message, f"Set tasks.max to {tasks.last} before you resume it.")


def _allow_step(size: int | None, tasks: TaskSet) -> str:
    number = max(size or 0, tasks.size)
    first = f"Set tasks.max to {number} or more" if number else "Raise tasks.max"
    return f"{first}; tasks.max.enforce=false helps until it is removed."
