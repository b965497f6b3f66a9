"""The operation of a run that a command resumes or undoes."""

from __future__ import annotations

from typing import Any

from connectctl.migrations.operations import OPERATIONS
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.journal import Run
from connectctl.ops.operations.operation import Operation


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
