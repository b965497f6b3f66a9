"""``connectctl runs apply`` executes the plan that a dry run printed, or refuses it.

The cluster is observed and planned again only for a comparison: the saved plan is executed.
"""

from __future__ import annotations

from pathlib import Path

from connectctl.cli import flow
from connectctl.cli.commands.upgrade.options import GateOptions
from connectctl.cli.options import ApplyOptions
from connectctl.cli.plan_file import read_plan
from connectctl.cli.session import Session
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.upgrade.run_state import OPERATION as UPGRADE
from connectctl.ops.registry import KINDS, OPERATIONS
from connectctl.ops.task_runtime.job.saved_run import SavedRun
from connectctl.ops.task_runtime.job.steps import OPERATION as RUN


def apply_file(session: Session, path: Path, options: ApplyOptions) -> None:
    """Execute the plan in ``path``. Raises ``Refused`` if stale or of another cluster, ``BadInput`` if it is not a plan."""
    data = read_plan(path)
    operation = str(data.get("operation"))
    if operation == UPGRADE:
        from connectctl.cli.commands.upgrade.apply import apply_saved

        apply_saved(session, data, path, GateOptions(**vars(options)))
        return
    if operation not in (*OPERATIONS, RUN):
        raise BadInput(
            f"{path} is not a plan that runs apply accepts: it is a plan of {operation}",
            next_step="To continue an unfinished run: connectctl runs resume RUN.",
        )
    if "digest" not in data:
        raise BadInput(f"{path} is not a plan", why="it has no digest")
    saved = Plan.from_json(data, KINDS)
    if operation in OPERATIONS:
        flow.apply_plan(session, OPERATIONS[operation], saved, options)
    else:
        from connectctl.cli.commands.run.execution import run_job

        run = SavedRun.of(saved)
        run_job(session, run.request, options, run)
