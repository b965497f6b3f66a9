"""Every operation on source offsets, broken at every call of an edge, and taken up again: it comes
to the same end.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from connectctl.cli import apply
from connectctl.ops.core.journal import Journal, RunState
from depth import DEEP, deep, strided
from fakes.kafkawrites import Faults
from fakes.memory import directory_in_memory
from fakes.offsetworld import World, resume_line

NEW = json.dumps(
    {
        "offsets": [
            {"partition": {"table": t}, "offset": {"lsn": n}} for t, n in (("a", 100), ("new", 101))
        ]
    }
)
PART_DONE = 7


@dataclass(frozen=True)
class Operation:
    """A command, and what was done before it."""

    args: tuple[str, ...]
    stdin: str | None = None
    before: Callable[[World], tuple[str, ...]] = lambda world: ()


def reset_before(world: World) -> tuple[str, ...]:
    """A run to undo."""
    return ("offsets", "undo", done(world, "offsets", "reset", "moved", "--stop"), "--stop")


def move_before(world: World) -> tuple[str, ...]:
    """A run that gave a connector its own topic."""
    run = done(
        world, "offsets", "merge", "plain", "--into", "dedicated", "--topic", "fresh", "--stop"
    )
    return ("offsets", "undo", run, "--stop")


def set_both_before(world: World) -> tuple[str, ...]:
    """A run that changed two connectors."""
    run = done(world, "offsets", "merge", "moved", "--into", "global", "--unset-topic", "--stop")
    return ("offsets", "undo", run, "--stop")


def backup_before(world: World) -> tuple[str, ...]:
    """A backup, and everything deleted after it."""
    path = world.journal.parent / "saved.jsonl"
    assert world.run("offsets", "backup", "moved", "--out", str(path)).exit_code == 0
    done(world, "offsets", "reset", "moved", "--stop")
    return ("offsets", "restore", "moved", "-f", str(path), "--stop")


def done(world: World, *args: str) -> str:
    result = world.run(*args, "--yes", "-o", "json")
    assert result.exit_code == 0, result.stderr
    return str(json.loads(result.stdout)["run"])


OPERATIONS = {
    "seed a new topic": Operation(
        ("offsets", "merge", "plain", "--into", "dedicated", "--topic", "fresh", "--stop")
    ),
    "seed the configured topic": Operation(
        ("offsets", "merge", "moved", "--into", "dedicated", "--stop")
    ),
    "bring back": Operation(
        ("offsets", "merge", "moved", "--into", "global", "--unset-topic", "--stop")
    ),
    "copy to a new connector": Operation(("offsets", "copy", "moved", "unborn")),
    "copy over another": Operation(("offsets", "copy", "plain", "moved", "--stop")),
    "copy from a deleted one": Operation(("offsets", "copy", "old", "plain", "--stop")),
    "set": Operation(("offsets", "set", "moved", "-f", "-", "--stop"), NEW),
    "set through the workers": Operation(
        ("offsets", "set", "moved", "-f", "-", "--stop", "--via", "rest"), NEW
    ),
    "reset": Operation(("offsets", "reset", "moved", "--stop")),
    "reset one": Operation(
        ("offsets", "reset", "plain", "--partition", '{"table": "a"}', "--stop")
    ),
    "reset through the workers": Operation(
        ("offsets", "reset", "plain", "--stop", "--via", "rest")
    ),
    "restore": Operation((), None, backup_before),
    "undo a reset": Operation((), None, reset_before),
    "undo a seeding": Operation((), None, move_before),
    "undo a bringing back": Operation((), None, set_both_before),
}


def begin(operation: Operation, directory: Path, faults: Faults) -> tuple[World, tuple[str, ...]]:
    """A new world in which ``operation`` is about to be run."""
    directory.mkdir()
    world = World(directory / "journal")
    args = operation.before(world) or operation.args
    world.state()
    world.faults = faults
    return world, args


WRITES = ("transact", "create_topic", "send")


@pytest.fixture
def directory() -> Iterator[Path]:
    with directory_in_memory() as path:
        yield path


@cache
def undisturbed(operation: Operation) -> tuple[Any, list[str]]:
    """How the world ends, and the calls of edges on the way."""
    with directory_in_memory() as directory:
        world, args = begin(operation, directory / "undisturbed", Faults())
        result = world.run(*args, "--yes", stdin=operation.stdin)
        assert result.exit_code == 0, result.stderr
        return world.state(), world.faults.calls


def _some(calls: list[str], stride: int) -> list[int]:
    """All calls that write, and one of ``stride`` others."""
    writes = [n for n, call in enumerate(calls, 1) if call in WRITES]
    return sorted({*writes, *strided(calls, stride)})


@pytest.mark.parametrize("how", ["before", "after", "for ever"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_broken_anywhere_it_says_so_and_comes_to_the_same_end(
    name: str, how: str, directory: Path
) -> None:
    operation = OPERATIONS[name]
    expected, calls = undisturbed(operation)
    chosen = {
        "before": _some(calls, deep(1, 20)),
        "after": [n for n, call in enumerate(calls, 1) if call in WRITES],
        "for ever": range(2, len(calls) + 1, deep(5, 15)),
    }[how]
    part_done = 0
    for n in chosen:
        world, args = begin(
            operation, directory / str(n), Faults(n, how == "after", how == "for ever")
        )
        before = world.state()
        result = world.run(*args, "--yes", stdin=operation.stdin)
        broken, world.faults = world.faults.fired, Faults()
        where = f"call {n}, {broken}: exit {result.exit_code}, {result.stderr}"
        assert broken, where
        if result.exit_code == PART_DONE:
            part_done += 1
            run = resume_line(result)
            assert run, where
            result = world.run("runs", "resume", run, "--yes")
            assert result.exit_code == 0, f"{where}, then {result.stderr}"
        elif result.exit_code != 0:
            assert world.state() == before, where
            result = world.run(*args, "--yes", stdin=operation.stdin)
            assert result.exit_code == 0, f"{where}, then {result.stderr}"
        assert world.state() == expected, where
    # Of all calls some are within the run; of those that a commit draws there may be none.
    if how == "for ever" or len(chosen) == len(calls):
        assert part_done


@pytest.mark.parametrize("name", OPERATIONS)
def test_broken_twice_it_still_comes_to_the_same_end(name: str, directory: Path) -> None:
    operation = OPERATIONS[name]
    expected, calls = undisturbed(operation)
    writes = [n for n, call in enumerate(calls, 1) if call in WRITES]
    for n, m in itertools.product(writes, (6, 20, 33) if DEEP else (20,)):
        world, args = begin(operation, directory / f"{n}-{m}", Faults(n, after=True))
        result = world.run(*args, "--yes", stdin=operation.stdin)
        if result.exit_code != PART_DONE:
            continue
        run = str(resume_line(result))
        world.faults = Faults(m)
        world.run("runs", "resume", run, "--yes")
        world.faults = Faults()
        again = world.run("runs", "resume", run, "--yes")
        assert again.exit_code == 0 or "nothing to resume" in again.stderr, again.stderr
        assert world.state() == expected, (n, m)


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_was_broken_can_be_taken_back_instead(name: str, directory: Path) -> None:
    operation = OPERATIONS[name]
    _, calls = undisturbed(operation)
    for n in range(len(calls) // 3, len(calls) + 1, deep(3, 9)):
        world, args = begin(operation, directory / str(n), Faults(n, after=True))
        before = world.state()
        result = world.run(*args, "--yes", stdin=operation.stdin)
        world.faults = Faults()
        run = resume_line(result)
        if run is None:
            continue
        world.state()  # what the workers were told to do has come true
        undone = world.run("offsets", "undo", run, "--stop", "--yes")
        if "saved no offsets" in undone.stderr:
            continue
        assert undone.exit_code == 0, undone.stderr
        after = world.state()
        assert after["records"] == before["records"], n
        assert {k: v[2] for k, v in after["connectors"].items()} == {
            k: v[2] for k, v in before["connectors"].items()
        }
        assert Journal(world.journal).get(run).state is RunState.UNDONE
        refused = world.run("runs", "resume", run, "--yes")
        assert refused.exit_code == 4


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_saved_plan_comes_to_the_same_end_once_and_is_stale_afterwards(
    name: str, directory: Path
) -> None:
    operation = OPERATIONS[name]
    expected, _ = undisturbed(operation)
    world, args = begin(operation, directory / "saved", Faults())
    plan = world.run(*args, "--dry-run", "-o", "json", stdin=operation.stdin).stdout
    before = world.state()
    typed = world.run("runs", "apply", "-", "--yes", "-o", "json", stdin=plan)
    assert typed.exit_code == 0, typed.stderr
    assert world.state() == expected != before
    run = Journal(world.journal).get(json.loads(typed.stdout)["run"])
    assert (run.operation, run.state) == (json.loads(plan)["operation"], RunState.DONE)
    assert Journal(world.journal).plan(run.id)["digest"] == json.loads(plan)["digest"]
    again = world.run("runs", "apply", "-", "--yes", stdin=plan)
    assert (again.exit_code, "The plan is stale" in again.stderr) == (4, True), again.output
    assert world.state() == expected


def test_a_saved_plan_is_stale_where_the_offsets_moved_on(directory: Path) -> None:
    world, _ = begin(OPERATIONS["set"], directory / "moved", Faults())
    world.run("connectors", "stop", "moved", "--yes", "--wait")
    plan = world.run("offsets", "reset", "moved", "--dry-run", "-o", "json").stdout
    world.put("own", '["moved",{"table":"a"}]', '{"lsn":50}')
    before = world.state()
    stale = world.run("runs", "apply", "-", "--yes", stdin=plan)
    assert (stale.exit_code, "its inputs have changed" in stale.stderr) == (4, True), stale.output
    assert world.state() == before


@pytest.mark.parametrize(("committed", "number"), [((50,), 1), ((50, 60), 2)])
def test_what_somebody_commits_of_a_stopped_connector_before_the_answer_is_refused_with_the_number(
    directory: Path, monkeypatch: pytest.MonkeyPatch, committed: tuple[int, ...], number: int
) -> None:
    world, _ = begin(OPERATIONS["reset"], directory / "moved", Faults())
    world.run("connectors", "stop", "moved", "--yes", "--wait")

    def commit(*args: object, **more: object) -> None:
        for table, offset in zip("ab", committed, strict=False):
            world.put("own", f'["moved",{{"table":"{table}"}}]', f'{{"lsn":{offset}}}')
        world.put("own", '["another",{"table":"a"}]', '{"lsn":50}')

    monkeypatch.setattr(apply, "confirm", commit)
    refused = world.run("offsets", "reset", "moved")
    assert refused.exit_code == 4, refused.output
    some = f"{number} source partition{'s' if number > 1 else ''}"
    assert f"{some} of moved moved since the plan was made; nothing was written" in refused.stderr


def test_a_plan_that_restores_what_another_journal_keeps_says_so(directory: Path) -> None:
    world, args = begin(OPERATIONS["restore"], directory / "here", Faults())
    plan = world.run(*args, "--dry-run", "-o", "json").stdout
    world.journal = directory / "there"
    refused = world.run("runs", "apply", "-", "--yes", stdin=plan)
    assert (refused.exit_code, "cannot be read" in refused.stderr) == (2, True), refused.output
