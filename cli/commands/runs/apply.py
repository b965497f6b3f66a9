"""``connectctl runs apply`` executes the plan that a dry run printed, or refuses it.

The cluster is observed and planned again only for a comparison: the saved plan is executed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from connectctl.cli import flow
from connectctl.cli.options import ApplyOptions
from connectctl.cli.plan_file import PRINTED, read_plan
from connectctl.cli.session import Session
from connectctl.migrations.operations import OPERATIONS
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.operation import Operation
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
