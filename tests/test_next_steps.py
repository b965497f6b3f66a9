"""A command that connectctl prints is one that it has, and works where it is printed.

Every name and option in the texts of the code exists. ``nextsteps.txt`` has a row for each next
step: the test whose situation prints it, in which it is then run (``nextsteps.py``); or a command
that is run in a cluster in memory; or the reason why neither is possible.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer
from connectctl.cli.main import app
from connectctl.ops.connect import target_state_wait
from fakes.adminworkers import AdminWorkers
from fakes.adminworkers import run as admin
from fakes.clusters import Clusters
from nextsteps import table, without_prose
from promised import HOLE, is_prose, promised
from sources import ROOT


def problem(words: list[str]) -> str | None:
    """Why connectctl has no such command; None where it has one, and the options in it."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("connectctl", [], resilient_parsing=True)
    used: list[str] = []
    shared = {name for parameter in command.params for name in parameter.opts} | {"--help", "-h"}
    for word in words:
        options = {
            name for each in command.params for name in (*each.opts, *each.secondary_opts)
        } | shared
        if word.startswith("-") and len(word) > 1:
            if word.split("=")[0] not in options:
                return f"{' '.join(used)} has no option {word}"
        elif HOLE in word or not hasattr(command, "get_command"):
            if hasattr(command, "get_command") and used:
                return None  # a command by its name in a variable
        elif command.name == "run" and (word not in command.commands):
            command = command.get_command(context, "job")
        else:
            missing = [
                name for name in word.split("|") if command.get_command(context, name) is None
            ]
            if missing:
                return f"no command {' '.join((*used, *missing))}"
            command = command.get_command(context, word.split("|")[0])
            used.append(word)
    return None


def test_texts_with_commands_are_found() -> None:
    """The collection sees what it is for: single texts, formatted ones, and those in parts."""
    assert len(promised()) > 150
    names = {" ".join(words[:2]) for _, words in promised()}
    assert {
        "connectors show",
        "connectors restart",
        "offsets undo",
        "context list",
        "plugins list",
    } <= names


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("connectors restart X1 --only-failed", None),
        ("--context X1 cluster show", None),
        ("connectors revive X1", "no command connectors revive"),
        ("connectors stop X1 --softly", "connectors stop has no option --softly"),
        ("offsets copy X1 X1 --carry-offsets", "offsets copy has no option --carry-offsets"),
    ],
)
def test_a_command_that_does_not_exist_is_a_problem(words: str, why: str | None) -> None:
    assert problem(words.split()) == why


def test_every_command_in_a_text_exists_with_its_options() -> None:
    named = [each for each in promised() if not is_prose(each[1])]
    assert [(where, words, why) for where, words in named if (why := problem(words))] == []


TABLE = table()
IN_WORLD = re.compile(r"in (plain|offsets|rolling): (.+)")
NAMED_TEST = re.compile(r"tests/[\w/]+\.py(?:::(\w+))?")


def test_every_next_step_has_a_row_and_every_row_a_next_step() -> None:
    steps = {
        " ".join(without_prose(words) or words) for _, words in promised() if not is_prose(words)
    }
    assert (sorted(steps - TABLE.keys()), sorted(TABLE.keys() - steps)) == ([], [])
    rows = TABLE.values()
    run, followed = (
        [r for r in rows if IN_WORLD.match(r)],
        [r for r in rows if r.startswith("tests/") and "::" in r],
    )
    others = {step: why for step, why in TABLE.items() if why not in run and why not in followed}
    print(
        f"\n{len(TABLE)} next steps: {len(followed)} followed where they are printed, {len(run)} "
        "run in a cluster in memory"
    )
    print("\n".join(f"not run: {step}: {why}" for step, why in sorted(others.items())))
    assert len(others) <= 30


@pytest.mark.parametrize("row", [row for row in TABLE.values() if NAMED_TEST.search(row)])
def test_a_test_that_a_row_names_exists(row: str) -> None:
    for named in NAMED_TEST.finditer(row):
        path = ROOT / named.group(0).partition("::")[0]
        assert path.is_file()
        assert named.group(1) is None or f"def {named.group(1)}(" in path.read_text()


@pytest.mark.parametrize("step", [step for step, row in TABLE.items() if IN_WORLD.match(row)])
def test_a_next_step_works_in_a_cluster_in_memory(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_state_wait, "STEADY", 0.0)
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    at, found = Clusters(tmp_path), IN_WORLD.match(TABLE[step])
    assert found is not None
    world, line = found.groups()
    if "{run}" in line:
        at.plain.change("fence", "--yes")
        line = line.replace("{run}", at.last_run())
    file = at.file("o.json", '[{"partition": {"table": "a"}, "offset": {"lsn": 9}}]')
    args = line.format(directory=tmp_path, offsets=file).split()
    pattern = re.sub(r"X1|\b[A-Z]{2,}\b", "X1", step).split()
    assert problem(pattern) is None
    options = {word for word in pattern if word.startswith("--")}
    assert {word for word in args if word.startswith("--")} >= options
    reads = (
        args[0] in ("doctor", "preflight", "validate") or args[1] in READS or "--explain" in args
    )
    args += [] if reads else ["--yes"]
    if args[0] == "loggers":
        result = admin(AdminWorkers(), *args)
    else:
        worlds: dict[str, Any] = {"plain": at.plain, "offsets": at.offsets, "rolling": at.rolling}
        result = worlds[world].run(*args)
    assert result.exit_code in ((0, 1) if args[0] in ("doctor", "preflight") else (0,)), (
        result.output
    )


READS = frozenset(("backup", "diff", "get", "hanging", "history", "lag", "list", "plan", "show"))
"""Commands that ask for no confirmation."""
