"""``connectctl connectors create|apply|edit|patch|delete|diff|history|rollback``: current and
earlier configurations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from connectctl.cli import completed_names, flow
from connectctl.cli.commands.connectors.options import ConfigOptions
from connectctl.cli.options import (
    PENDING,
    ConnectorArgument,
    EnvFileOption,
    OutputOption,
    PendingOption,
    RecursiveOption,
    SetOption,
    WaitOptions,
    with_options,
)
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.ops.core.errors import BadInput

FilesOption = Annotated[
    list[Path],
    typer.Option(
        "--file",
        "-f",
        metavar="FILE|DIR",
        help="JSON, YAML, .properties or Strimzi's KafkaConnector; - for stdin. Repeatable.",
    ),
]
FileOption = Annotated[
    Path, typer.Option("--file", "-f", metavar="FILE", help="A configuration; - for stdin.")
]
NamesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="CONNECTOR...",
        help="By name or by glob.",
        autocompletion=completed_names.connectors,
    ),
]


@with_options
def create(
    ctx: typer.Context,
    file: FilesOption,
    stopped: Annotated[
        bool, typer.Option("--stopped", help="Create it STOPPED (KIP-980, workers from 3.7 on).")
    ] = False,
    offsets: Annotated[
        Path | None,
        typer.Option(
            "--offsets", metavar="FILE", help="Output of offsets show -o json or of the REST API."
        ),
    ] = None,
    recursive: RecursiveOption = False,
    env_file: EnvFileOption = None,
    assigned: SetOption = None,
    options: ConfigOptions = ConfigOptions(),
) -> None:
    """Create connectors that are not there yet.

    \b
    Examples:
      connectctl connectors create -f orders.json --wait
      connectctl connectors create -f orders.yaml --stopped --dry-run
      connectctl connectors create -f orders.json --offsets offsets.json      resume where another connector ended
      connectctl connectors create -f orders-v2.json --carry-offsets          after the connector was renamed

    With --offsets the connector is created STOPPED, its workers set its offsets (KIP-875), and it
    is resumed; for workers before 3.7 they are written to the offsets topic before it is created. A
    connector that is created under the name of an older one resumes from the offsets of that one.
    Undo: connectctl runs undo RUN.
    """
    from connectctl.cli.commands.connectors.apply import read_desired
    from connectctl.ops.operations.connectors.config import offsets as config_offsets
    from connectctl.ops.operations.connectors.config import operations
    from connectctl.ops.operations.connectors.config.reading import reading_of

    reading = reading_of(env_file, assigned, terminal.note, recursive=recursive)
    given = read_desired(file, reading)
    entries = config_offsets.check_initial(given, offsets)
    request = operations.CreateRequest(
        connectors=given, stopped=stopped, entries=entries, **options.of_request
    )
    flow.perform(ctx.obj, operations.CreateConnectors(), request, options)


@with_options
def apply(
    ctx: typer.Context,
    file: FilesOption,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune",
            help="Delete connectors that were applied from there before and are no longer there.",
        ),
    ] = False,
    prune_match: Annotated[
        list[str] | None,
        typer.Option(
            "--prune-match",
            metavar="GLOB",
            help="Delete matching connectors not in the files. Repeatable.",
        ),
    ] = None,
    exit_code: PendingOption = False,
    recursive: RecursiveOption = False,
    env_file: EnvFileOption = None,
    assigned: SetOption = None,
    options: ConfigOptions = ConfigOptions(),
) -> None:
    """Create connectors, or change them to what files say, in one plan. What no file names stays as
    it is without --prune.

    \b
    Examples:
      connectctl connectors apply -f orders.json --dry-run
      connectctl connectors apply -f connectors/ --prune --yes --wait
      connectctl connectors apply -f connectors/ --dry-run --exit-code       exit code 3 if changes are pending
      connectctl connectors apply -f orders.json --env-file prod.env --set TASKS=4

    A property that a file does not have is removed. Each connector is compared again before it is
    changed: one that another client changed meanwhile is not changed. The plan says what restarts,
    and where the cluster was changed since the last apply. --prune deletes what runs of this
    machine applied from the same file or directory; the plan names what it leaves alone, and why.
    References such as ${file:…} are compared and sent unresolved; secrets are masked in plans,
    which have their files' digests. Undo: connectctl runs undo RUN.
    """
    from connectctl.cli.commands.connectors import apply as connectors_apply
    from connectctl.ops.operations.connectors.config.reading import reading_of

    reading = reading_of(env_file, assigned, terminal.note, recursive=recursive)
    pruning = prune, prune_match or ()
    connectors_apply.apply_files(ctx.obj, file, reading, exit_code, options, prune=pruning)


@with_options
def edit(
    ctx: typer.Context, connector: ConnectorArgument, options: ConfigOptions = ConfigOptions()
) -> None:
    """Change a connector's configuration in an editor: $VISUAL, else $EDITOR, else vi.

    \b
    Examples:
      connectctl connectors edit orders --wait
      EDITOR="code --wait" connectctl connectors edit orders --dry-run

    A worker validates what was saved before anything is sent, and the plan shows what differs.
    Secrets are masked in the editor; one that stays masked stays what it is.
    """
    from connectctl.cli.commands.connectors import apply as connectors_apply

    connectors_apply.edit(ctx.obj, connector, options)


@with_options
def patch(
    ctx: typer.Context,
    connector: Annotated[
        str,
        typer.Argument(
            metavar="CONNECTOR",
            help="By name or by glob.",
            autocompletion=completed_names.connectors,
        ),
    ],
    changes: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE|NAME-...",
            help="Properties to set or to remove.",
            autocompletion=completed_names.properties,
        ),
    ],
    options: ConfigOptions = ConfigOptions(),
) -> None:
    """Set or remove single properties of connectors.

    \b
    Examples:
      connectctl connectors patch orders tasks.max=4 --wait
      connectctl connectors patch 'orders-*' batch.size=500 errors.tolerance- --dry-run
      connectctl connectors patch lines file=/data/new.txt --carry-offsets --wait      to continue at the same offset

    Workers from 3.8 on are sent only what changes (KIP-477); older ones the whole configuration,
    compared just before. The plan says which source offsets the change orphans, which source
    partitions begin anew, and what is not known.
    """
    from connectctl.ops.operations.connectors.config import operations, plan

    request = operations.PatchRequest(
        pattern=connector, properties=plan.assignments(changes), **options.of_request
    )
    flow.perform(ctx.obj, operations.PatchConnectors(), request, options)


@with_options
def delete(
    ctx: typer.Context,
    names: NamesArgument,
    with_offsets: Annotated[
        bool,
        typer.Option(
            "--with-offsets", help="Delete the offsets, too (KIP-875, workers from 3.6 on)."
        ),
    ] = False,
    options: WaitOptions = WaitOptions(),
) -> None:
    """Delete connectors, and list what remains: offsets, topics, transactional ids, consumer
    group.

    \b
    Examples:
      connectctl connectors delete orders --dry-run
      connectctl connectors delete 'test-*' --with-offsets --yes --wait

    Without --with-offsets a connector that is created later under the same name resumes where this
    one ended. What is deleted is kept for connectctl runs undo RUN.
    """
    from connectctl.ops.operations.connectors.config import operations

    request = operations.DeleteRequest(
        names=tuple(names), with_offsets=with_offsets, wait=options.wait
    )
    flow.perform(ctx.obj, operations.DeleteConnectors(), request, options)


def diff(
    ctx: typer.Context,
    connector: ConnectorArgument,
    file: FileOption,
    exit_code: PendingOption = False,
    env_file: EnvFileOption = None,
    assigned: SetOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what differs between a connector and a file.

    \b
    Examples:
      connectctl connectors diff orders -f orders.json
      connectctl connectors diff orders -f orders.json --exit-code || echo differs
    """
    from connectctl.cli.commands.connectors import apply as connectors_apply
    from connectctl.ops.operations.connectors.config.reading import reading_of

    reading = reading_of(env_file, assigned, terminal.note)
    given = connectors_apply.read_desired([file], reading)
    wanted = next((each for each in given if each.name == connector), None)
    if wanted is None:
        names = ", ".join(each.name for each in given)
        raise BadInput(f"{file} has no configuration of {connector}", why=f"it has {names}")
    rows = connectors_apply.differences(ctx.obj, wanted)
    data = {
        "connector": connector,
        "differences": [dict(zip(("name", "now", "file"), r, strict=True)) for r in rows],
    }
    terminal.emit(
        "ConnectorDiff",
        data,
        output,
        lambda wide: terminal.table(
            ["PROPERTY", "NOW", "FILE"],
            [[n, a or "-", b or "-"] for n, a, b in rows],
            empty="No differences.",
        ),
    )
    if rows and exit_code:
        raise typer.Exit(PENDING)


