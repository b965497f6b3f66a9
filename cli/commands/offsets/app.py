"""``connectctl offsets``: its commands, in the order of their help."""

from __future__ import annotations

import typer
from connectctl.cli.commands.offsets import change, files, set_reset, show

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True, help="Show and change offsets.")


@app.callback()
def offsets() -> None:
    """Source offsets: global, dedicated, effective, and what a worker really reads."""


show.register(app)
change.register(app)
set_reset.register(app)
files.register(app)
