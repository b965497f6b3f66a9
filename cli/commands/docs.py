"""``connectctl docs``: the manual's pages, from the commands' own help."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from connectctl.cli.output import terminal
from connectctl.cli.output.man_pages import below, page, title
from connectctl.ops.core.errors import BadInput, ConnectctlError

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)


@app.callback()
def docs() -> None:
    """Print the manual."""


@app.command()
def man(
    ctx: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND]...", help="The command; the program itself if not given."
        ),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option("--directory", help="Directory for the pages of all commands.", metavar="DIR"),
    ] = None,
) -> None:
    """Print a page for man, or write all of them.

    \b
    Examples:
      connectctl docs man offsets show | man -l -
      connectctl docs man --directory ~/.local/share/man/man1
    """
    root = ctx.find_root()
    if directory is None:
        path = tuple(command or ())
        terminal.standard_output().write(page(root, path, _found(root.command, path)))
        return
    if command:
        raise BadInput(
            "COMMAND and --directory cannot be combined",
            next_step="Leave out COMMAND or --directory.",
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        pages = {title(path): page(root, path, each) for path, each in below(root.command)}
        for name, text in pages.items():
            (directory / f"{name}.1").write_text(text, encoding="utf-8")
    except OSError as e:
        raise ConnectctlError(
            f"Could not write {directory}", why=e.strerror, next_step="Give another DIR."
        ) from e
    sys.stderr.write(f"{len(pages)} pages in {directory}\n")


def _found(root: Any, path: tuple[str, ...]) -> Any:
    for known, command in below(root):
        if known == path:
            return command
    raise BadInput(f"Unknown command: {' '.join(path)}", next_step="See connectctl --help.")
