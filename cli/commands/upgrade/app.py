"""``connectctl upgrade``: roll exactly-once source support out over a cluster's workers, and
back.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from connectctl.cli import completed_names
from connectctl.cli.commands.upgrade.options import GateOptions, RollOptions
from connectctl.cli.options import (
    ApplyOptions,
    HealthOption,
    ListOption,
    OutputOption,
    PendingOption,
    UndoOptions,
    with_options,
)
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output

if TYPE_CHECKING:
    from connectctl.cli.session import Session
    from connectctl.migrations.history import Listed
    from connectctl.ops.core.journal import Run

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)


class TargetMode(StrEnum):
    """The values of ``--to``."""

    ENABLED = "enabled"
    PREPARING = "preparing"
    DISABLED = "disabled"


def _names() -> list[str]:
    from connectctl.migrations.registry import migrations

    return [migration.name for migration in migrations()]


ToOption = Annotated[
    TargetMode | None,
    typer.Option(help="enabled, preparing or disabled.  [default: enabled]", metavar="MODE"),
]
MigrationOption = Annotated[
    str | None,
    typer.Option(
        help="Run this migration instead (see upgrade list).", metavar="NAME", autocompletion=_names
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Migration parameter (see upgrade list -o wide); may be repeated.",
        metavar="NAME=VALUE",
    ),
]
WithoutOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Exclude this worker of an earlier run, which is down; may be repeated.",
        metavar="WORKER",
    ),
]
LastRunArgument = Annotated[
    str | None,
    typer.Argument(metavar="[RUN]", show_default=False, autocompletion=completed_names.runs),
]


@app.callback()
def upgrade() -> None:
    """Roll exactly-once source support out over the workers, and back (KIP-618)."""


@app.command("list")
def list_(ctx: typer.Context, output: ListOption = Output.TABLE) -> None:
    """List the migrations: their purpose, the status of this cluster for each, and which have been
    applied to it.

    \b
    Examples:
      connectctl upgrade list
      connectctl upgrade list -o wide     with the reason, the parameters of --set, and the runs that applied it

    Applied: according to the journal on this machine.
    """
    from connectctl.migrations.access import observe_cluster
    from connectctl.migrations.history import listed

    scene = observe_cluster(ctx.obj)
    found = listed(scene.journal, scene.snapshot)

    def table(wide: bool) -> None:
        columns = [
            "MIGRATION",
            "STATUS",
            "APPLIED",
            "PURPOSE",
            *(["PARAMETERS", "REASON", "RUN"] if wide else []),
        ]
        rows = [
            [
                m.id,
                m.status,
                m.applied_at or "-",
                m.title,
                *([_parameters(m), m.why, m.run or "-"] if wide else []),
            ]
            for m in found
        ]
        terminal.table(columns, rows, spare=() if wide else ("APPLIED",))

    data = {"clusterId": scene.snapshot.cluster_id, "groupId": scene.snapshot.group_id}
    terminal.emit(
        "MigrationList", data | {"migrations": [m.as_json() for m in found]}, output, table
    )
    for unseen in scene.snapshot.unseen:
        terminal.note(f"warning: could not read {unseen}", style="yellow")
    terminal.findings(scene.snapshot.findings)


def _parameters(migration: Listed) -> str:
    return "; ".join(f"{name}: {meaning}" for name, meaning in migration.parameters.items()) or "-"


@app.command()
def plan(
    ctx: typer.Context,
    to: ToOption = None,
    migration: MigrationOption = None,
    set_: SetOption = None,
    without: WithoutOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the plan here, for upgrade apply.", metavar="FILE")
    ] = None,
    exit_code: PendingOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Plan a roll: from the current modes of the workers to the target mode, step by step.

    \b
    Examples:
      connectctl upgrade plan                            to enabled, through preparing
      connectctl upgrade plan --to disabled --out p.json   a plan to be approved, and then applied
      connectctl upgrade plan --migration soft-downgrade
      connectctl upgrade plan --migration own-offsets-topic --set connector=orders --set topic=orders-offsets
      connectctl upgrade plan -o wide                    with the reason of every step

    It never skips preparing, restarts broken workers first and the leader last, one at a time. The
    plan lists what is unknown or only assumed. It is refused (exit code 4) if preflight finds
    errors, or if a worker of the last run is no longer in the group and --without does not name it.
    Nothing is changed.
    """
    from connectctl.cli import flow
    from connectctl.cli.commands.upgrade.request import requested, write_plan
    from connectctl.migrations.operation import Upgrade

    request = requested(to, migration, set_, without)
    planned = flow.perform(
        ctx.obj, Upgrade(begins=False), request, ApplyOptions(dry_run=True, output=output)
    )
    if out is not None:
        write_plan(planned, out)
    if exit_code and planned.plan.steps:
        raise typer.Exit(3)


