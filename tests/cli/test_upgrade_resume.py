"""How a roll is resumed after something else changed its workers: it begins with the gate, and asks
for the modes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.checks.workers import roll_rules
from connectctl.ops.core.journal import Journal
from connectctl.ops.core.rule import check
from connectctl.ops.operations.cluster.worker_answers import ask_all
from connectctl.ops.operations.upgrade.mode import PROPERTY
from connectctl.ops.operations.upgrade.observe import ClusterReader
from connectctl.ops.operations.upgrade.run_state import roll_state
from fakes.rollingworld import RollingWorld
from typer.testing import Result

APPLY = ("upgrade", "apply", "--yes", "--gate-checks", "2", "--gate-timeout", "40")
RESUME = ("upgrade", "resume", "--yes")
FIRST_PHASE = "13"
"""The number of the last step of the first phase for three workers; then modes are checked."""


@pytest.fixture
def world(tmp_path: Path) -> RollingWorld:
    return RollingWorld.of(tmp_path, "disabled", "disabled", "disabled")


def files(world: RollingWorld) -> dict[str, str | None]:
    return {name: worker.file for name, worker in world.workers.items()}


def status(world: RollingWorld) -> Any:
    return json.loads(world.run("upgrade", "status", "-o", "json").stdout)


def found_by_preflight(world: RollingWorld) -> list[str]:
    edges: Any = world
    group = world.group("connect")
    reader = ClusterReader(edges, edges, group.id, edges, world.driver)
    roll = roll_state(reader, Journal(world.journal), group, ask_all(edges, group))
    return [f"{finding.id} {finding.message}" for finding in check(roll_rules, roll)]


def stopped(result: Result, *words: str, code: int = 7) -> None:
    assert result.exit_code == code, result.output
    for word in words:
        assert word in result.stderr


def put_back(world: RollingWorld, name: str, mode: str = "disabled") -> None:
    """Another tool writes the file of a worker, and restarts it."""
    worker = world.workers[name]
    worker.file, worker.mode, worker.member = mode, mode, f"put-back-{name}"


@pytest.mark.parametrize("how", ["it left the group", "it is still a member and does not answer"])
def test_a_resume_waits_for_a_worker_that_died_before_it_changes_another(
    world: RollingWorld, how: str
) -> None:
    world.run(*APPLY, "--pause-after", FIRST_PHASE)
    dead, mute = world.workers["c"], how != "it left the group"
    member, dead.mute = dead.member, mute
    dead.member = member if mute else None
    before = files(world)
    result = world.run(*RESUME)
    missing = "c:8083 does not answer: Connection refused" if mute else "c:8083 is not in the group"
    stopped(
        result, "Health gate failed", f"waiting: {missing}", f"still waiting after 30 s: {missing}"
    )
    assert mute or "Start c:8083." in result.stderr
    assert "check cluster health" in result.stderr
    assert files(world) == before
    assert len(world.history) == len(before)
    dead.member, dead.mute = member, False
    assert world.run(*RESUME).exit_code == 0
    assert set(world.modes().values()) == {"enabled"}
    assert world.violations == []


def test_a_worker_whose_file_was_put_back_before_it_started_fails_its_own_rejoin(
    world: RollingWorld,
) -> None:
    def overwrite(world: RollingWorld, name: str) -> None:
        world.workers[name].file = "disabled"

    world.on_restart = overwrite
    stopped(
        world.run(*APPLY),
        "different mode than planned",
        "a:8083 is disabled (configured: file a:8083.properties)",
    )
    assert [name for name, _ in world.history] == ["a"]
    world.on_restart = None
    assert "connectctl upgrade resume" in status(world)["nextStep"]
    assert world.run(*RESUME).exit_code == 0
    assert (set(world.modes().values()), world.violations) == ({"enabled"}, [])


def test_a_worker_that_was_put_back_later_stops_the_next_gate_and_has_its_turn_again(
    world: RollingWorld,
) -> None:
    def overwrite(world: RollingWorld, name: str) -> None:
        if name == "c":
            put_back(world, "a")

    world.on_restart = overwrite
    stopped(
        world.run(*APPLY),
        "Workers are not in the expected mode",
        "a:8083 is disabled",
        "connectctl upgrade resume",
    )
    assert "enabled" not in {mode for _, mode in world.history}
    world.on_restart = None
    data = status(world)
    assert "resume" in data["nextStep"]
    assert data["run"]["next"] == f"set {PROPERTY}=preparing on a:8083"
    assert {w["address"]: w["mode"] for w in data["workers"]}["a:8083"] == "disabled"
    assert world.run(*RESUME).exit_code == 0
    assert (set(world.modes().values()), world.violations) == ({"enabled"}, [])


def test_a_worker_that_was_put_back_in_an_earlier_phase_leads_to_a_rollback(
    world: RollingWorld,
) -> None:
    def overwrite(world: RollingWorld, name: str) -> None:
        if world.workers[name].file == "enabled":
            put_back(world, next(n for n, w in world.workers.items() if w.file == "preparing"))

    world.on_restart = overwrite
    result = world.run(*APPLY)
    stopped(result, "Workers are not in the expected mode", "connectctl upgrade abort")
    assert "upgrade resume" not in result.stderr
    world.on_restart = None
    assert "upgrade resume" not in status(world)["nextStep"]
    assert world.run("upgrade", "abort", "--yes").exit_code == 0
    assert set(world.modes().values()) == {"disabled"}


def test_what_was_changed_during_a_pause_is_not_said_to_be_resumable(world: RollingWorld) -> None:
    world.run(*APPLY, "--pause-after", "5")
    assert "upgrade resume" in status(world)["nextStep"]
    put_back(world, "a")
    assert "upgrade resume" not in status(world)["nextStep"]
    stopped(world.run(*RESUME), "connectctl upgrade abort", code=4)
    assert world.run("upgrade", "abort", "--yes").exit_code == 0
    assert not status(world)["unfinished"]


def test_the_number_of_the_next_step_is_one_more_than_those_that_are_done(
    world: RollingWorld,
) -> None:
    world.workers["a"].stays_away = True
    stopped(world.run(*APPLY), "Timed out")
    text = world.run("upgrade", "status").stdout
    (done, following) = re.findall(r"(\d+) of 27 steps done\.\s+Next is step (\d+)", text)[0]
    assert (done, following) == ("1", "2")
    assert status(world)["run"]["done"] == 1


def test_workers_that_are_not_healthy_are_counted_and_decide_the_exit_code(
    world: RollingWorld,
) -> None:
    world.run(*APPLY, "--pause-after", FIRST_PHASE)
    assert world.run("upgrade", "status", "--exit-code").exit_code == 0
    world.workers["c"].member = None
    result = world.run("upgrade", "status", "--exit-code")
    assert result.exit_code == 1
    assert re.search(r"connect +Stable +2 of 3 .* 1 +fake", result.stdout), result.stdout
    assert "Unhealthy: c:8083 is not in the group" in result.stdout
    assert status(world)["unhealthy"] == ["c:8083 is not in the group"]


def test_waits_are_told_without_a_terminal(world: RollingWorld) -> None:
    result = world.run(*APPLY)
    assert result.exit_code == 0
    assert "[4/27] wait for a:8083 to rejoin the group (preparing)" in result.stderr
    assert "waiting: a:8083 is not in the group" in result.stderr


def test_preflight_finds_a_roll_that_has_not_ended_and_workers_that_differ(
    world: RollingWorld,
) -> None:
    assert found_by_preflight(world) == []
    world.run(*APPLY, "--pause-after", "5")
    run = status(world)["run"]["id"]
    assert found_by_preflight(world) == [
        f"WORKER015 The run {run} (to enabled) has not ended.",
        "WORKER016 They have different modes: a:8083 preparing; b:8083, c:8083 disabled.",
    ]
    assert world.run(*RESUME).exit_code == 0
    assert found_by_preflight(world) == []
