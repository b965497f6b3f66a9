"""``connectctl completion``: the scripts that make TAB work.

The scripts are static and ask the program for candidates, in one protocol for all three shells (that of Typer's fish
class: a candidate and its help per line). ``completions/`` holds the same scripts for packagers; a test compares them.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True)

ASK = "_CONNECTCTL_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args"

SCRIPTS = {
    "bash": f"""\
# bash completion for connectctl: source <(connectctl completion bash)
_connectctl() {{
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("${{line%%$'\\t'*}}")
    done < <({ASK} \\
        _TYPER_COMPLETE_ARGS="${{COMP_LINE:0:COMP_POINT}}" "$1" 2>/dev/null)
}}
complete -o default -F _connectctl connectctl
""",
    "zsh": f"""\
#compdef connectctl
# zsh completion for connectctl: source <(connectctl completion zsh), or this file as _connectctl in $fpath
_connectctl() {{
    local line value
    local -a found
    while IFS= read -r line; do
        value=${{line%%$'\\t'*}}
        if [[ $line == *$'\\t'* ]]; then
            found+=("${{value//:/\\\\:}}:${{line#*$'\\t'}}")
        else
            found+=("${{value//:/\\\\:}}")
        fi
    done < <({ASK} \\
        _TYPER_COMPLETE_ARGS="${{words[1,CURRENT]}}" $words[1] 2>/dev/null)
    if (( $#found )); then
        _describe connectctl found
    else
        _files
    fi
}}
if [[ $funcstack[1] == _connectctl ]]; then
    _connectctl "$@"
else
    compdef _connectctl connectctl
fi
""",
    "fish": f"""\
# fish completion for connectctl: connectctl completion fish | source
function __connectctl_candidates
    env {ASK} _TYPER_COMPLETE_ARGS=(commandline -cp) connectctl 2>/dev/null
end
complete --command connectctl --arguments "(__connectctl_candidates)"
""",
}
FILES = {"bash": "connectctl", "zsh": "_connectctl", "fish": "connectctl.fish"}


class Shell(StrEnum):
    """The shells that have a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish")]) -> None:
    """Print the completion script of a shell.

    \b
    Examples:
      source <(connectctl completion bash)          in ~/.bashrc
      source <(connectctl completion zsh)           in ~/.zshrc, after compinit
      connectctl completion fish | source           in ~/.config/fish/config.fish

    Names of connectors are asked of the cluster of the current context, for at most about a second.
    """
    sys.stdout.write(SCRIPTS[shell.value])
