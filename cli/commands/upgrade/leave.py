"""``upgrade abort --leave``: end a run without a rollback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from connectctl.cli import apply
from connectctl.cli.output import terminal
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.journal import Run, RunState
from connectctl.ops.core.plan import Noop, Plan
from connectctl.ops.operations.upgrade import runs

if TYPE_CHECKING:
    from connectctl.cli.options import ApplyOptions
    from connectctl.cli.session import Session


def leave_run(session: Session, run: Run, options: ApplyOptions) -> None:
    """End a run that did not end, and the rollback or the run that it belongs to. No worker is
    changed.
    """
    journal = session.journal()
    if run.state in (RunState.DONE, RunState.UNDONE, RunState.REFUSED):
        raise Refused(f"The run {run.id} is {run.state}; there is nothing to abort")
    last = runs.rollback_run(journal, run) or run
    ended = [last.id, *filter(None, [journal.plan(last.id).get("undoes")])]
    named = f"the run {ended[0]}" if len(ended) == 1 else f"the runs {' and '.join(ended)}"
    if options.dry_run:
        noops = tuple(
            Noop(id_, "it is ended without a rollback; no worker is changed") for id_ in ended
        )
        apply.show(Plan("upgrade abort", run.cluster_id, (), noops, run.group_id), options.output)
        return
    apply.confirm(session, Plan(f"end {named} as it is now", run.cluster_id, ()), yes=options.yes)
    for id_ in ended:
        journal.end(id_, RunState.UNDONE)
    line = f"Ended {named}. No worker was changed."
    data: dict[str, Any] = {
        "operation": run.operation,
        "clusterId": run.cluster_id,
        "groupId": run.group_id,
        "run": None,
        "paused": False,
        "results": [],
        "nextStep": None,
    }
    terminal.emit("UpgradeResult", data, options.output, lambda wide: terminal.print_line(line))
