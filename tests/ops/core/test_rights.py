"""Every command has its row of rights, every right an edge that needs it, and the page says what
the table says.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
import typer
from connectctl.cli.main import app
from connectctl.ops.clients import protocols
from connectctl.ops.core.rights import COMMANDS, Effect, Name, Need, needs_of
from connectctl.ops.kafka.acls import Resource

PAGE = Path(__file__).parents[3] / "docs" / "rights.md"
EVERY = [need for needs in COMMANDS.values() for need in needs]


def commands(made: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Every command that can be typed."""
    if not hasattr(made, "list_commands"):
        yield " ".join(path)
        return
    ctx = typer.Context(made)
    for name in made.list_commands(ctx):
        yield from commands(made.get_command(ctx, name), (*path, name))


def test_every_command_has_a_row_and_every_row_is_a_command() -> None:
    assert sorted(COMMANDS) == sorted(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("call", sorted({need.call for need in EVERY}))
def test_every_right_has_a_call_of_a_client(call: str) -> None:
    *module, owner, method = call.split(".")
    clients = import_module(f"connectctl.ops.clients.{'.'.join(module)}") if module else protocols
    assert callable(getattr(getattr(clients, owner), method))


def test_every_name_is_of_one_kind_of_resource() -> None:
    kinds: dict[Name, set[Resource]] = {}
    for need in EVERY:
        kinds.setdefault(need.name, set()).add(need.resource)
    assert {name: kind for name, kind in kinds.items() if len(kind) > 1} == {}
    assert set(kinds) == set(Name)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_right_counts_once_and_what_refuses_goes_before_what_hides(command: str) -> None:
    found = list(needs_of(command))
    assert len({(n.operation, n.resource, n.name) for n in found}) == len(found)
    refuses = {
        (n.operation, n.resource, n.name) for n in COMMANDS[command] if n.effect is Effect.REFUSED
    }
    assert {
        (n.operation, n.resource, n.name) for n in found if n.effect is Effect.REFUSED
    } == refuses


def test_every_right_says_what_is_missing_without_it() -> None:
    def told(need: Need) -> bool:
        return len(need.without) > 3 and not need.without.endswith(".")

    assert all(map(told, EVERY))


def test_the_page_is_made_from_the_table() -> None:
    made = run_path(str(PAGE.parent / "site" / "made_pages.py"))
    assert PAGE.read_text() == made["rights"](), "python docs/site/made_pages.py"
