"""``connectctl runs apply``, ``resume`` and ``undo``: the flow of an operation from a saved plan, or
from a run in the journal.

``apply`` observes and plans again only for a comparison: the saved plan is executed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from connectctl.cli import flow
from connectctl.cli.flow import PRINTED, read_plan
from connectctl.cli.options import ApplyOptions, UndoOptions
from connectctl.cli.output import terminal
from connectctl.cli.session import Session
from connectctl.migrations.operations import OPERATIONS
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.journal import Run, RunState
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.operation import Operation, Undone
from connectctl.ops.registry import KINDS


def apply_file(
    session: Session, path: Path, options: ApplyOptions, only: Operation[Any, Any] | None = None
) -> None:
    """Execute the plan in ``path``; ``only`` is the one operation that the command performs.

    Raises ``Refused`` if stale or of another cluster, ``BadInput`` if it is not a plan.
    """
    data = read_plan(path)
    name = str(data.get("operation"))
    operation = OPERATIONS.get(name)
    if hint := _instead(name, operation):
        what = f"{path} is not a plan that can be applied: it is a plan of {name}"
        raise BadInput(what, next_step=hint)
    if only is not None and name != only.name:
        what = f"it is a plan of {name}" if "operation" in data else "it has no operation"
        hint = "Write one with connectctl upgrade plan --out FILE."
        raise BadInput(f"{path} is not an upgrade plan", why=what, next_step=hint)
    if operation is None:
        raise BadInput(
            f"{path} is not a plan that runs apply accepts: it is a plan of {name}",
            next_step="To continue an unfinished run: connectctl runs resume RUN.",
        )
    if "digest" not in data:
        raise BadInput(f"{path} is not a plan", why="it has no digest")
    flow.apply_plan(session, only or operation, Plan.from_json(data, KINDS), options)


def _instead(name: str, operation: Operation[Any, Any] | None) -> str | None:
    """Return what to do instead of applying a plan; None if it can be applied."""
    if operation is not None:
        return operation.instead_of_applying
    return next((hint for begin, hint in PRINTED.items() if name.startswith(begin)), None)


def operation_of(run: Run, only: Operation[Any, Any] | None) -> Operation[Any, Any]:
    """Return the operation of ``run``; ``only`` is the one of the command, with its options.

    Raises ``BadInput`` for a run of another, and for an unknown operation.
    """
    found = OPERATIONS.get(run.operation)
    if only is not None and type(found) is not type(only):
        raise BadInput(
            f"The run {run.id} is not a run of {only.name}; it is a run of {run.operation}",
            next_step="See connectctl runs list.",
        )
    if found is None:
        raise BadInput(
            f"The run {run.id} is of an operation that this version does not know: {run.operation}",
            next_step="Use the version of connectctl that made it.",
        )
    return only or found


def resume_run(
    session: Session, id: str, options: ApplyOptions, only: Operation[Any, Any] | None = None
) -> None:
    """Print, or execute, the remaining steps of a run; ``only`` is the one operation that the
    command resumes.

    Raises ``Refused`` if it is a different cluster, or has changed since the confirmation.
    """
    journal = session.journal()
    run = journal.get(id)
    operation = operation_of(run, only)
    if run.state in (RunState.DONE, RunState.UNDONE, RunState.REFUSED):
        raise Refused(f"The run {id} is {run.state}; there is nothing to resume")
    flow.resume(session, operation, journal, run, journal.plan_of(run, KINDS), options)


def undo_run(
    session: Session, id: str, options: UndoOptions, only: Operation[Any, Any] | None = None
) -> None:
    """Undo the run ``id``. An interrupted undo of it is resumed.

    Raises ``Refused`` if nothing can be undone, or others made changes since. ``only`` is the one
    operation that the command undoes; ``BadInput`` is raised for a run of another.
    """
    journal = session.journal()
    run = journal.get(id)
    operation = operation_of(run, only)
    if run.state is RunState.UNDONE:
        raise Refused(f"The run {run.id} is undone already; there is nothing to undo")
    if back := operation.begun_undo(journal, run):
        plan = journal.plan_of(back, KINDS)
        terminal.note(f"The run {back.id} is already undoing {plan.undoes}; it is resumed.")
        flow.resume(session, operation, journal, back, plan, options)
        return
    undone = Undone(journal, run, journal.plan_of(run, KINDS), options.wait, options.stop)
    flow.undo(session, operation, undone, options)
