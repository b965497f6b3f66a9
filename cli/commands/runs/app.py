"""``connectctl runs``: list changes and interrupted runs, and resume them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from connectctl.cli.options import (
    ApplyOptions,
    ListOption,
    OutputOption,
    RunArgument,
    UndoOptions,
    command_group,
    with_options,
)
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Journal, Run

app = command_group("List the changes made from this machine; resume, apply and undo them.")


@app.command("list")
def list_(ctx: typer.Context, output: ListOption = Output.TABLE) -> None:
    """List the runs of the journal, the newest first.

    \b
    Examples:
      connectctl runs list
      connectctl runs list -o json | jq -r '.runs[] | select(.state == "open").id'
    """
    found = ctx.obj.journal(read_only=True).runs()

    def table(wide: bool) -> None:
        columns = ["RUN", "OPERATION", "STATE", "STARTED", "GROUP", "SUBJECTS"]
        rows = [
            [r.id, r.operation, r.state, r.started_at, r.group_id, ", ".join(r.subjects)]
            for r in found
        ]
        terminal.table(
            columns,
            rows,
            empty="No run yet.",
            spare=() if wide else ("GROUP", "STARTED"),
            open_end=True,
        )

    terminal.emit("RunList", {"runs": [as_json(run) for run in found]}, output, table)


@app.command()
def show(ctx: typer.Context, run: RunArgument, output: OutputOption = Output.TABLE) -> None:
    """Show one run: its steps, and how far it got.

    \b
    Examples:
      connectctl runs show 20260101-120000-ab12
    """
    journal = ctx.obj.journal(read_only=True)
    found = journal.get(run)
    steps = steps_of(found, journal)

    def table(wide: bool) -> None:
        terminal.print_wrapped(
            f"{found.id}  {found.operation} {', '.join(found.subjects)}  {found.state}"
        )
        for number, step in enumerate(steps):
            marks = [mark for mark in found.marks if mark.step == number]
            last = marks[-1] if marks else None
            detail = f": {last.detail}" if last and last.detail else ""
            terminal.print_wrapped(
                f"  {number + 1}. {(last.what if last else 'not begun'):<10} "
                f"{step.describe()}{detail}"
            )

    data = as_json(found) | {
        "steps": [step.describe() for step in steps],
        "marks": [vars(m) for m in found.marks],
    }
    terminal.emit("Run", data, output, table)


def steps_of(run: Run, journal: Journal) -> tuple[Any, ...]:
    """Return the steps of a run that are decided."""
    from connectctl.migrations.operations import OPERATIONS
    from connectctl.ops.registry import KINDS

    plan, operation = journal.plan_of(run, KINDS), OPERATIONS.get(run.operation)
    return (operation.decided(journal, run, plan) if operation else plan).steps


@app.command("apply")
@with_options
def apply_(
    ctx: typer.Context,
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN",
            help="Plan that a command printed with --dry-run -o json; - for standard input.",
        ),
    ],
    options: ApplyOptions = ApplyOptions(),
) -> None:
    """Execute a plan that was saved earlier, exactly as it is written.

    \b
    Examples:
      connectctl connectors stop orders --wait --dry-run -o json > plan.json
      connectctl runs apply plan.json
      connectctl offsets merge orders --into dedicated --dry-run -o json | connectctl runs apply - --yes

    It accepts plans of connector and offset changes, of loggers set, of fence, of transactions
    abort and commit, of upgrade plan, apply and abort, and of run. The cluster, and the job file of
    a run, are read again: a plan for another cluster, or one that would be different if it were
    made now, is refused (exit code 4). The output is that of the command itself.
    """
    from connectctl.cli.commands.runs.apply_resume_undo import apply_file

    apply_file(ctx.obj, plan, options)


@app.command()
@with_options
def resume(ctx: typer.Context, run: RunArgument, options: ApplyOptions = ApplyOptions()) -> None:
    """Resume a run that was interrupted or failed: completed steps are recognized, the rest is
    executed.

    \b
    Examples:
      connectctl runs resume 20260101-120000-ab12 --dry-run     the steps that are left
      connectctl runs resume 20260101-120000-ab12
    """
    from connectctl.cli.commands.runs.apply_resume_undo import resume_run

    resume_run(ctx.obj, run, options)


@app.command()
@with_options
def undo(ctx: typer.Context, run: RunArgument, options: UndoOptions = UndoOptions()) -> None:
    """Undo a run: restore what it changed.

    \b
    Examples:
      connectctl runs undo 20260101-120000-ab12 --dry-run
      connectctl runs undo 20260101-120000-ab12 --yes --wait

    Connectors that the run created are deleted, those that it changed get their former
    configuration or target state, and those that it deleted are created again, with the offsets
    that it deleted. Changed offsets are restored from the run's backup (--stop: also of connectors
    that run), log levels are set again, an upgrade is rolled back, and the connector of a killed
    connectctl run is handed back to its workers. If one of them was changed since, nothing is
    undone (exit code 4). A fence, a restart and the end of a transaction cannot be undone.
    """
    from connectctl.cli.commands.runs.apply_resume_undo import undo_run

    undo_run(ctx.obj, run, options)


@app.command()
@with_options
def prune(
    ctx: typer.Context,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than", metavar="AGE", help="Remove runs that ended longer ago, as 30d or 12h."
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep", metavar="N", min=0, help="Keep the newest N runs, whatever their age."
        ),
    ] = None,
    options: ApplyOptions = ApplyOptions(),
) -> None:
    """Remove old runs that ended, with their backups and the configurations, secrets included, that
    they kept.

    \b
    Examples:
      connectctl runs prune --older-than 30d --dry-run
      connectctl runs prune --older-than 30d --keep 20 --yes

    A removed run can no longer be undone, and connectors that it applied are no longer known as
    applied from a file (connectors apply --prune). Runs that can be resumed are never removed.
    """
    from connectctl.cli.commands.runs.prune import prune_journal

    prune_journal(ctx.obj, older_than, keep, options)


def as_json(run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "operation": run.operation,
        "subjects": list(run.subjects),
        "state": run.state.value,
        "clusterId": run.cluster_id,
        "groupId": run.group_id,
        "startedAt": run.started_at,
        "endedAt": run.ended_at,
    }
