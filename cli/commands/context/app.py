"""``connectctl context``: which cluster commands use, and where each setting comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from connectctl.cli import completed_names
from connectctl.cli.commands.context import change as context_change
from connectctl.cli.options import (
    DryRunOption,
    ListOption,
    OutputOption,
    UseOption,
    YesOption,
    command_group,
)
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.session import Session
from connectctl.ops.config import paths
from connectctl.ops.core.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectctl.ops.config.context_file import Parsed

app = command_group("Show where every setting comes from, and change the context file.")
ContextArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A context of the context file.",
        autocompletion=completed_names.own_contexts,
    ),
]


@app.command()
def show(ctx: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Print every setting in force, with its origin; secrets are masked.

    \b
    Examples:
      connectctl context show
      connectctl --context prod context show -o json

    Flags win over the environment (CONNECTCTL_…), the environment over the context file, the file
    over defaults.
    """
    session: Session = ctx.obj
    settings = session.settings
    rows = [
        {"name": name, "value": value, "origin": origin}
        for name, value, origin in settings.masked()
    ]
    data = {
        "context": settings.context,
        "file": str(session.config or paths.config_file()),
        "settings": rows,
    }
    data["notUsed"] = [
        {"name": name, "origin": setting.origin} for name, setting in settings.set_aside.items()
    ]

    def table(wide: bool) -> None:
        terminal.note(
            f"context: {settings.context or '(none)'}   precedence: flags > environment > context "
            "file > defaults"
        )
        empty = (
            "Nothing is configured. Give --bootstrap-servers and --group-id, or write "
            f"{data['file']}."
        )
        terminal.table(
            ["NAME", "VALUE", "ORIGIN"], [list(row.values()) for row in rows], empty=empty
        )
        if settings.set_aside:
            names = ", ".join(settings.set_aside)
            terminal.note(
                f"Not used, because they belong to another group than {settings.get('group_id')}: "
                f"{names}"
            )

    terminal.emit("Context", data, output, table)


@app.command("list")
def list_(ctx: typer.Context, output: ListOption = Output.TABLE) -> None:
    """List the contexts of the context file, and those of the sandboxes that are up.

    \b
    Examples:
      connectctl context list

    STATE is about the file alone: ok where the context can be read and its secrets are there,
    broken where not. No cluster is asked. REST is empty where workers are found through their
    group.
    """
    from connectctl.ops.config import context_file

    session: Session = ctx.obj
    path = session.config or paths.config_file()
    found: list[dict[str, object]] = []
    current = None
    if session.config or path.is_file():
        parsed = context_file.read(path)
        current = parsed.content.current
        found += _listed(parsed, current)
    for file in paths.sandbox_contexts():
        found += _listed(context_file.read(file), current)

    def table(wide: bool) -> None:
        rows = [
            [
                "*" if row["current"] else "",
                str(row["name"]),
                "broken" if row["problem"] else "ok",
                str(row["bootstrapServers"] or ""),
                ", ".join(map(str, row["rest"])) if isinstance(row["rest"], list) else "",
                str(row["file"]),
            ]
            for row in found
        ]
        columns = ["CURRENT", "NAME", "STATE", "BOOTSTRAP-SERVERS", "REST", "FILE"]
        spare = () if wide else ("FILE", "REST")
        terminal.table(columns, rows, empty=f"No context yet; write {path}.", spare=spare)
        for row in found:
            if row["problem"]:
                terminal.note(f"{row['name']}: {row['problem']}", style="red")

    terminal.emit("ContextList", {"contexts": found}, output, table)


def _listed(parsed: Parsed, current: str | None) -> Iterator[dict[str, object]]:
    """Yield a row for each context of a file."""
    for name in parsed.names:
        entry = parsed.content.contexts.get(name)
        yield {
            "name": name,
            "current": name == current,
            "bootstrapServers": entry.bootstrap_servers if entry else None,
            "groupId": entry.group_id if entry else None,
            "rest": entry.rest if entry else [],
            "file": str(parsed.path),
            "problem": _problem(parsed, name),
        }


@app.command()
def use(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A context of the context file, or of a sandbox.",
            autocompletion=completed_names.contexts,
        ),
    ],
    dry_run: DryRunOption = False,
) -> None:
    """Make a context of the context file the current one.

    \b
    Examples:
      connectctl context use prod
      connectctl context use sandbox-default

    Comments, order and everything else in the file stay as they are, byte for byte; --dry-run
    prints the difference.
    """
    context_change.use(ctx.obj, name, dry_run=dry_run)


@app.command()
def add(
    ctx: typer.Context,
    name: ContextArgument,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Another key of the context, as client.security.protocol=SSL; of a secret "
            "env:NAME, file:FILE or command:COMMAND; of a list with commas. Repeatable.",
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE[:SERVICE]",
            help="What a worker is started with: worker.properties, a file of CONNECT_… "
            "variables, a compose file, or Strimzi's KafkaConnect. Other options come before it.",
        ),
    ] = None,
    current: UseOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Add a context to the context file; its cluster is given by the options for all commands.

    \b
    Examples:
      connectctl context add prod --bootstrap-servers b1:9092 --group-id connect
      connectctl context add prod --rest http://w1:8083 --set protected=true --use
      connectctl context add prod --bootstrap-servers b1:9093 --group-id connect \\
        --set client.security.protocol=SASL_SSL \\
        --set client.sasl.mechanism=PLAIN --set client.sasl.username=ops \\
        --set client.sasl.password=env:KAFKA_PASSWORD
      connectctl context add prod --from worker.properties --dry-run
      connectctl context add dev --from docker-compose.yml:connect --bootstrap-servers localhost:9092

    Passwords are written as references only: env:NAME, file:FILE or command:COMMAND. A new file is
    for its owner only.
    """
    context_change.add(ctx.obj, name, settings or [], source, current=current, dry_run=dry_run)


@app.command()
def remove(
    ctx: typer.Context, name: ContextArgument, dry_run: DryRunOption = False, yes: YesOption = False
) -> None:
    """Remove a context from the context file, with the comments within it.

    \b
    Examples:
      connectctl context remove old --dry-run
      connectctl context remove old --yes

    If it is the current context, current: is removed as well.
    """
    context_change.remove(ctx.obj, name, dry_run=dry_run, yes=yes)


def _problem(parsed: Parsed, name: str) -> str | None:
    """Return why the context cannot be used: an error in the file, or a missing secret.

    Commands that print secrets are not run: they may prompt the user.
    """
    from connectctl.ops.clients.secrets import reveal
    from connectctl.ops.config import settings

    try:
        for key, value in settings.merge({}, {}, parsed, name).secrets():
            if isinstance(value, settings.SecretSource) and value.kind != "command":
                reveal(key, value)
    except BadInput as e:
        return str(e)
    return None
