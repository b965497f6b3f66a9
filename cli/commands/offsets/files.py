"""``connectctl offsets diff|backup|history|undo``: compare, back up, list changes, undo."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from connectctl.cli import completed_names, flow
from connectctl.cli.commands.offsets.change import EngineOption
from connectctl.cli.garbage_collection import without_collection
from connectctl.cli.options import (
    PENDING,
    ConnectorsArgument,
    ListOption,
    OffsetOptions,
    OutputOption,
    PendingOption,
    RunArgument,
    with_options,
)
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.ops.config.masking import addresses_masked
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.finding import counted
from connectctl.ops.operations.offsets.engine_choice import Choice

if TYPE_CHECKING:
    from connectctl.cli.session import Session


def diff(
    ctx: typer.Context,
    connectors: ConnectorsArgument = None,
    with_context: Annotated[
        str | None,
        typer.Option(
            help="Compare effective offsets with another cluster's.",
            metavar="CONTEXT",
            autocompletion=completed_names.contexts,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", help="Compare effective offsets with a dump's.", metavar="DUMP"
        ),
    ] = None,
    exit_code: PendingOption = False,
    engine: EngineOption = Choice.AUTO,
    output: OutputOption = Output.TABLE,
) -> None:
    """Compare the offsets of two places: the global and the dedicated topics, two clusters, a dump
    and a cluster.

    \b
    Examples:
      connectctl offsets diff orders                                  global against dedicated
      connectctl offsets diff --with-context standby --exit-code      this cluster against another
      connectctl offsets diff -f backup.jsonl 'orders-*'              the cluster against a backup
    """
    from connectctl.cli.commands.offsets.diff_sides import sides
    from connectctl.ops.operations.offsets.diff import differences

    if engine is Choice.SPARK and (with_context or file):
        raise BadInput(
            "--engine spark compares the global topic with the dedicated ones",
            next_step="Leave it out.",
        )
    if with_context and file:
        raise BadInput(
            "--with-context and --file exclude each other", next_step="Give one of them."
        )
    wanted = tuple(connectors or ())
    with without_collection(ends=True):
        left, right, names = sides(ctx.obj, wanted, with_context, file)
        found = differences(left, right)
    data = {"left": names[0], "right": names[1], "differences": [d.as_json() for d in found]}

    def table(wide: bool) -> None:
        rows = [
            [d.connector, *map(addresses_masked, (d.key, d.left or "-", d.right or "-"))]
            for d in found
        ]
        terminal.table(
            ["CONNECTOR", "KEY", names[0].upper(), names[1].upper()], rows, empty="No differences."
        )

    terminal.emit("OffsetsDiff", data, output, table)
    if found and exit_code:
        raise typer.Exit(PENDING)


def backup(
    ctx: typer.Context,
    connectors: ConnectorsArgument = None,
    out: Annotated[
        Path,
        typer.Option("--out", help="The file to write; - for standard output.", metavar="FILE"),
    ] = Path("-"),
    engine: EngineOption = Choice.AUTO,
) -> None:
    """Save every offset record of connectors, keys and values byte for byte, and what sinks have
    committed, as JSON lines.

    \b
    Examples:
      connectctl offsets backup --out offsets.jsonl
      connectctl offsets backup 'orders-*' | gzip > orders.jsonl.gz
      connectctl offsets backup --engine spark --out offsets/           part files, written by Spark's tasks

    What it writes is read by offsets restore, offsets diff -f, and offsets show -f.
    """
    from connectctl.cli.commands.offsets import spark_backup
    from connectctl.ops.operations.offsets.backup import backup_of
    from connectctl.ops.operations.offsets.backup_seal import SEAL_LINES, sealed
    from connectctl.ops.operations.offsets.sources import PATIENCE, sources_of

    session: Session = ctx.obj
    if spark_backup.backup(session, tuple(connectors or ()), out):
        return
    with without_collection(ends=True):
        found, lines, sinks = backup_of(sources_of(session, PATIENCE)[0], tuple(connectors or ()))
        groups = spark_backup.lines_of_sinks(session, sinks, named=bool(connectors))
        count = (
            spark_backup.save(sealed(line + "\n" for line in chain(lines, groups)), out)
            - SEAL_LINES
        )
    if str(out) == "-":
        return
    terminal.note(
        f"{counted(count, 'record')} of {counted(len(found) + len(sinks), 'connector')} in {out}"
    )


def history(
    ctx: typer.Context, connectors: ConnectorsArgument = None, output: ListOption = Output.TABLE
) -> None:
    """List the changes of source offsets that were made from this machine, the newest first.

    \b
    Examples:
      connectctl offsets history orders 'test-*'
    """
    from connectctl.cli.commands.runs.app import as_json
    from connectctl.migrations.operations import OPERATIONS
    from connectctl.ops.operations.offsets.operations import OffsetsOperation

    names = {
        name for name, operation in OPERATIONS.items() if isinstance(operation, OffsetsOperation)
    }
    runs = [run for run in ctx.obj.journal(read_only=True).runs() if run.operation in names]
    wanted = connectors or ["*"]
    found = [
        run
        for run in runs
        if any(s == name or fnmatchcase(s, name) for s in run.subjects for name in wanted)
    ]

    def table(wide: bool) -> None:
        rows = [[r.id, r.operation, ", ".join(r.subjects), r.state, r.started_at] for r in found]
        columns = ["RUN", "OPERATION", "CONNECTORS", "STATE", "STARTED"]
        spare = () if wide else ("STARTED", "CONNECTORS")
        terminal.table(
            columns, rows, empty="No offset changes have been made from this machine.", spare=spare
        )

    terminal.emit("RunList", {"runs": [as_json(run) for run in found]}, output, table)


@with_options
def undo(ctx: typer.Context, run: RunArgument, options: OffsetOptions = OffsetOptions()) -> None:
    """Undo a change: restore every record of its connectors, and every offset of its groups, from
    the backup that the run made.

    \b
    Examples:
      connectctl offsets history
      connectctl offsets undo 20260101-120000-ab12 --stop
    """
    undo_offsets(ctx.obj, run, options)


def undo_offsets(session: Session, run: str, options: OffsetOptions) -> None:
    """Restore the offsets that a run saved. Raises ``Refused`` for a run that saved none."""
    from connectctl.ops.operations.offsets.operations import UndoOffsets
    from connectctl.ops.operations.operation import Undone
    from connectctl.ops.registry import KINDS

    journal = session.journal()
    found = journal.get(run)
    undone = Undone(journal, found, journal.plan_of(found, KINDS), stop=options.stop)
    flow.undo(session, UndoOffsets(), undone, options)
