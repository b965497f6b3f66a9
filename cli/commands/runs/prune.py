"""``connectctl runs prune``: remove old runs from the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from connectctl.cli import apply
from connectctl.cli.output import terminal
from connectctl.ops.core import journal_prune
from connectctl.ops.core.errors import BadInput, Refused

if TYPE_CHECKING:
    from connectctl.cli.options import ApplyOptions
    from connectctl.cli.session import Session
    from connectctl.ops.core.journal_prune import PrunePlan


def prune_journal(
    session: Session, older_than: str | None, keep: int | None, options: ApplyOptions
) -> None:
    """Remove the runs that ended, are older and are not among the newest. Raises ``BadInput`` if
    neither is given.
    """
    if older_than is None and keep is None:
        hint = "Give --older-than AGE, --keep N, or both."
        raise BadInput("It is not said which runs to remove", next_step=hint, code="usage")
    journal = session.journal()
    age = None if older_than is None else journal_prune.age(older_than)
    plan = journal_prune.plan_prune(journal, older_than=age, keep=keep)
    size = plan.size
    if not options.dry_run and (plan.runs or plan.files):
        _confirm(plan, size, options)
        journal_prune.prune(journal, plan)
    terminal.emit(
        "Pruned",
        _as_json(plan, size, options),
        options.output,
        lambda wide: _print(plan, size, options),
    )


def _confirm(plan: PrunePlan, size: int, options: ApplyOptions) -> None:
    if options.yes:
        return
    if not apply.somebody_is_there():
        hint = "Give --yes to remove them, or --dry-run to print them."
        what = "Confirmation required, but standard input is not a terminal; nothing was done"
        raise BadInput(what, next_step=hint, code="not-confirmed")
    if not apply.agrees(f"Remove {_count(plan, size)} from the journal?"):
        raise Refused("Not confirmed; nothing was done", code="not-confirmed")


def _count(plan: PrunePlan, size: int) -> str:
    runs = f"{len(plan.runs)} run{'' if len(plan.runs) == 1 else 's'}"
    return f"{runs} with {size:,} bytes of files"


def _print(plan: PrunePlan, size: int, options: ApplyOptions) -> None:
    rows = [
        [run.id, run.operation, ", ".join(run.subjects), run.state.value, run.ended_at or ""]
        for run in plan.runs
    ]
    terminal.table(
        ["RUN", "OPERATION", "SUBJECTS", "STATE", "ENDED"], rows, empty="No run to remove."
    )
    if plan.runs or plan.files:
        terminal.print_line(
            f"{'Would remove' if options.dry_run else 'Removed'} {_count(plan, size)}."
        )


def _as_json(plan: PrunePlan, size: int, options: ApplyOptions) -> dict[str, Any]:
    return {"runs": [run.id for run in plan.runs], "bytes": size, "dryRun": options.dry_run}
