"""Every plan on a connector that runs, beside what the connector commits meanwhile: nothing twice,
nothing lost, or refused.

``-s`` prints the table: how many records would be written twice, and what the command answered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from connectctl.ops.core.journal import Journal, RunState
from fakes.countingsource import (
    STEP,
    CountingSource,
    after_the_stop,
    after_the_write,
    answered_late,
    before_the_stop,
    broken_off,
)
from fakes.memory import directory_in_memory
from fakes.offsetworld import World, resume_line
from typer.testing import Result

TO_OWN = ("merge", "plain", "--into", "dedicated", "--topic", "fresh", "--stop")
TO_GLOBAL = ("merge", "plain", "--into", "global", "--unset-topic", "--stop")
GIVEN = json.dumps({"offsets": [{"partition": {"table": t}, "offset": {"lsn": 7}} for t in "ab"]})


@dataclass(frozen=True)
class Change:
    """A change of offsets; ``before`` are changes that were made earlier, ``given`` where the user
    wants it to start.

    ``equal``: nothing was committed since those.
    """

    args: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    given: int | None = None
    stdin: str | None = None
    equal: bool = False


CHANGES = {
    "merge into dedicated": Change(TO_OWN),
    "merge into dedicated again": Change(TO_OWN, (TO_OWN, TO_GLOBAL)),
    "merge into an equal topic": Change(TO_OWN, (TO_OWN, TO_GLOBAL), equal=True),
    "merge into global": Change(TO_GLOBAL, (TO_OWN,)),
    "merge newest": Change((*TO_OWN, "--policy", "newest"), (TO_OWN, TO_GLOBAL)),
    "merge dedicated by choice": Change(
        (*TO_OWN, "--policy", "dedicated"), (TO_OWN, TO_GLOBAL), equal=True
    ),
    "merge all": Change(
        ("merge", "plain", "moved", "--into", "global", "--unset-topic", "--stop"), (TO_OWN,)
    ),
    "copy from it": Change(("copy", "plain", "unborn")),
    "set": Change(("set", "plain", "-f", "-", "--stop"), given=7, stdin=GIVEN),
    "set through the workers": Change(
        ("set", "plain", "-f", "-", "--stop", "--via", "rest"), given=7, stdin=GIVEN
    ),
    "reset": Change(("reset", "plain", "--stop"), given=0),
    "restore": Change(("restore", "plain", "-f", "{backup}", "--stop"), given=1),
    "undo a merge": Change(("undo", "{run}", "--stop"), (TO_OWN,)),
    "undo a merge back": Change(("undo", "{run}", "--stop"), (TO_OWN, TO_GLOBAL)),
    "undo a set": Change(
        ("undo", "{run}", "--stop"), (("set", "plain", "-f", "-", "--stop"),), stdin=GIVEN
    ),
}
"""The rows of the table."""
Window = Callable[[CountingSource], AbstractContextManager[None]]
WINDOWS: dict[str, Window] = {
    "between plan and answer": answered_late,
    "between answer and stop": before_the_stop,
    "after the stop, by a zombie": after_the_stop,
    "after the write, by a zombie": after_the_write,
}


@pytest.fixture
def directory() -> Iterator[Path]:
    with directory_in_memory() as path:
        yield path


def prepared(change: Change, directory: Path) -> tuple[CountingSource, tuple[str, ...]]:
    world = World(directory / "journal")
    source, run = CountingSource(world), ""
    backup = directory / "backup.jsonl"
    assert world.run("offsets", "backup", "plain", "--out", str(backup)).exit_code == 0
    for args in change.before:
        done = world.run("offsets", *args, "--yes", "-o", "json", stdin=change.stdin)
        assert done.exit_code == 0, done.stderr
        run = json.loads(done.stdout)["run"]
        world.state()
    if "undo" in change.args:
        source.written = source.starts()
    elif not change.equal:
        source.commit()
    assert source.twice() == 0
    return source, ("offsets", *(word.format(backup=backup, run=run) for word in change.args))


def last_run(source: CountingSource) -> str:
    return Journal(source.world.journal).runs()[0].id


def told(name: str, window: str, source: CountingSource, result: Result) -> None:
    said = "refused" if result.exit_code else "done"
    why = re.search(r"\d+ (source partition|partition)s?|committed offsets", result.stderr)
    print(f"{name:28} {window:32} {said:8} twice {source.twice():4}  {why[0] if why else ''}")


def check(change: Change, source: CountingSource, result: Result, late: int = 0) -> None:
    """Nothing twice and nothing lost, or what the user gave; where it is refused, as it was, with
    the number.

    A copy has what was committed when it was made, but not the ``late`` records of each table that
    came after it.
    """
    if result.exit_code == 0 and change.given is not None:
        assert {source.starts().get(table, 0) for table in source.written} <= {
            change.given,
            change.given + 1,
        }
        return
    if change.args[0] == "copy" and result.exit_code == 0:
        assert source.starts_of("unborn", "off") == {
            table: count - late for table, count in source.written.items()
        }
        return
    assert source.twice() == 0, f"{result.exit_code}: {result.output}{result.stderr}"
    if result.exit_code:
        assert re.search(r"\d+ source partition|Verification failed", result.stderr), result.stderr


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", CHANGES)
def test_what_is_committed_meanwhile_is_neither_lost_nor_written_twice(
    name: str, window: str, directory: Path
) -> None:
    change = CHANGES[name]
    source, args = prepared(change, directory)
    committed = source.commits
    with WINDOWS[window](source):
        result = source.world.run(*args, "--yes", stdin=change.stdin)
    told(name, window, source, result)
    check(change, source, result, STEP if "after the write" in window else 0)
    if result.exit_code and source.commits > committed and "zombie" not in window:
        assert source.state == "RUNNING", result.stderr


@pytest.mark.parametrize(
    "name", [name for name, change in CHANGES.items() if "--stop" in change.args]
)
def test_what_is_committed_between_an_interruption_and_the_resume_is_not_written_twice(
    name: str, directory: Path
) -> None:
    change = CHANGES[name]
    source, args = prepared(change, directory)
    with broken_off(source):
        broken = source.world.run(*args, "--yes", stdin=change.stdin)
    run = resume_line(broken)
    assert run, broken.stderr
    source.resume()
    source.commit()
    result = source.world.run("runs", "resume", run, "--yes")
    told(name, "between interruption and resume", source, result)
    check(change, source, result)
    if result.exit_code or change.given is not None:
        return
    source.resume()
    undone = source.world.run("offsets", "undo", run, "--stop", "--yes")
    told(name, "… and undone at once", source, undone)
    check(replace(change, given=None), source, undone)


@pytest.mark.parametrize(
    "name", [name for name, change in CHANGES.items() if "undo" not in change.args]
)
def test_what_is_committed_between_a_run_and_its_undo_is_not_written_twice(
    name: str, directory: Path
) -> None:
    change = CHANGES[name]
    source, args = prepared(change, directory)
    done = source.world.run(*args, "--yes", stdin=change.stdin)
    assert done.exit_code == 0, done.stderr
    if change.args[0] == "copy":
        source.world.workers.send(
            "POST", "/connectors", {"name": "unborn", "config": {"connector.class": "x.y.Source"}}
        )
        source = CountingSource(source.world, "unborn")
    source.world.state()
    source.written = source.starts() or source.written
    source.commit()
    undone = source.world.run("offsets", "undo", last_run(source), "--stop", "--yes")
    told(name, "between a run and its undo", source, undone)
    check(replace(change, given=None, args=("undo",)), source, undone)
    assert source.state == "RUNNING"


def test_an_undo_with_nothing_committed_since_restores_what_was(directory: Path) -> None:
    source, args = prepared(CHANGES["set"], directory)
    before = source.starts()
    assert source.world.run(*args, "--yes", stdin=GIVEN).exit_code == 0
    undone = source.world.run("offsets", "undo", last_run(source), "--stop", "--yes")
    assert undone.exit_code == 0, undone.stderr
    assert source.starts() == before
    assert Journal(source.world.journal).runs()[1].state is RunState.UNDONE
