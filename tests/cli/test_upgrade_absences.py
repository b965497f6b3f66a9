"""``connectctl upgrade`` where somebody or something is not there: no worker, a lost one, an abort
that was killed.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fakes.rollingworld import FakeWorker, Faults, Killed, RollingWorld
from typer.testing import Result

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
APPLY = ("upgrade", "apply", "--yes", "--gate-checks", "2", "--gate-timeout", "30")


@pytest.fixture
def world(tmp_path: Path) -> RollingWorld:
    return RollingWorld.of(tmp_path, "disabled", "disabled", "disabled")


def refused(result: Result, *words: str, code: int = 4) -> None:
    assert result.exit_code == code, result.stdout + result.stderr
    for word in words:
        assert word in result.stderr
    assert "Nothing to do" not in result.stdout


def loses(world: RollingWorld, name: str) -> None:
    world.workers[name].member = world.workers[name].mode = None


# --------------------------------------------------------------------------------------- no workers


@pytest.mark.parametrize(
    "command", [("plan",), ("plan", "--to", "disabled"), ("apply", "--yes"), ("apply", "--dry-run")]
)
@pytest.mark.parametrize(
    "wish", [(), ("--migration", "soft-downgrade"), ("--migration", "hard-downgrade-two-steps")]
)
def test_a_group_whose_workers_are_all_down_is_not_converged(
    world: RollingWorld, command: tuple[str, ...], wish: tuple[str, ...]
) -> None:
    for name in world.workers:
        loses(world, name)
    if "--to" in command:
        wish = ()
    refused(world.run("upgrade", *command, *wish), "no worker is in the group connect")


def test_a_group_that_does_not_exist_is_bad_input_with_the_one_that_was_meant(
    world: RollingWorld,
) -> None:
    world.workers.clear()
    world.dead = True
    world.others = frozenset({"connect-prod", "connekt"})
    for command in (("plan",), APPLY[1:], ("status",), ("list",)):
        refused(world.run("upgrade", *command), "no group connect", "Did you mean connekt", code=2)


def test_status_of_a_group_without_workers_does_not_send_one_to_plan(world: RollingWorld) -> None:
    for name in world.workers:
        loses(world, name)
    assert json.loads(world.run("upgrade", "status", "-o", "json").stdout)["nextStep"] is None


# ------------------------------------------------------------------------------------ a lost worker


def test_connectors_that_nobody_reported_on_are_not_counted_as_healthy(
    world: RollingWorld,
) -> None:
    for name in world.workers:
        loses(world, name)
    row = world.run("upgrade", "status").stdout.splitlines()[1]
    assert row.split()[-2] == "unknown", row


def test_a_worker_of_the_last_run_that_is_down_is_named_and_refuses_the_plan(
    world: RollingWorld,
) -> None:
    assert world.run(*APPLY, "--to", "preparing").exit_code == 0
    loses(world, "c")
    run = json.loads(world.run("runs", "list", "-o", "json").stdout)["runs"][0]["id"]
    for wish in ("enabled", "preparing"):
        refused(world.run("upgrade", "plan", "--to", wish), "c:8083", run, "--without c:8083")
    status = json.loads(world.run("upgrade", "status", "-o", "json").stdout)
    (lost,) = [worker for worker in status["workers"] if not worker["inGroup"]]
    assert lost["address"] == "c:8083"
    assert run in lost["problem"]


def test_without_a_lost_worker_is_recorded_in_the_plan_and_asked_for_once(
    world: RollingWorld, tmp_path: Path
) -> None:
    assert world.run(*APPLY, "--to", "preparing").exit_code == 0
    loses(world, "c")
    path = tmp_path / "plan.json"
    result = world.run("upgrade", "plan", "--without", "c:8083", "--out", str(path), "-o", "json")
    data = json.loads(result.stdout)
    jsonschema.Draft202012Validator(json.loads((SCHEMAS / "plan.json").read_text())).validate(data)
    assert data["request"]["without"] == ["c:8083"]
    assert "c:8083" not in data["conditions"]["baseline"]["workers"]
    assert "without c:8083" in world.run("upgrade", "plan", "--without", "c:8083").stdout
    assert world.run(*APPLY, str(path)).exit_code == 0
    assert {name: w.mode for name, w in world.workers.items()} == {
        "a": "enabled",
        "b": "enabled",
        "c": None,
    }
    assert world.run("upgrade", "plan", "--to", "preparing", "--exit-code").exit_code == 3


@pytest.mark.parametrize(
    ("named", "words"), [("a:8083", "is in the group"), ("c", "Did you mean c:8083")]
)
def test_without_takes_only_workers_that_are_known_and_down(
    world: RollingWorld, named: str, words: str
) -> None:
    assert world.run(*APPLY, "--to", "preparing").exit_code == 0
    loses(world, "c")
    refused(world.run("upgrade", "plan", "--without", named), words, code=2)


def test_a_worker_that_is_back_under_its_address_is_not_missed(world: RollingWorld) -> None:
    assert world.run(*APPLY, "--to", "preparing").exit_code == 0
    loses(world, "c")
    world.workers["c"] = FakeWorker("preparing", "preparing", member="m99")
    assert world.run(*APPLY).exit_code == 0


def test_taking_a_run_back_does_not_wait_for_a_worker_that_it_had_not_touched(
    world: RollingWorld,
) -> None:
    world.run(*APPLY, "--pause-after", "5")
    loses(world, "c")
    result = world.run("upgrade", "abort", "--yes")
    assert result.exit_code == 0, result.stderr
    assert world.workers["a"].mode == "disabled"


# ------------------------------------------------------------------------------- who was taken when


def test_every_line_names_the_worker_that_was_taken(tmp_path: Path) -> None:
    world = RollingWorld.of(tmp_path, "preparing", "preparing", "preparing", leads="c")
    run = world.run(*APPLY, "--pause-after", "1")
    world.leads = "a"
    result = world.run("upgrade", "resume", "--yes")
    lines = [line for line in result.stdout.splitlines() if line.startswith(("done", "already"))]
    assert lines.pop(0).startswith("done       check cluster health")
    named = [
        next(n for n in ("a", "b", "c") if f"{n}:8083" in line.split(" instead ")[0])
        for line in lines[:-1]
    ]
    assert named == ["b"] * 4 + ["c"] * 4 + ["a"] * 4, result.stdout
    told = [line for line in lines if "instead" in line]
    assert len(told) == 3
    assert "b:8083 instead of a:8083, which is the leader now and is restarted last" in told[0]
    assert "which leads now" not in told[1] + told[2]
    run = json.loads(world.run("runs", "list", "-o", "json").stdout)["runs"][0]["id"]
    shown = world.run("runs", "show", run).stdout
    assert "restart b:8083" in shown.splitlines()[3]


# --------------------------------------------------------------------------------- abort and resume


def killed_in_an_abort(world: RollingWorld, at: int) -> None:
    world.run(*APPLY, "--pause-after", "9")
    world.faults = Faults(at)
    with suppress(Killed):
        world.run("upgrade", "abort", "--yes")
    world.faults = Faults()


@pytest.mark.parametrize("named", [False, True])
def test_abort_typed_again_after_a_killed_abort_resumes_it(tmp_path: Path, named: bool) -> None:
    counting = RollingWorld.of(tmp_path / "counting", "disabled", "disabled", "disabled")
    counting.run(*APPLY, "--pause-after", "9")
    counting.faults = Faults()
    counting.run("upgrade", "abort", "--yes")
    calls = counting.faults.calls
    points = [n for n, call in enumerate(calls, 1) if call in ("change", "restart")]
    for at in [point + more for point in points for more in (1, 4)]:
        world = RollingWorld.of(tmp_path / f"{at}", "disabled", "disabled", "disabled")
        killed_in_an_abort(world, at)
        runs = json.loads(world.run("runs", "list", "-o", "json").stdout)["runs"]
        which = [runs[-1]["id"]] if named and len(runs) > 1 else []
        result = world.run("upgrade", "abort", *which, "--yes")
        assert result.exit_code == 0, result.stderr
        assert set(world.modes().values()) == {"disabled"}, f"killed at call {at}"
        runs = json.loads(world.run("runs", "list", "-o", "json").stdout)["runs"]
        assert [run["state"] for run in runs if run["subjects"] != ["to enabled"]] == ["done"]


def test_a_run_that_is_being_taken_back_is_not_resumed(world: RollingWorld) -> None:
    killed_in_an_abort(world, 90)
    first = json.loads(world.run("runs", "list", "-o", "json").stdout)["runs"][-1]["id"]
    refused(
        world.run("upgrade", "resume", first, "--yes"),
        "being rolled back",
        "connectctl upgrade resume",
    )


def test_leaving_an_abort_where_it_is_ends_both_runs(world: RollingWorld) -> None:
    killed_in_an_abort(world, 90)
    result = world.run("upgrade", "abort", "--leave", "--yes")
    assert result.exit_code == 0
    assert "Nothing to do" not in result.stdout
    assert json.loads(world.run("upgrade", "status", "-o", "json").stdout)["unfinished"] is False


def restarts(world: RollingWorld) -> int:
    return world.faults.calls.count("restart")


@pytest.mark.parametrize("later", [1, 2, 4])
def test_resume_does_not_restart_a_worker_that_is_still_starting(
    tmp_path: Path, later: int
) -> None:
    whole = RollingWorld.of(tmp_path / "whole", "disabled", "disabled")
    whole.run(*APPLY, "--to", "preparing")
    first = whole.faults.calls.index("restart") + 1
    world = RollingWorld.of(
        tmp_path / "killed", "disabled", "disabled", faults=Faults(first + later)
    )
    with suppress(Killed):
        world.run(*APPLY, "--to", "preparing")
    assert world.workers["a"].member is None
    world.faults = Faults()
    result = world.run("upgrade", "resume", "--yes")
    assert result.exit_code == 0, result.stderr
    assert restarts(world) == 1  # b's
    assert set(world.modes().values()) == {"preparing"}


def test_resume_restarts_a_worker_that_had_its_time_and_is_not_back(tmp_path: Path) -> None:
    world = RollingWorld.of(tmp_path, "disabled", "disabled")
    world.workers["a"].stays_away = True
    assert world.run(*APPLY, "--to", "preparing").exit_code == 7
    world.workers["a"].stays_away = False
    before = restarts(world)
    assert world.run("upgrade", "resume", "--yes").exit_code == 0
    assert restarts(world) == before + 2


# ------------------------------------------------------------------------------------------ by hand


def test_workers_that_somebody_restarts_by_hand_are_marked_in_the_plan(world: RollingWorld) -> None:
    world.by_hand = True
    assert "restart a:8083 (by hand)" in world.run("upgrade", "plan").stdout
    steps = json.loads(world.run("upgrade", "plan", "-o", "json").stdout)["steps"]
    assert {
        step["by_hand"] for step in steps if step["step"] in ("ChangeProperty", "RestartWorker")
    } == {True}
    assert {
        step.get("by_hand", False) for step in steps if step["step"] in ("Gate", "CheckModes")
    } == {False}
    world.by_hand = False
    assert "by hand" not in world.run("upgrade", "plan").stdout


def test_without_a_terminal_nobody_is_waited_for(world: RollingWorld) -> None:
    world.by_hand = True
    refused(
        world.run(*APPLY),
        "a:8083, c:8083, b:8083",
        "by hand",
        "standard input is not a terminal",
        "--by-hand-timeout",
        code=2,
    )
    assert (world.history, world.told_person, world.clock) == ([], [], 0)


def test_who_says_how_long_a_person_may_take_needs_no_terminal(world: RollingWorld) -> None:
    world.by_hand = True
    result = world.run(*APPLY, "--by-hand-timeout", "20")
    assert result.exit_code == 7
    assert "Timed out after 20 s waiting for" in result.stderr
    assert world.told_person
    refused(world.run("upgrade", "resume", "--yes"), "standard input is not a terminal", code=2)


# ------------------------------------------------------------------------- what is said of the rest


def test_what_the_cluster_does_is_said_only_where_it_was_looked_at(world: RollingWorld) -> None:
    def break_task(world: RollingWorld, name: str) -> None:
        world.tasks["orders", 0] = "FAILED"

    world.on_restart = break_task
    told = world.run(*APPLY).stderr
    assert "3 of 3 workers are in the group" in told
    assert "serving" not in told


def test_nothing_is_said_of_a_cluster_that_cannot_be_seen(world: RollingWorld) -> None:
    def blind(world: RollingWorld, name: str) -> None:
        world.blind = True

    world.on_restart = blind
    told: Any = world.run(*APPLY).stderr
    assert "serving" not in told
    assert "workers are in the group" not in told