@app.command()
@with_options
def apply(
    ctx: typer.Context,
    plan_file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PLAN]", help="Plan that upgrade plan --out wrote.", show_default=False
        ),
    ] = None,
    to: ToOption = None,
    migration: MigrationOption = None,
    set_: SetOption = None,
    without: WithoutOption = None,
    options: RollOptions = RollOptions(),
) -> None:
    """Execute a roll: one worker after the other, each after a gate.

    \b
    Examples:
      connectctl upgrade apply                     plan, ask, perform
      connectctl upgrade apply plan.json --yes     the approved plan, if the cluster is unchanged
      connectctl upgrade apply --pause-after 5     only the first worker

    A gate opens after several consecutive healthy observations: every worker answers, the group is
    stable, no rebalance delay is pending, nothing is UNASSIGNED, and nothing is worse than before
    the roll. If it does not open in time, the roll stops with exit code 7 and changes nothing more.
    Then: connectctl upgrade status, resume or abort. Workers that must be restarted by hand are
    marked in the plan; without a terminal they require --by-hand-timeout.
    """
    from connectctl.cli import flow
    from connectctl.cli.commands.runs.apply_resume_undo import apply_file
    from connectctl.cli.commands.upgrade.request import requested

    request, operation = requested(to, migration, set_, without, plan_file), options.operation()
    if plan_file is not None:
        apply_file(ctx.obj, plan_file, options, operation)
    else:
        flow.perform(ctx.obj, operation, request, options)


@app.command()
def status(
    ctx: typer.Context, exit_code: HealthOption = False, output: OutputOption = Output.TABLE
) -> None:
    """Show each worker's mode with its confidence, the last run, and the next command.

    \b
    Examples:
      connectctl upgrade status
      connectctl upgrade status -o json | jq -r '.workers[] | .address + " " + .mode + " " + .known'

    Confidence (known in JSON): verified: by the worker's responses; configured: in its properties,
    as the driver reads them; assumed: set by an earlier run. Preparing and disabled cannot be
    distinguished from outside. In transition: temporarily unassigned during a rebalance or restart.
    UNHEALTHY counts workers, connectors and tasks; with --exit-code the command exits with 1 if
    there are any, or if something could not be read.
    """
    from connectctl.cli.views import upgrade_status as upgrade_view
    from connectctl.migrations.access import observe_cluster
    from connectctl.ops.operations.upgrade import run_state
    from connectctl.ops.operations.upgrade.runs import LoadedRun
    from connectctl.ops.registry import KINDS

    scene = observe_cluster(ctx.obj, read_only=True)
    where = scene.cluster_id(), scene.group_id
    known = run_state.runs_here(scene.journal, *where)
    open_ = run_state.unfinished(scene.journal, *where)
    run = next(iter(open_ or known), None)
    last = LoadedRun.load(scene.journal, run, scene.journal.plan_of(run, KINDS)) if run else None
    data = upgrade_view.status_json(scene, last, unfinished=bool(open_))
    terminal.emit(
        "UpgradeStatus", data, output, lambda wide: upgrade_view.show_status(scene, last, data)
    )
    terminal.findings(scene.snapshot.findings)
    if exit_code and (data["unhealthy"] or data["notSeen"]):
        raise typer.Exit(1)


@app.command()
@with_options
def resume(
    ctx: typer.Context, run: LastRunArgument = None, options: RollOptions = RollOptions()
) -> None:
    """Resume a run that was paused, stopped at a gate, or killed; the newest one if none is named.

    \b
    Examples:
      connectctl upgrade resume
      connectctl upgrade resume --max-failures 1 --yes

    Completed steps are not repeated, and a worker that is still starting is not restarted. If what
    the run did was changed meanwhile, the run is not resumed (exit code 4).
    """
    from connectctl.cli.commands.runs.apply_resume_undo import resume_run

    resume_run(ctx.obj, _run(ctx.obj, run).id, options, options.operation())


@app.command()
@with_options
def abort(
    ctx: typer.Context,
    run: LastRunArgument = None,
    leave: Annotated[bool, typer.Option("--leave", help="End the run without a rollback.")] = False,
    options: GateOptions = GateOptions(),
) -> None:
    """Roll a run back: workers that it changed get their former mode, the last one first.

    \b
    Examples:
      connectctl upgrade abort
      connectctl upgrade abort --leave     end the run, and leave the cluster in its current state

    The rollback is a roll with the same gates, through preparing where that is needed. An abort
    that was interrupted is resumed by the same command.
    """
    from connectctl.cli.commands.runs.apply_resume_undo import undo_run
    from connectctl.cli.commands.upgrade.leave import leave_run

    found = _run(ctx.obj, run)
    if leave:
        leave_run(ctx.obj, found, options)
    else:
        undo_run(
            ctx.obj,
            found.id,
            UndoOptions(options.dry_run, options.yes, options.output),
            options.operation(),
        )


def _run(session: Session, name: str | None) -> Run:
    """Return the run ``name`` of this cluster, or its newest that has not ended."""
    from connectctl.ops.operations.upgrade import runs

    return runs.pick(session.journal(), (session.kafka.cluster_id(), session.group_id), name)
