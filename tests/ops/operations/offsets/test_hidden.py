"""A dedicated offsets topic that may not be seen is named with the right, and nothing rests on its
absence.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.offsetworld import World

MISSING = "Describe on Topic own is missing"
VALUE = '{"offsets": [{"partition": {"table": "a"}, "offset": {"lsn": 1}}]}'


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path / "journal")
    found.kafka.hidden = {"own"}
    return found


@pytest.mark.parametrize(
    "words",
    [
        ("merge", "moved", "--into", "global", "--unset-topic", "--stop"),
        ("merge", "moved", "--into", "dedicated", "--stop"),
        ("set", "moved", "-f", "-", "--stop"),
        ("reset", "moved", "--stop"),
    ],
    ids=" ".join,
)
def test_a_change_is_refused_before_its_first_step(world: World, words: tuple[str, ...]) -> None:
    before = world.state()
    result = world.run("offsets", *words, "--yes", stdin=VALUE)
    assert (result.exit_code, MISSING in result.stderr) == (5, True), result.stderr
    assert world.state() == before


def test_what_is_shown_tells_of_it_and_makes_nothing_of_the_rest(world: World) -> None:
    result = world.run("offsets", "show", "moved")
    assert (result.exit_code, MISSING in result.stderr) == (1, True)
    assert "OFFSETS001" not in result.stderr
    assert "does not exist" not in result.stderr


def test_a_backup_without_its_records_is_none(world: World, tmp_path: Path) -> None:
    out = tmp_path / "backup.jsonl"
    result = world.run("offsets", "backup", "--out", str(out))
    assert (result.exit_code, MISSING in result.stderr, out.exists()) == (5, True, False)
