"""``connectctl runs resume``: continue a run that did not end."""

from __future__ import annotations

from typing import Any

from connectctl.cli import flow
from connectctl.cli.commands.runs.operation_of import operation_of
from connectctl.cli.options import ApplyOptions
from connectctl.cli.session import Session
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.journal import RunState
from connectctl.ops.operations.operation import Operation
from connectctl.ops.registry import KINDS


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
