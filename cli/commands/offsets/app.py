"""``connectctl offsets``: its commands, in the order of their help."""

from __future__ import annotations

from connectctl.cli.commands.offsets import change, files, set_reset, show
from connectctl.cli.options import command_group

app = command_group("Show and change offsets.")

for command in (
    show.show,
    change.merge,
    change.copy,
    set_reset.set_,
    set_reset.reset,
    set_reset.restore,
    files.diff,
    files.backup,
    files.history,
    files.undo,
):
    app.command(command.__name__.rstrip("_"))(command)
