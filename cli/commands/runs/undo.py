"""``connectctl runs undo``: restore what a run changed."""

from __future__ import annotations

from typing import Any

from connectctl.cli import flow
from connectctl.cli.commands.runs.operation_of import operation_of
from connectctl.cli.commands.runs.undo_options import UndoOptions
from connectctl.cli.output import terminal
from connectctl.cli.session import Session
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.journal import RunState
from connectctl.ops.operations.operation import Operation, Undone
from connectctl.ops.registry import KINDS


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
