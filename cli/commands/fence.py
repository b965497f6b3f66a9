"""``connectctl fence``: fence zombie producers by connector, id, prefix or file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from connectctl.cli import completed_names, flow
from connectctl.cli.options import ApplyOptions, with_options
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.fencing.snapshot import FenceRequest

app = typer.Typer(rich_markup_mode=None, add_completion=False, help="Fence zombie producers.")


@app.command()
@with_options
def fence(
    ctx: typer.Context,
    connectors: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CONNECTOR]...",
            help="Connectors: the ids of all their tasks.",
            autocompletion=completed_names.connectors,
        ),
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--transactional-id",
            metavar="ID",
            help="Transactional id (repeatable).",
            autocompletion=completed_names.transactional_ids,
        ),
    ] = None,
    prefixes: Annotated[
        list[str] | None,
        typer.Option(
            "--prefix", metavar="P", help="All known ids that begin with P, except leaders' ids."
        ),
    ] = None,
    from_file: Annotated[
        Path | None,
        typer.Option(
            "--from-file",
            "-f",
            metavar="FILE",
            help="File of ids, one per line or JSON; - for stdin.",
        ),
    ] = None,
    leader: Annotated[
        bool, typer.Option("--leader", help="The id of the leader, connect-cluster-<group.id>.")
    ] = False,
    create: Annotated[
        bool, typer.Option("--create", help="Create ids unknown to the coordinators.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also fence running tasks; they will fail.")
    ] = False,
    restart_failed: Annotated[
        bool,
        typer.Option(
            "--restart-failed", help="Restart the failed tasks of the connectors afterwards."
        ),
    ] = False,
    options: ApplyOptions = ApplyOptions(),
) -> None:
    """Fence transactional ids: older producers can no longer commit, and open transactions are
    aborted.

    \b
    Examples:
      connectctl fence orders --dry-run                    the ids of a connector and their current state
      connectctl fence orders --yes -o json
      connectctl fence orders --force --restart-failed     also running tasks; they fail and are restarted
      connectctl fence --prefix connect-prod-old- --yes    all remaining ids of a connector
      connectctl transactions list -o json | connectctl fence -f - --yes
      connectctl fence --leader                            the leader's producer for the config topic

    The ids of a connector are those of its task count record, its task configs and the
    coordinators. Unknown ids are reported and left alone. Afterwards the fence is verified: the
    coordinator has the returned producer and epoch for each id, and no older transaction is open on
    its partitions. --timeout applies to all of it. Exit code 1: some ids are not fenced or not
    visible to this principal; 4: running tasks would fail, or may, because their group could not be
    described; 5: this principal may fence none of them; 130: interrupted, finished ids are printed.
    """
    named = [*(ids or []), *(_read_ids(from_file) if from_file else ())]
    if from_file and not (named or connectors or prefixes or leader):
        raise BadInput(
            f"{_source(from_file)} has no transactional id, and nothing else was named to fence",
            next_step="List the ids: connectctl transactions list.",
        )
    request = FenceRequest(
        tuple(dict.fromkeys(connectors or ())),
        tuple(named),
        tuple(prefixes or ()),
        leader,
        create,
        force,
    )
    from connectctl.ops.operations.fencing.operation import Fence, FenceAndRestart

    flow.perform(ctx.obj, Fence(), FenceAndRestart(request, restart_failed), options)


def _read_ids(file: Path) -> tuple[str, ...]:
    from connectctl.ops.operations.fencing.id_file import parse_ids

    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text()
    except (OSError, UnicodeDecodeError) as e:
        why = e.strerror if isinstance(e, OSError) else "invalid UTF-8"
        raise BadInput(f"Could not read {file}", why=why) from e
    return parse_ids(text, _source(file))


def _source(file: Path) -> str:
    return "standard input" if str(file) == "-" else str(file)
