"""The cluster's lock as commands take and show it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from connectctl.ops.connect.cluster_lock import LockHolder
from fakes.rollingworld import RollingWorld

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
APPLY = ("upgrade", "apply", "--yes", "--gate-checks", "1")
OTHER = LockHolder("20260101-103100-ab12", "anna@ops-1", "2026-01-01T10:31:00Z", 7, "10.0.0.1")


@pytest.fixture
def world(tmp_path: Path) -> RollingWorld:
    return RollingWorld.of(tmp_path, "disabled", "disabled")


def status(world: RollingWorld) -> Any:
    data = json.loads(world.run("upgrade", "status", "-o", "json").stdout)
    jsonschema.Draft202012Validator(
        json.loads((SCHEMAS / "upgrade-status.json").read_text())
    ).validate(data)
    return data


def test_a_roll_holds_the_lock_and_confirms_it_before_every_step(world: RollingWorld) -> None:
    assert world.run(*APPLY).exit_code == 0
    (run,) = json.loads(world.run("runs", "list", "-o", "json").stdout)["runs"]
    assert world.lock.taken == [run["id"]]
    assert world.lock.confirmed == 19
    assert world.lock.holds is None


def test_a_roll_beside_another_is_refused_with_who_and_since_when(world: RollingWorld) -> None:
    world.lock.other = OTHER
    result = world.run(*APPLY)
    assert result.exit_code == 4
    assert "20260101-103100-ab12 of anna@ops-1 since 2026-01-01T10:31:00Z" in result.stderr
    assert world.history == []
    assert "20260101-103100-ab12 of anna@ops-1" in world.run("upgrade", "status").stdout
    assert status(world)["lock"]["holder"]["by"] == "anna@ops-1"
    assert world.run("upgrade", "resume", "--yes").exit_code == 4


def test_looking_takes_no_lock(world: RollingWorld) -> None:
    for command in (("plan",), ("apply", "--dry-run"), ("status",), ("list",)):
        assert world.run("upgrade", *command).exit_code == 0
    assert world.lock.taken == []


def test_a_lock_that_is_lost_stops_the_roll_before_the_next_step(world: RollingWorld) -> None:
    world.lock.lost_at = 3  # before the first restart
    result = world.run(*APPLY)
    assert result.exit_code == 7
    assert "lock was lost" in result.stderr
    assert "connectctl upgrade resume" in result.stderr
    assert world.history == []
    assert world.run("upgrade", "resume", "--yes").exit_code == 0
    assert set(world.modes().values()) == {"enabled"}


def test_a_lock_that_may_not_be_seen_is_not_called_free(world: RollingWorld) -> None:
    world.lock.seen = False
    assert status(world)["lock"]["holder"] is None
    assert "GROUP_AUTHORIZATION_FAILED" in status(world)["lock"]["problem"]
    assert "Could not read the holder" in world.run("upgrade", "status").stdout


def test_without_the_clusters_lock_a_change_says_so(world: RollingWorld) -> None:
    world.lock.other = OTHER
    world.told["lock"] = "local"
    result = world.run(*APPLY)
    assert result.exit_code == 0
    assert "warning: the cluster is not locked (--lock local)" in result.stderr
    assert world.lock.taken == []
    world.told["lock"] = "nothing"
    assert world.run(*APPLY, "--to", "disabled").exit_code == 2
