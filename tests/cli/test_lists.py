"""Lists for other programs: one name a line, and tables without headings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from connectctl.cli.output.terminal import NAMES
from fakes.changingworld import World
from fakes.kafkareads import records
from fakes.offsetworld import World as OffsetWorld
from fakes.rollingworld import RollingWorld
from fakes.runner import command_at, commands, invoke


def test_names_of_connectors_are_one_a_line(tmp_path: Path) -> None:
    assert World(tmp_path).run("connectors", "list", "-o", "name").stdout == "off\norders\nusers\n"


def test_connectors_are_listed_by_name_and_by_glob(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert world.run("connectors", "list", "o*s", "off", "-o", "name").stdout == "orders\noff\n"
    none = world.run("connectors", "list", "x*")
    assert (none.exit_code, none.stdout) == (2, "")
    assert "No connector matches x*" in none.stderr


def test_names_of_a_cluster_are_its_workers(tmp_path: Path) -> None:
    world = World(tmp_path)
    workers = json.loads(world.run("cluster", "show", "-o", "json").stdout)["workers"]
    assert world.run("cluster", "show", "-o", "name").stdout.split() == [
        worker["address"] for worker in workers
    ]


def test_offsets_are_shown_by_glob(tmp_path: Path) -> None:
    world = OffsetWorld(tmp_path / "journal")
    assert world.run("offsets", "show", "mo*", "-o", "name").stdout == "moved\n"
    none = world.run("offsets", "show", "x*")
    assert (none.exit_code, "No source connector matches x*" in none.stderr) == (2, True)


def test_names_of_connectors_with_offsets_are_told_once(tmp_path: Path) -> None:
    names = (
        OffsetWorld(tmp_path / "journal").run("offsets", "show", "-o", "name").stdout.splitlines()
    )
    assert "moved" in names
    assert len(names) == len(set(names))


def test_transactional_ids_and_runs_and_migrations_are_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    world = World(tmp_path)
    assert world.run("transactions", "list", "-o", "name").stdout.split() == [
        "app-0",
        "app-1",
        "app-2",
    ]
    world.change("connectors stop", "--yes")
    assert world.run("runs", "list", "-o", "name").stdout.split() == [
        run["id"] for run in world.runs()
    ]
    assert world.run("offsets", "history", "-o", "name").stdout == ""
    rolling = RollingWorld.of(tmp_path / "other", "disabled", "disabled")
    assert len(rolling.run("upgrade", "list", "-o", "name").stdout.split()) > 3


def test_a_list_of_nothing_has_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path))
    assert invoke(["runs", "list", "-o", "name"]).stdout == ""


def test_a_name_stays_on_its_line(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.workers.connectors["a\nb"] = world.workers.connectors["orders"]
    assert len(world.run("connectors", "list", "-o", "name").stdout.splitlines()) == 4


def test_tables_without_headings_are_the_rows_alone(tmp_path: Path) -> None:
    world = World(tmp_path)
    whole = world.run("connectors", "list").stdout.splitlines()
    assert world.run("connectors", "list", "--no-headers").stdout.splitlines() == whole[1:]
    assert world.run("connectors", "list").stdout.splitlines() == whole


def test_names_are_refused_before_anything_is_done_where_no_list_is_printed(tmp_path: Path) -> None:
    world = World(tmp_path)
    result = world.run("connectors", "stop", "orders", "--yes", "-o", "name")
    assert (result.exit_code, world.changed) == (2, [])
    assert "'name' is not one of 'table', 'wide', 'json', 'yaml'" in result.stderr


def test_every_command_that_is_called_list_has_names() -> None:
    listing = [path for path in commands() if path and path[-1] == "list"]
    assert len(listing) >= 5
    for path in listing:
        assert "|name" in next(p.metavar for p in command_at(path).params if "-o" in p.opts), path
    assert {kind for kind in NAMES if kind.endswith("List")} >= {"ConnectorList", "RunList"}


@pytest.mark.parametrize(("count", "off"), [(0, True), (1, False)])
def test_a_fence_of_a_connector_without_exactly_once_says_so(
    count: int, off: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    world = World(tmp_path)
    if count:
        world.kafka.records["cfg"] += records(("tasks-fencing-orders", {"task-count": count}))
    result = world.run("fence", "orders", "--dry-run")
    assert result.exit_code == 0
    assert ("exactly-once source support is off for it" in result.stderr) is off
