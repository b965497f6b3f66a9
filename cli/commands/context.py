"""``connectctl context``: which cluster a command would talk to, and who says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from connectctl.cli.options import ListOption, OutputOption
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.session import Session
from connectctl.ops.config import paths
from connectctl.ops.core.errors import BadInput

if TYPE_CHECKING:
    from connectctl.ops.config.context_file import Parsed

app = typer.Typer(
    rich_markup_mode=None, add_completion=False, no_args_is_help=True, help="Show where every setting comes from."
)


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
    data = {"context": settings.context, "file": str(session.config or paths.config_file()), "settings": rows}
    data["notUsed"] = [{"name": name, "origin": setting.origin} for name, setting in settings.set_aside.items()]

    def table(wide: bool) -> None:
        terminal.note(
            f"context: {settings.context or '(none)'}   precedence: flags > environment > context file > defaults"
        )
        empty = f"Nothing is set. Give --bootstrap-servers and --group-id, or write {data['file']}."
        terminal.table(["NAME", "VALUE", "ORIGIN"], [list(row.values()) for row in rows], empty=empty)
        if settings.set_aside:
            names = ", ".join(settings.set_aside)
            terminal.note(f"Not used, because they belong to another group than {settings.get('group_id')}: {names}")

    terminal.emit("Context", data, output, table)


@app.command("list")
def list_(ctx: typer.Context, output: ListOption = Output.TABLE) -> None:
    """List the contexts of the context file, and the sandboxes that are up.

    \b
    Examples:
      connectctl context list
    """
    from connectctl.ops.config import context_file

    session: Session = ctx.obj
    path = session.config or paths.config_file()
    found: list[dict[str, object]] = []
    if session.config or path.is_file():
        parsed = context_file.read(path)
        for name in parsed.names:
            entry = parsed.content.contexts.get(name)
            row = {"name": name, "current": name == parsed.content.current}
            row["bootstrapServers"] = entry.bootstrap_servers if entry else None
            row |= {"groupId": entry.group_id if entry else None, "file": str(path), "problem": _problem(parsed, name)}
            found.append(row)
    for file in sorted(paths.sandbox_directory("_").parent.glob("*/context.yaml")):
        for name in context_file.read(file).names:
            row = {"name": name, "current": False, "bootstrapServers": None}
            found.append(row | {"groupId": None, "file": str(file), "problem": None})

    def table(wide: bool) -> None:
        rows = [
            [
                "*" if row["current"] else "",
                str(row["name"]),
                "broken" if row["problem"] else "ok",
                str(row["bootstrapServers"] or ""),
                str(row["file"]),
            ]
            for row in found
        ]
        columns = ["CURRENT", "NAME", "STATE", "BOOTSTRAP-SERVERS", "FILE"]
        terminal.table(columns, rows, empty=f"No context yet; write {path}.")
        for row in found:
            if row["problem"]:
                terminal.note(f"{row['name']}: {row['problem']}", style="red")

    terminal.emit("ContextList", {"contexts": found}, output, table)


def _problem(parsed: Parsed, name: str) -> str | None:
    """Why the context cannot be used: what is wrong in the file, or a secret that is not there.

    Commands that print secrets are not run: they may ask a person.
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
