"""A roll is planned only where workers and config topic tell the same of the connectors; a roll
that began goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from connectctl.migrations import access
from connectctl.ops.operations.cluster import group_workers
from connectctl.ops.operations.connectors import observe
from fakes.rollingworld import FakeWorker, RollingWorld

APPLY = (
    "upgrade",
    "apply",
    "--yes",
    "--gate-checks",
    "2",
    "--gate-timeout",
    "30",
    "--to",
    "preparing",
)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RollingWorld:
    for module in (group_workers, observe):
        monkeypatch.setattr(module, "AGREEING", 0.0)
    return RollingWorld.of(tmp_path, "disabled", "disabled")


def unlisted_by_all(world: RollingWorld) -> tuple[str, ...]:
    """The config topic has a connector that no worker lists."""
    world.configured = ("orders", "hidden")
    return "connector hidden", "does not list it, and the config topic has it"


def unlisted_by_one(world: RollingWorld) -> tuple[str, ...]:
    """One worker lists nothing."""
    world.unlisted = frozenset({"b"})
    return "connector orders", "http://b:8083"


def other_group(world: RollingWorld) -> tuple[str, ...]:
    """An address in the settings is a worker of another group."""
    world.workers["other"], world.strangers = FakeWorker(mode=None), frozenset({"other"})
    world.told["rest"] = ["http://other:8083"]
    return "http://other:8083 is not proven to be a worker of the group connect", "--rest"


@pytest.mark.parametrize("blind", [unlisted_by_all, unlisted_by_one, other_group])
def test_no_roll_begins_on_a_view_that_contradicts_itself(
    world: RollingWorld, blind: Callable[[RollingWorld], tuple[str, ...]]
) -> None:
    words = blind(world)
    for args in (("upgrade", "plan", "--to", "preparing"), APPLY):
        result = world.run(*args)
        assert (result.exit_code, result.stdout) == (4, ""), result.output
        for word in words:
            assert word in result.stderr
    assert world.history == []
    assert {worker.file for worker in world.workers.values()} == {"disabled"}


def test_a_plan_without_steps_shows_the_contradiction(world: RollingWorld) -> None:
    unlisted_by_all(world)
    plan = json.loads(world.run("upgrade", "plan", "--to", "disabled", "-o", "json").stdout)
    assert ([f["id"] for f in plan["findings"]], plan["steps"]) == (["SIGHT004"], [])


def test_a_worker_that_reads_the_config_topic_late_stops_neither_gates_nor_an_abort(
    world: RollingWorld,
) -> None:
    def late(world: RollingWorld, name: str) -> None:
        world.unlisted = frozenset({name})

    world.on_restart = late
    assert world.run(*APPLY, "--pause-after", "5").exit_code == 0
    assert world.unlisted
    run = json.loads(world.run("runs", "list", "-o", "json").stdout)["runs"][0]["id"]
    assert world.run("upgrade", "abort", "--dry-run").exit_code == 0
    resumed = world.run("upgrade", "resume", run, "--yes")
    assert resumed.exit_code == 0, resumed.output
    assert set(world.modes().values()) == {"preparing"}


def test_a_worker_that_settings_name_otherwise_than_it_advertises_is_one_worker(
    world: RollingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = {"b": "10.0.0.2", "worker-b": "10.0.0.2"}
    monkeypatch.setattr(access, "addresses_of", lambda host: frozenset({addresses.get(host, host)}))
    world.told["rest"] = ["http://worker-b:8083"]
    for command in (("upgrade", "status"), ("upgrade", "plan", "--to", "preparing")):
        result = world.run(*command)
        assert result.exit_code == 0, result.output
        assert "worker-b" not in result.output
