"""Rolls killed or broken at every call of an edge, and taken up again: the same end, and no promise
broken on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.operations.rolling import waiting
from depth import deep, strided
from fakes.inline import without_threads
from fakes.memory import directory_in_memory
from fakes.rollingworld import Faults, Killed, RollingWorld

PART_DONE = 7
POLL = 2.0
"""Seconds between two polls: a gate takes five, on a clock that only sleeping moves."""
ROLLS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "up": (("disabled", "disabled"), ("--to", "enabled")),
    "down": (("enabled", "enabled"), ("--to", "disabled")),
    "straight down": (("enabled", "enabled"), ("--migration", "soft-downgrade")),
    "the rest of a half one": (("preparing", "disabled", "preparing"), ("--to", "enabled")),
}


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    without_threads(monkeypatch)
    monkeypatch.setattr(waiting, "POLL", POLL)
    with directory_in_memory() as path:
        yield path


def apply(world: RollingWorld, *args: str) -> Any:
    return world.run("upgrade", "apply", *args, "--yes", "--gate-checks", "1")


STRIDE = deep(6, 24)


def chosen(calls: list[str]) -> list[int]:
    """Calls to strike at: all that change a worker, and one of ``STRIDE`` others."""
    changing = [n for n, call in enumerate(calls, 1) if call in ("change", "restart")]
    return sorted({*changing, *strided(calls, STRIDE)})


@cache
def undisturbed(name: str) -> tuple[dict[str, Any], list[str]]:
    modes, args = ROLLS[name]
    with directory_in_memory() as directory:
        world = RollingWorld.of(directory / "undisturbed", *modes)
        result = apply(world, *args)
    assert result.exit_code == 0, result.stderr
    assert world.violations == []
    return world.modes(), world.faults.calls


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", ROLLS)
def test_killed_anywhere_a_roll_is_taken_up_and_comes_to_the_same_end(
    name: str, after: bool, directory: Path
) -> None:
    modes, args = ROLLS[name]
    expected, calls = undisturbed(name)
    for n in chosen(calls):
        world = RollingWorld.of(directory / str(n), *modes, faults=Faults(n, after=after))
        with pytest.raises(Killed):
            apply(world, *args)
        struck, world.faults = world.faults.calls[-1], Faults()
        result = world.run("upgrade", "resume", "--yes")
        if (
            "nothing-to-resume" in result.stderr
            or "This cluster has no unfinished upgrade" in result.stderr
        ):
            result = apply(world, *args)
        assert result.exit_code == 0, f"call {n}, {struck}: {result.stderr}"
        assert (world.modes(), world.violations) == (expected, []), f"call {n}, {struck}"


@pytest.mark.parametrize("name", ROLLS)
def test_an_edge_that_breaks_once_stops_the_roll_at_most(name: str, directory: Path) -> None:
    modes, args = ROLLS[name]
    expected, calls = undisturbed(name)
    for n in chosen(calls):
        world = RollingWorld.of(directory / str(n), *modes, faults=Faults(n, kills=False))
        result = apply(world, *args)
        struck = world.faults.calls[n - 1]
        if result.exit_code == PART_DONE:
            assert "connectctl upgrade resume" in result.stderr
            result = world.run("upgrade", "resume", "--yes")
        elif result.exit_code:
            assert world.history == [], f"call {n}, {struck}"
            result = apply(world, *args)
        assert result.exit_code == 0, f"call {n}, {struck}: {result.stderr}"
        assert (world.modes(), world.violations) == (expected, []), f"call {n}, {struck}"


def test_killed_anywhere_a_roll_can_be_taken_back(directory: Path) -> None:
    _, calls = undisturbed("up")
    for n in chosen(calls):
        world = RollingWorld.of(directory / str(n), "disabled", "disabled", faults=Faults(n))
        with suppress(Killed):
            apply(world, "--to", "enabled")
        world.faults = Faults()
        result = world.run("upgrade", "abort", "--yes")
        if result.exit_code == 4:
            assert "This cluster has no unfinished upgrade" in result.stderr
        else:
            assert result.exit_code == 0, f"call {n}: {result.stderr}"
        assert set(world.modes().values()) == {"disabled"}, f"call {n}"
        assert [w.file for w in world.workers.values()] == ["disabled", "disabled"], f"call {n}"
        assert world.violations == []
