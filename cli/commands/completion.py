"""``connectctl completion``: the scripts for completion in shells.

The scripts are static files, which packagers install unchanged. They get candidates from the
program, in one protocol for all three shells (that of Typer's fish class: a candidate and its help
per line).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from connectctl.cli.output import terminal

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)

SCRIPTS = Path(__file__).resolve().parents[2] / "completions"
FILES = {"bash": "connectctl", "zsh": "_connectctl", "fish": "connectctl.fish"}


@app.command()
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="bash|zsh|fish")],
) -> None:
    """Print the completion script of a shell.

    \b
    Examples:
      source <(connectctl completion bash)          in ~/.bashrc
      source <(connectctl completion zsh)           in ~/.zshrc, after compinit
      connectctl completion fish | source           in ~/.config/fish/config.fish

    Names of connectors, plugins, loggers and transactional ids are read from the cluster of the
    current context, which takes about a second at most, and are kept for ten seconds.
    """
    terminal.standard_output().write((SCRIPTS / FILES[shell]).read_text())
