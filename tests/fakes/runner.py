"""Commands in this process, many times over."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import typer.testing
from connectctl.cli.main import COMMANDS, app
from typer.main import get_command


@functools.cache
def _built(made: typer.Typer) -> Any:
    return get_command(made)


def build_commands_once() -> None:
    """Have ``CliRunner.invoke`` build a tree of commands once in a process: each time it takes as
    long as the rest.
    """
    typer.testing._get_command = _built  # type: ignore[attr-defined]


def invoke(args: Sequence[str], **given: Any) -> typer.testing.Result:
    """Carry a command out in this process."""
    return typer.testing.CliRunner().invoke(app, args, **given)


def command_at(path: tuple[str, ...]) -> Any:
    """The command or group of commands with this path."""
    command = _built(app)
    for word in path:
        command = command.get_command(None, word) if word in COMMANDS else command.commands[word]
    return command


def commands(path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of ``path`` and of all commands below it."""
    command = command_at(path)
    yield path
    for name in COMMANDS if not path else getattr(command, "commands", {}):
        yield from commands((*path, name))
