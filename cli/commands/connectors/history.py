"""``connectctl connectors history`` and ``rollback``: the configurations that a connector had, and the way back to one."""

from __future__ import annotations

from typing import Annotated

import typer
from connectctl.cli.commands.connectors.options import ConfigOptions
from connectctl.cli.options import ConnectorArgument, OutputOption, with_options
from connectctl.cli.output.terminal import Output


def history(
    ctx: typer.Context,
    connector: ConnectorArgument,
    show: Annotated[
        int | None, typer.Option("--show", metavar="N", min=1, help="Print the configuration of this version.")
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the configurations that a connector had, the newest first, also of one that was deleted.

    \b
    Examples:
      connectctl connectors history orders
      connectctl connectors history orders --show 2
      connectctl connectors history orders -o json | jq '.versions[0].changes'

    They are read from the config topic, where compaction leaves the newest for certain and older ones for a while, and from
    the journal of this machine, which keeps the configurations of before and after each of its runs. Secrets are masked.
    """
    from connectctl.cli.commands.connectors import versions as connectors_versions

    connectors_versions.history(ctx.obj, connector, show, output)


@with_options
def rollback(
    ctx: typer.Context,
    connector: ConnectorArgument,
    to: Annotated[
        int, typer.Option("--to", metavar="N", min=1, help="The version, as connectors history counts them.")
    ],
    options: ConfigOptions = ConfigOptions(),
) -> None:
    """Give a connector the configuration of an earlier version again, or create it with that where it was deleted.

    \b
    Examples:
      connectctl connectors rollback orders --to 2 --dry-run
      connectctl connectors rollback orders --to 2 --yes --wait

    Versions are counted by connectctl connectors history. The plan shows what differs from now, what it does to source
    offsets, and a worker validates it first. Undo: connectctl runs undo RUN.
    """
    from connectctl.cli.commands.connectors import apply as connectors_apply

    connectors_apply.rollback(ctx.obj, connector, to, options)


def register(app: typer.Typer) -> None:
    """Add the commands to ``connectctl connectors``."""
    for command in (history, rollback):
        app.command(command.__name__)(command)
