"""``offsets diff`` and ``offsets backup`` take names by glob, as the other commands do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.offsetworld import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "journal")


def saved(world: World, *names: str) -> set[str]:
    result = world.run("offsets", "backup", *names)
    assert result.exit_code == 0, result.output
    return {json.loads(json.loads(line)["key"])[0] for line in result.stdout.splitlines()[1:-1]}


def test_a_backup_by_glob_has_what_matches_also_of_connectors_that_are_deleted(
    world: World,
) -> None:
    assert saved(world, "o*") == {"old", "other"}
    assert saved(world, "m*", "plain") == {"moved", "plain"}
    assert saved(world, "*") == {"moved", "old", "other", "plain"}


def test_a_glob_that_matches_nothing_is_an_error(world: World) -> None:
    for command in ("backup", "diff"):
        refused = world.run("offsets", command, "none-*")
        assert (refused.exit_code, "No connector matches none-*" in refused.stderr) == (2, True), (
            refused.output
        )


def test_a_diff_by_glob_compares_those_that_have_two_topics(world: World) -> None:
    found = json.loads(world.run("offsets", "diff", "*", "-o", "json").stdout)["differences"]
    assert {each["connector"] for each in found} == {"moved"}
    assert (
        found
        == json.loads(world.run("offsets", "diff", "moved", "-o", "json").stdout)["differences"]
    )


def test_a_diff_with_a_backup_by_glob_is_about_what_matches(world: World, tmp_path: Path) -> None:
    file = tmp_path / "backup.jsonl"
    assert world.run("offsets", "backup", "--out", str(file)).exit_code == 0
    for name in ("old", "plain"):
        world.put("off", f'["{name}",{{"table":"a"}}]', '{"lsn":99}')
    result = world.run("offsets", "diff", "-f", str(file), "o*", "-o", "json")
    assert result.exit_code == 0, result.output
    assert {each["connector"] for each in json.loads(result.stdout)["differences"]} == {"old"}


def test_a_diff_without_a_dedicated_topic_says_that_nothing_was_compared(world: World) -> None:
    world._configure("moved", world.workers.connectors["plain"].config | {"name": "moved"})
    told = world.run("offsets", "diff")
    assert (told.exit_code, "Nothing was compared: no connector has a ded" in told.stderr) == (
        0,
        True,
    ), told.output
    assert "Nothing was compared" not in world.run("offsets", "diff", "-f", str(dump(world))).stderr


def dump(world: World) -> Path:
    file = world.journal.parent / "dump.jsonl"
    assert world.run("offsets", "backup", "--out", str(file)).exit_code == 0
    return file
