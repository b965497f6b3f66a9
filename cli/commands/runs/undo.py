"""``connectctl runs undo``: the way back of a run that changed configurations; other changes have commands of their own."""

from __future__ import annotations

from functools import partial

from connectctl.cli.commands.connectors import apply as connectors_apply
from connectctl.cli.commands.connectors import cluster as connectors_cluster
from connectctl.cli.options import WaitOptions
from connectctl.cli.output import terminal
from connectctl.cli.session import Session
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.journal import Journal, Run, RunState
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.saved_plan import check_same_cluster
from connectctl.ops.operations.connectors.config_undo import plan_undo
from connectctl.ops.operations.connectors.observe import defined_passwords
from connectctl.ops.operations.offsets.steps import Change

CHANGES = tuple(f"connectors {verb}" for verb in ("create", "apply", "patch", "edit", "delete", "rollback", "undo"))


def undo(session: Session, journal: Journal, run: Run, plan: Plan, options: WaitOptions) -> None:
    """Put back what ``run`` changed. Raises ``Refused`` for another kind of run, and where others changed it since."""
    if run.operation not in CHANGES:
        known = {"offsets": f"connectctl offsets undo {run.id}", "upgrade": f"connectctl upgrade abort {run.id}"}
        hint = known.get(run.operation.partition(" ")[0])
        raise Refused(
            f"runs undo applies to configuration changes only, and the run {run.id} is a run of {run.operation}",
            next_step=f"Undo it with: {hint}" if hint else f"See what it did: connectctl runs show {run.id}.",
        )
    if run.state is RunState.UNDONE:
        raise Refused(f"The run {run.id} is undone already")
    cluster = connectors_cluster.observed(session)
    check_same_cluster(run, cluster.cluster_id(), cluster.group_id)
    current = {each.name: each for each in cluster.connectors()}
    planned = plan_undo(journal, run, plan, current, partial(defined_passwords, cluster.calls), wait=options.wait)
    if any(isinstance(step, Change) for step in plan.steps):
        terminal.note(
            f"The offsets that it wrote stay; to undo those: connectctl offsets undo {run.id}", style="yellow"
        )
    connectors_apply.carry_out(session, cluster, planned, options)
