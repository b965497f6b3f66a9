"""``connectctl context``: which cluster a command would talk to, and who says so."""

from __future__ import annotations

from typing import Annotated

import typer
from connectctl.cli import render
from connectctl.cli.context import Session
from connectctl.cli.render import Output
from connectctl.ops import places

app = typer.Typer(
    rich_markup_mode=None, add_completion=False, no_args_is_help=True, help="Show where every setting comes from."
)

OutputOption = Annotated[Output, typer.Option("--output", "-o", help="table, wide, json or yaml.")]


@app.command()
def show(ctx: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Print every setting in force, with its origin; secrets are masked.

    \b
    Examples:
      connectctl context show
      connectctl --context prod context show -o json

    Flags win over the environment (CONNECTCTL_…), the environment over the context file, the file over defaults.
    """
    session: Session = ctx.obj
    settings = session.settings
    rows = [{"name": name, "value": value, "origin": origin} for name, value, origin in settings.masked()]
    data = {"context": settings.context, "file": str(session.config or places.config_file()), "settings": rows}

    def table(wide: bool) -> None:
        render.note(
            f"context: {settings.context or '(none)'}   precedence: flags > environment > context file > defaults"
        )
        empty = f"Nothing is set. Give --bootstrap-servers and --group-id, or write {data['file']}."
        render.table(["NAME", "VALUE", "ORIGIN"], [list(row.values()) for row in rows], empty=empty)

    render.emit("Context", data, output, table)


@app.command("list")
def list_(ctx: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """List the contexts of the context file, and the sandboxes that are up.

    \b
    Examples:
      connectctl context list
    """
    from connectctl.ops import contextfile

    session: Session = ctx.obj
    path = session.config or places.config_file()
    found: list[dict[str, object]] = []
    if path.is_file():
        content = contextfile.read(path).content
        for name, entry in content.contexts.items():
            row = {"name": name, "current": name == content.current, "bootstrapServers": entry.bootstrap_servers}
            found.append(row | {"groupId": entry.group_id, "file": str(path)})
    for file in sorted(places.sandbox_directory("_").parent.glob("*/context.yaml")):
        for name in contextfile.read(file).content.contexts:
            row = {"name": name, "current": False, "bootstrapServers": None}
            found.append(row | {"groupId": None, "file": str(file)})

    def table(wide: bool) -> None:
        rows = [
            ["*" if row["current"] else "", str(row["name"]), str(row["bootstrapServers"] or ""), str(row["file"])]
            for row in found
        ]
        render.table(["CURRENT", "NAME", "BOOTSTRAP-SERVERS", "FILE"], rows, empty=f"No context yet; write {path}.")

    render.emit("ContextList", {"contexts": found}, output, table)
