"""``connectctl loggers``: log levels of the workers, without a restart."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from connectctl.cli import completed_names, flow
from connectctl.cli.options import (
    ApplyOptions,
    ListOption,
    RunArgument,
    UndoOptions,
    command_group,
    with_options,
)
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.session import Session
from connectctl.ops.connect.internal_topics import address
from connectctl.ops.operations.cluster import loggers
from connectctl.ops.operations.cluster.logger_operations import LevelRequest, SetLevels
from connectctl.ops.operations.connectors.access import open_cluster

app = command_group("Show and change the workers' log levels.")


Level = Literal["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"]
"""Kafka's levels, the same for workers before 4.0."""
WorkerOption = Annotated[
    str | None,
    typer.Option(
        "--worker",
        metavar="ADDRESS",
        help="Only this worker, HOST:PORT.",
        autocompletion=completed_names.workers,
    ),
]


@app.command()
def get(
    ctx: typer.Context,
    logger: Annotated[
        str,
        typer.Argument(
            metavar="[LOGGER]",
            help="A logger and its children.",
            autocompletion=completed_names.loggers,
        ),
    ] = "",
    worker: WorkerOption = None,
    output: ListOption = Output.TABLE,
) -> None:
    """Show the levels of loggers on all workers, in several rows where workers differ.

    \b
    Examples:
      connectctl loggers get
      connectctl loggers get org.apache.kafka.connect.runtime
      connectctl loggers get root --worker worker-1:8083
    """
    session: Session = ctx.obj
    calls = open_cluster(session).calls
    found = loggers.read(calls)
    if worker is not None:
        found = {loggers.url_of(calls, worker): found[loggers.url_of(calls, worker)]}
    having: dict[tuple[str, str], list[str]] = {}
    for url, levels in found.items():
        for name, level in (loggers.affected(levels, logger) if logger else levels).items():
            having.setdefault((name, level), []).append(address(url) or url)
    rows = [
        {"name": name, "level": level, "workers": having[name, level]}
        for name, level in sorted(having)
    ]

    def table(wide: bool) -> None:
        cells = [
            [
                name,
                level,
                "all"
                if len(having[name, level]) == len(found) and not wide
                else ", ".join(having[name, level]),
            ]
            for name, level in sorted(having)
        ]
        effective = ", ".join(
            sorted({loggers.level_of(levels, logger) or "unknown" for levels in found.values()})
        )
        empty = f"No worker has a level of its own for the logger {logger}; effective: {effective}."
        terminal.table(["LOGGER", "LEVEL", "WORKERS"], cells, empty=empty)

    terminal.emit("LoggerList", {"loggers": rows}, output, table)


@app.command("set")
@with_options
def set_(
    ctx: typer.Context,
    logger: Annotated[
        str,
        typer.Argument(
            metavar="LOGGER",
            help="A logger and its children, or root.",
            autocompletion=completed_names.loggers,
        ),
    ],
    level: Annotated[
        Level, typer.Argument(metavar="LEVEL", help="OFF … TRACE.", case_sensitive=False)
    ],
    scope: Annotated[
        Literal["cluster", "worker"],
        typer.Option("--scope", help="All workers at once, or one by one."),
    ] = "cluster",
    worker: WorkerOption = None,
    options: ApplyOptions = ApplyOptions(),
) -> None:
    """Set the level of a logger and its children until the workers restart.

    \b
    Examples:
      connectctl loggers set org.apache.kafka.connect.runtime DEBUG
      connectctl loggers set root WARN --worker worker-1:8083 --yes

    Workers of Kafka 3.7 or newer are all set with one request (KIP-976). If one is older, each
    worker is set separately, and the plan names them. The former levels are in the journal:
    connectctl loggers undo RUN.
    """
    together = scope == "cluster" and worker is None
    flow.perform(ctx.obj, SetLevels(), LevelRequest(logger, level, worker, together), options)


@app.command()
@with_options
def undo(ctx: typer.Context, run: RunArgument, options: ApplyOptions = ApplyOptions()) -> None:
    """Restore the levels from before a run of loggers set.

    \b
    Examples:
      connectctl loggers undo 20260101-120000-ab12
    """
    from connectctl.cli.commands.runs.apply_resume_undo import undo_run

    undo_run(ctx.obj, run, UndoOptions(**vars(options)), SetLevels())