def history(
    ctx: typer.Context,
    connector: ConnectorArgument,
    show: Annotated[
        str | None,
        typer.Option(
            "--show", metavar="REVISION", help="Print the configuration of this revision."
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the configurations that a connector had, the newest first, also of one that was deleted.

    \b
    Examples:
      connectctl connectors history orders
      connectctl connectors history orders --show 41
      connectctl connectors history orders -o json | jq '.revisions[0].changes'

    They are read from the config topic, where compaction leaves the newest for certain and older
    ones for a while, and from the journal of this machine, which keeps the configurations of before
    and after each of its runs. A revision is the offset of its record in the config topic; one that
    compaction removed has the name of its run. Secrets are masked.
    """
    from connectctl.cli.commands.connectors import versions as connectors_versions

    connectors_versions.history(ctx.obj, connector, show, output)


@with_options
def rollback(
    ctx: typer.Context,
    connector: ConnectorArgument,
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="REVISION", help="A revision, as connectors history lists them."
        ),
    ],
    options: ConfigOptions = ConfigOptions(),
) -> None:
    """Give a connector the configuration of an earlier revision again, or create it with that where
    it was deleted.

    \b
    Examples:
      connectctl connectors rollback orders --to 41 --dry-run
      connectctl connectors rollback orders --to 41 --yes --wait

    Revisions are listed by connectctl connectors history, and keep their numbers. The plan shows
    what differs from now, what it does to source offsets, and a worker validates it first. Undo:
    connectctl runs undo RUN.
    """
    from connectctl.ops.operations.connectors.config import operations

    request = operations.RollbackRequest(connector=connector, to=to, **options.of_request)
    flow.perform(ctx.obj, operations.RollbackConnector(), request, options)
