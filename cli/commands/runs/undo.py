"""``connectctl runs undo``: restore what a run changed."""

from __future__ import annotations

from connectctl.cli import flow
from connectctl.cli.commands.runs.undo_options import UndoOptions
from connectctl.cli.session import Session
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.journal import RunState
from connectctl.ops.core.operation import Undone
from connectctl.ops.operations.upgrade.run_state import OPERATION as UPGRADE
from connectctl.ops.registry import KINDS, OPERATIONS


def undo_run(session: Session, id: str, options: UndoOptions, only: str | None = None) -> None:
    """Undo the run ``id``. Raises ``Refused`` if nothing can be undone, or others made changes since.

    ``only`` is the one operation that the command undoes; ``BadInput`` is raised for a run of another.
    """
    journal = session.journal()
    run = journal.get(id)
    if only is not None and run.operation != only:
        raise BadInput(
            f"The run {id} is not a run of {only}; it is a run of {run.operation}",
            next_step="See connectctl runs list.",
        )
    if run.state is RunState.UNDONE:
        raise Refused(f"The run {run.id} is undone already; there is nothing to undo")
    if run.operation == UPGRADE:
        from connectctl.cli.commands.upgrade.apply import abort_run
        from connectctl.cli.commands.upgrade.options import GateOptions

        abort_run(session, id, GateOptions(options.dry_run, options.yes, options.output), leave=False)
    elif operation := OPERATIONS.get(run.operation):
        undone = Undone(journal, run, journal.plan_of(run, KINDS), options.wait, options.stop)
        flow.undo(session, operation, undone, options)
    else:
        raise Refused(
            f"The run {run.id} ({run.operation} {', '.join(run.subjects)}) cannot be undone; nothing was done",
            why="its records are in their topics",
            next_step=f"See what it did: connectctl runs show {run.id}.",
            code="irreversible",
        )
