"""Switches of a stream application killed or broken at every call of an edge, and taken up: the
same end, each time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.kafka.streams_eos import PER_PARTITION, V2
from depth import deep, strided
from fakes.applicationworld import NAME, ApplicationWorld
from fakes.memory import directory_in_memory
from fakes.rollingworld import Faults, Killed

PART_DONE = 7
OLD = 6
SWITCHES: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "up": ((PER_PARTITION, PER_PARTITION), {}, "group-aware-producers"),
    "up from 2.5": ((PER_PARTITION, PER_PARTITION), {"protocol": OLD}, "group-aware-producers"),
    "back": ((V2, V2), {}, "per-partition-producers"),
}


@pytest.fixture
def directory() -> Iterator[Path]:
    with directory_in_memory() as path:
        yield path


def apply(world: ApplicationWorld, migration: str, *more: str) -> Any:
    which = ("--migration", migration, "--set", f"application={NAME}")
    return world.run("upgrade", "apply", *which, *more, "--yes", "--gate-checks", "1")


@cache
def undisturbed(name: str) -> tuple[dict[str, str], list[str]]:
    values, more, migration = SWITCHES[name]
    with directory_in_memory() as directory:
        world = ApplicationWorld.running(directory / "undisturbed", *values, **more)
        result = apply(world, migration)
    assert result.exit_code == 0, result.stderr
    assert world.violations == []
    return world.values(), world.faults.calls


def chosen(calls: list[str]) -> list[int]:
    changing = [n for n, call in enumerate(calls, 1) if call in ("change", "restart", "fence")]
    return sorted({*changing, *strided(calls, deep(11, 33))})


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", SWITCHES)
def test_killed_anywhere_a_switch_is_taken_up_and_comes_to_the_same_end(
    name: str, after: bool, directory: Path
) -> None:
    values, more, migration = SWITCHES[name]
    expected, calls = undisturbed(name)
    for n in chosen(calls):
        world = ApplicationWorld.running(
            directory / str(n), *values, faults=Faults(n, after=after), **more
        )
        with pytest.raises(Killed):
            apply(world, migration)
        struck, world.faults = world.faults.calls[-1], Faults()
        result = world.run("upgrade", "resume", "--yes", "--gate-checks", "1")
        if "This cluster has no unfinished upgrade" in result.stderr:
            result = apply(world, migration)
        assert result.exit_code == 0, f"call {n}, {struck}: {result.stderr}"
        assert (world.values(), world.violations) == (expected, []), f"call {n}, {struck}"


@pytest.mark.parametrize("name", SWITCHES)
def test_an_edge_that_breaks_once_stops_the_switch_at_most(name: str, directory: Path) -> None:
    values, more, migration = SWITCHES[name]
    expected, calls = undisturbed(name)
    for n in chosen(calls):
        world = ApplicationWorld.running(
            directory / str(n), *values, faults=Faults(n, kills=False), **more
        )
        result = apply(world, migration)
        struck = world.faults.calls[n - 1]
        if result.exit_code == PART_DONE:
            result = world.run("upgrade", "resume", "--yes", "--gate-checks", "1")
        elif result.exit_code:
            assert world.history == [], f"call {n}, {struck}"
            result = apply(world, migration)
        assert result.exit_code == 0, f"call {n}, {struck}: {result.stderr}"
        assert (world.values(), world.violations) == (expected, []), f"call {n}, {struck}"


def test_a_switch_that_stopped_half_way_is_taken_back(directory: Path) -> None:
    world = ApplicationWorld.running(directory, PER_PARTITION, PER_PARTITION)
    result = apply(world, "group-aware-producers", "--pause-after", "5")
    assert result.exit_code == 0, result.stderr
    assert world.values() == {"x:1": V2, "x:2": PER_PARTITION}
    result = world.run("upgrade", "abort", "--yes", "--gate-checks", "1")
    assert result.exit_code == 0, result.stderr
    assert (set(world.values().values()), world.violations) == ({PER_PARTITION}, [])
    assert json.loads(world.run("upgrade", "status", "-o", "json").stdout)["unfinished"] is False


def test_an_instance_that_comes_back_with_the_old_release_stops_the_first_roll(
    directory: Path,
) -> None:
    world = ApplicationWorld.running(directory, PER_PARTITION, PER_PARTITION, protocol=OLD)
    world.instances["x:1"].next = OLD
    result = apply(world, "group-aware-producers")
    assert result.exit_code == PART_DONE
    assert "it is Kafka Streams 2.5" in result.stderr
    assert set(world.values().values()) == {PER_PARTITION}
    world.instances["x:1"].next = 11
    world.restart_instance("x:1")
    result = world.run("upgrade", "resume", "--yes", "--gate-checks", "1")
    assert result.exit_code == 0, result.stderr
    assert (set(world.values().values()), world.violations) == ({V2}, [])


def test_an_instance_that_stays_away_stops_the_roll_and_the_other_goes_on(directory: Path) -> None:
    world = ApplicationWorld.running(directory, PER_PARTITION, PER_PARTITION)
    world.instances["x:1"].stays_away = True
    result = apply(world, "group-aware-producers", "--gate-timeout", "5")
    assert result.exit_code == PART_DONE
    assert "x:1 is not back after 5 s" in result.stderr
    assert world.values() == {"x:2": PER_PARTITION}


def test_an_application_that_commits_nothing_is_not_touched(directory: Path) -> None:
    world = ApplicationWorld.running(directory, PER_PARTITION, PER_PARTITION, stuck=True)
    result = world.run(
        "upgrade", "apply", "--migration", "group-aware-producers", "--set", f"application={NAME}", "--yes",
        "--gate-timeout", "20",
    )  # fmt: skip
    assert result.exit_code == 4, result.stderr
    assert "is not healthy; nothing was changed" in result.stderr
    assert world.history == []


@pytest.mark.parametrize("servers", [True, False], ids=["with application.server", "without"])
def test_leftovers_are_fenced_and_nobody_who_lives(directory: Path, servers: bool) -> None:
    world = ApplicationWorld.running(directory, PER_PARTITION, PER_PARTITION, servers=servers)
    world.ids |= {f"{NAME}-0_7", f"{NAME}-2-0_7", "totals2-0_0"}
    world.opened |= {f"{NAME}-0_7"}
    result = apply(world, "group-aware-producers")
    assert result.exit_code == 0, result.stderr
    assert set(world.fenced) == {f"{NAME}-0_0", f"{NAME}-0_1", f"{NAME}-0_7"}
    assert (world.opened, world.violations) == (set(), [])
