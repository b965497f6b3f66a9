"""Source partitions that are addresses with a password: tables and findings hide it, what is read
back is exact.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.offsetworld import World

PASSWORD = "Pl4nt3d000q"
ADDRESS = f"mongodb://me:{PASSWORD}@db:27017/shop.orders"
PARTITION = {"ns": ADDRESS}
KEY = json.dumps(["moved", PARTITION], separators=(",", ":"))
OFFSETS = json.dumps({"offsets": [{"partition": PARTITION, "offset": {"nextPageToken": "p9"}}]})


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path / "journal")
    found.put("own", KEY, '{"nextPageToken":"p7","from":"' + ADDRESS + '"}')
    found.put("off", KEY, '{"nextPageToken":"p8"}')
    found.put("off", '["moved", {"ns":"' + ADDRESS + '"}]', '{"nextPageToken":9007199254740993}')
    return found


@pytest.mark.parametrize(
    "words",
    [
        ("show", "moved"),
        ("show", "moved", "-o", "wide"),
        ("show", "moved", "--all-generations"),
        ("diff", "moved"),
        ("set", "moved", "-f", "-", "--stop", "--dry-run"),
        ("merge", "moved", "--into", "global", "--stop", "--dry-run"),
        ("set", "moved", "-f", "-", "--stop", "--yes"),
    ],
    ids=" ".join,
)
def test_what_people_read_has_no_password_and_every_row(
    world: World, words: tuple[str, ...]
) -> None:
    result = world.run("offsets", *words, stdin=OFFSETS)
    assert result.exit_code == 0, result.stderr
    assert PASSWORD not in result.stdout + result.stderr
    if "--yes" not in words:
        assert "mongodb://******@db:27017/shop.orders" in result.stdout
        assert '"nextPageToken":"p' in result.stdout


def test_findings_name_the_source_partition_without_it(world: World) -> None:
    result = world.run("offsets", "show", "moved", "-o", "json")
    told = json.loads(result.stdout)["findings"]
    assert any("mongodb://******@db:27017" in finding["subject"] for finding in told)
    assert PASSWORD not in json.dumps(told) + result.stderr


def test_what_is_shown_as_json_can_be_set_again(world: World) -> None:
    shown = json.loads(world.run("offsets", "show", "moved", "-o", "json").stdout)
    assert PARTITION in [entry["partition"] for entry in shown["connectors"][0]["offsets"]]
    before = world.state()["records"]
    assert (
        world.run("offsets", "set", "moved", "-f", "-", "--stop", "--yes", stdin=OFFSETS).exit_code
        == 0
    )
    changed = {
        topic_state
        for topic_state, value in world.state()["records"].items()
        if before.get(topic_state) != value
    }
    assert {key for _, _, key in changed} == {KEY.encode()}
