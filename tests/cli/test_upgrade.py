"""``connectctl upgrade`` against a cluster in memory: what it prints, refuses, waits for, and how
it goes on.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from connectctl.ops.core.journal import RunState
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.upgrade.mode import PROPERTY
from connectctl.ops.registry import KINDS
from fakes.rollingworld import FENCED, TAKEN_OVER, FakeWorker, RollingWorld
from typer.testing import Result

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
APPLY = ("upgrade", "apply", "--yes", "--gate-checks", "2", "--gate-timeout", "30")


@pytest.fixture
def world(tmp_path: Path) -> RollingWorld:
    return RollingWorld.of(tmp_path, "disabled", "disabled")


def checked(result: Result, schema: str) -> Any:
    assert result.stdout, result.stderr
    data = json.loads(result.stdout)
    jsonschema.Draft202012Validator(json.loads((SCHEMAS / f"{schema}.json").read_text())).validate(
        data
    )
    return data


def modes_before(plan: Any) -> dict[str, str]:
    return {
        address: worker["mode"]
        for address, worker in plan["conditions"]["baseline"]["workers"].items()
    }


def test_the_plan_for_scripts_is_as_documented(world: RollingWorld) -> None:
    data = checked(world.run("upgrade", "plan", "-o", "json"), "plan")
    assert (data["operation"], data["request"]["to"], data["groupId"]) == (
        "upgrade",
        "enabled",
        "connect",
    )
    assert modes_before(data) == {"a:8083": "disabled", "b:8083": "disabled"}
    first = [(s["step"], s["subject"]) for s in data["steps"][:6]]
    assert first == [
        ("FirstGate", "cluster"),
        *[(kind, "a:8083") for kind in ("ChangeProperty", "RestartWorker", "Rejoin", "Gate")],
        ("ChangeProperty", "b:8083"),
    ]
    assert data["steps"][9]["step"] == "CheckModes"
    assert any("cannot be verified from outside" in line for line in data["warnings"])


def test_exit_code_3_says_that_something_is_pending(world: RollingWorld) -> None:
    assert world.run("upgrade", "plan", "--exit-code").exit_code == 3
    assert world.run("upgrade", "plan", "--to", "disabled", "--exit-code").exit_code == 0
    assert "Nothing to do" in world.run("upgrade", "plan", "--to", "disabled").stdout
    assert world.history == []


def test_a_roll_up_and_back_is_told_step_by_step(world: RollingWorld) -> None:
    result = world.run(*APPLY)
    assert result.exit_code == 0, result.stderr
    assert [h[1] for h in world.history] == ["preparing", "preparing", "enabled", "enabled"]
    assert f"set {PROPERTY}=preparing on a:8083" in result.stdout
    assert "Done, run " in result.stdout
    data = checked(world.run(*APPLY, "--to", "disabled", "-o", "json"), "upgrade-result")
    assert data["paused"] is False
    assert {r["outcome"] for r in data["results"]} == {"done"}
    assert set(world.modes().values()) == {"disabled"}
    assert world.violations == []


def test_without_yes_and_a_terminal_nothing_is_done(world: RollingWorld) -> None:
    result = world.run("upgrade", "apply")
    assert (result.exit_code, world.history) == (2, [])
    assert "restart a:8083" in result.stderr


def test_a_dry_run_prints_the_plan_and_does_nothing(world: RollingWorld) -> None:
    plan = world.run("upgrade", "plan").stdout
    assert world.run("upgrade", "apply", "--dry-run").stdout == plan
    assert world.history == []
    world.run(*APPLY, "--pause-after", "5")
    before = list(world.history)
    assert (
        "set exactly.once.source.support=disabled on a:8083"
        in world.run("upgrade", "abort", "--dry-run").stdout
    )
    assert "preparing on b:8083" in world.run("upgrade", "resume", "--dry-run").stdout
    assert world.history == before
    assert "Next: connectctl upgrade resume" in world.run("upgrade", "status").stdout


def test_a_saved_plan_is_applied_to_the_same_cluster_only(
    world: RollingWorld, tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    assert world.run("upgrade", "plan", "--to", "preparing", "--out", str(path)).exit_code == 0
    world.workers["a"].version = "4.2.0"
    result = world.run(*APPLY, str(path))
    assert (result.exit_code, world.history) == (4, [])
    assert "stale" in result.stderr
    world.workers["a"].version = "4.3.1"
    assert world.run(*APPLY, str(path)).exit_code == 0
    assert set(world.modes().values()) == {"preparing"}


def test_a_saved_plan_with_other_steps_than_would_be_done_is_stale_though_they_read_the_same(
    world: RollingWorld, tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    assert world.run("upgrade", "plan", "--to", "preparing", "--out", str(path)).exit_code == 0
    written = json.loads(path.read_text())
    next(step for step in written["steps"] if step["step"] == "Gate")["forgives_fencing"] = True
    path.write_text(json.dumps(written))
    edited = world.run(*APPLY, str(path))
    assert (edited.exit_code, "changed after it was made" in edited.stderr) == (2, True), (
        edited.output
    )
    del written["digest"]
    path.write_text(json.dumps(Plan.from_json(written, KINDS).as_json()))
    result = world.run(*APPLY, str(path))
    assert (result.exit_code, world.history) == (4, [])
    assert "The plan is stale: its inputs have changed" in result.stderr


APPLYING = pytest.mark.parametrize("applying", [("upgrade", "apply"), ("runs", "apply")])


@APPLYING
def test_a_saved_abort_is_applied_while_the_run_that_it_rolls_back_stands_where_it_stood(
    world: RollingWorld, tmp_path: Path, applying: tuple[str, str]
) -> None:
    path = tmp_path / "plan.json"
    world.run(*APPLY, "--pause-after", "5")
    planned = world.run("upgrade", "abort", "--dry-run", "-o", "json")
    path.write_text(planned.stdout)
    runs = json.loads(world.run("runs", "list", "-o", "json").stdout)["runs"]
    assert checked(planned, "plan")["undoes"] == runs[0]["id"]
    world.workers["a"].version = "4.2.0"
    stale = world.run(*applying, str(path), "--yes")
    assert (stale.exit_code, "runs undo … --dry-run -o json" in stale.stderr) == (4, True), (
        stale.output
    )
    world.workers["a"].version = "4.3.1"
    assert world.run(*applying, str(path), "--dry-run").exit_code == 0
    done = world.run(*applying, str(path), "--yes")
    assert (done.exit_code, world.history) == (0, [("a", "preparing"), ("a", "disabled")]), (
        done.output
    )
    assert [
        run["state"] for run in json.loads(world.run("runs", "list", "-o", "json").stdout)["runs"]
    ] == [
        "done",
        "undone",
    ]
    again = world.run(*applying, str(path), "--yes")
    assert (again.exit_code, "is undone; there is nothing to undo" in again.stderr) == (4, True), (
        again.output
    )


@APPLYING
@pytest.mark.parametrize(
    ("planning", "hint"),
    [
        (("resume",), "connectctl runs resume RUN"),
        (("abort", "--leave"), "connectctl upgrade abort --leave"),
    ],
)
def test_what_is_left_of_a_run_is_no_plan_to_apply_and_it_is_told_what_to_do(
    world: RollingWorld,
    tmp_path: Path,
    applying: tuple[str, str],
    planning: tuple[str, ...],
    hint: str,
) -> None:
    world.run(*APPLY, "--pause-after", "5")
    before = list(world.history)
    planned = world.run("upgrade", *planning, "--dry-run", "-o", "json")
    assert checked(planned, "plan")["groupId"] == "connect"
    path = tmp_path / "plan.json"
    path.write_text(planned.stdout)
    refused = world.run(*applying, str(path), "--yes")
    assert (refused.exit_code, hint in refused.stderr, world.history) == (2, True, before), (
        refused.output
    )


@pytest.mark.parametrize("text", ["", "{}", '{"kind": "Plan"}', "[]"])
def test_what_is_no_plan_is_bad_input(world: RollingWorld, tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    result = world.run(*APPLY, str(path))
    assert result.exit_code == 2
    assert re.search(r"is not an? (upgrade )?plan: ", result.stderr)


def test_a_wish_is_given_once(world: RollingWorld) -> None:
    assert (
        world.run("upgrade", "plan", "--to", "enabled", "--migration", "soft-downgrade").exit_code
        == 2
    )
    result = world.run("upgrade", "plan", "--migration", "soft-downgrad")
    assert result.exit_code == 2
    assert "Did you mean soft-downgrade?" in result.stderr


def test_a_pause_ends_cleanly_and_resume_goes_on(world: RollingWorld) -> None:
    result = world.run(*APPLY, "--pause-after", "5", "-o", "json")
    data = checked(result, "upgrade-result")
    assert (data["paused"], len(data["results"])) == (True, 5)
    assert world.history == [("a", "preparing")]
    status = checked(world.run("upgrade", "status", "-o", "json"), "upgrade-status")
    assert (status["run"]["done"], status["run"]["failure"], status["unfinished"]) == (
        5,
        None,
        True,
    )
    assert status["nextStep"].startswith("connectctl upgrade resume")
    assert "has not ended" in world.run(*APPLY).stderr
    assert world.run("upgrade", "resume", "--yes").exit_code == 0
    assert set(world.modes().values()) == {"enabled"}
    assert world.run("upgrade", "resume", "--yes").exit_code == 4


def test_a_step_that_the_plan_does_not_have_cannot_be_paused_after(world: RollingWorld) -> None:
    assert world.run(*APPLY, "--pause-after", "99").exit_code == 2
    assert world.history == []


def test_status_tells_how_each_mode_is_known(world: RollingWorld) -> None:
    status = checked(world.run("upgrade", "status", "-o", "json"), "upgrade-status")
    known = {w["address"]: (w["mode"], w["known"]) for w in status["workers"]}
    assert known == {"a:8083": ("disabled", "configured"), "b:8083": ("disabled", "verified")}
    assert status["run"] is None
    world.run(*APPLY, "--to", "preparing")
    text = world.run("upgrade", "status").stdout
    assert "it initialized the leader's transactional id when it became leader" in text
    assert "10 of 10 steps done" in text


def test_without_a_hook_what_was_done_is_believed(world: RollingWorld) -> None:
    world.tells = False
    plan = world.run("upgrade", "plan", "-o", "json")
    assert modes_before(json.loads(plan.stdout)) == {"a:8083": "unknown", "b:8083": "disabled"}
    assert world.run(*APPLY, "--to", "preparing").exit_code == 0
    status = json.loads(world.run("upgrade", "status", "-o", "json").stdout)
    assert sorted((w["mode"], w["known"]) for w in status["workers"]) == [
        ("preparing", "assumed"),
        ("preparing", "verified"),
    ]
    assert world.run("upgrade", "plan", "--to", "preparing", "--exit-code").exit_code == 0


def failing(result: Result, *words: str, code: int = 7) -> None:
    assert result.exit_code == code, result.stdout + result.stderr
    for word in words:
        assert word in result.stderr


def test_a_worker_that_does_not_come_back_stops_the_roll(world: RollingWorld) -> None:
    world.workers["a"].stays_away = True
    failing(
        world.run(*APPLY),
        "Timed out after 30 s waiting for a:8083 to rejoin the group",
        "current members: b:8083",
        "connectctl upgrade resume",
    )
    assert world.workers["b"].mode == "disabled"
    status = json.loads(world.run("upgrade", "status", "-o", "json").stdout)
    assert "a:8083 is not in the group" in status["run"]["failure"]
    assert {w["address"]: w["inGroup"] for w in status["workers"]} == {
        "a:8083": False,
        "b:8083": True,
    }
    world.workers["a"].stays_away = False
    assert (
        "Paused. Resume with: "
        in world.run("upgrade", "resume", "--yes", "--pause-after", "5").stdout
    )
    assert "Done, run " in world.run("upgrade", "resume", "--yes").stdout
    assert set(world.modes().values()) == {"enabled"}


def test_a_restart_that_changes_nothing_is_noticed(world: RollingWorld) -> None:
    world.workers["a"].ignores_restarts = True
    failing(world.run(*APPLY), "a:8083 has not been restarted (same member id)")


def test_a_worker_that_joins_with_the_wrong_mode_stops_the_roll_at_once(
    world: RollingWorld,
) -> None:
    world.workers["a"].joins_as = "enabled"
    failing(world.run(*APPLY), "in a different mode than planned", "a:8083 is enabled (verified")
    assert world.clock < 10


def test_a_worker_that_is_only_said_to_be_preparing_is_found_out_where_it_leads(
    world: RollingWorld,
) -> None:
    world.workers["a"].joins_as = "disabled"
    world.tells = False
    failing(
        world.run(*APPLY), "Workers are not in the expected mode", "a:8083 is disabled (verified"
    )
    assert "enabled" not in {mode for _, mode in world.history}


def test_a_connector_that_turns_failed_stops_the_roll(world: RollingWorld) -> None:
    def break_task(world: RollingWorld, name: str) -> None:
        world.tasks["orders", 0] = "FAILED"

    world.on_restart = break_task
    failing(
        world.run(*APPLY), "Health gate failed", "orders/0 is FAILED (java.io.IOException: boom)"
    )
    assert len(world.history) == 1
    world.on_restart = None
    assert world.run("upgrade", "resume", "--yes", "--max-failures", "1").exit_code == 0


def test_what_was_failed_before_is_the_baseline(world: RollingWorld) -> None:
    world.tasks["orders", 0] = "FAILED"
    result = world.run("upgrade", "plan")
    assert (
        "Already failing before the upgrade (ignored by the gates): orders/0 is FAILED"
        in result.stdout
    )
    assert world.run(*APPLY).exit_code == 0
    assert world.restarted_tasks == []


@pytest.mark.parametrize("trace", [FENCED, TAKEN_OVER])
def test_a_task_that_failed_by_fencing_alone_is_restarted_once_and_said(
    world: RollingWorld, trace: str
) -> None:
    world.fences_badly, world.fenced_trace = 1, trace
    result = world.run(*APPLY)
    assert result.exit_code == 0, result.stderr
    assert world.restarted_tasks == ["/connectors/orders/tasks/0/restart"]
    because = (
        "because their zombie fencing failed, their producer was fenced or its transaction expired"
    )
    assert f"restarted once, {because}: orders/0" in result.stdout


def test_a_cluster_that_is_not_healthy_is_left_alone(world: RollingWorld) -> None:
    world.delay_ms = 5000
    failing(world.run(*APPLY), "nothing was changed", "scheduled.rebalance.max.delay.ms", code=4)
    assert world.history == []
    assert "nothing-to-resume" in world.run("upgrade", "resume", "--yes", "-o", "json").stderr


def test_a_property_that_cannot_be_changed_is_known_before(world: RollingWorld) -> None:
    world.workers["a"].obstacle = "a.properties cannot be written"
    failing(world.run(*APPLY), "a:8083 cannot be changed: a.properties cannot be written", code=4)
    assert world.history == []


def test_a_change_that_fails_on_the_way_is_part_done(world: RollingWorld) -> None:
    def lock(world: RollingWorld, name: str) -> None:
        world.workers["b"].obstacle = "b.properties cannot be written"

    world.on_restart = lock
    failing(world.run(*APPLY), "b.properties cannot be written")
    assert world.workers["b"].member


def test_who_leads_by_now_is_left_for_the_end(tmp_path: Path) -> None:
    world = RollingWorld.of(tmp_path, "preparing", "preparing", "preparing", leads="c")
    world.run(*APPLY, "--pause-after", "1")
    world.leads = "a"
    result = world.run("upgrade", "resume", "--yes")
    assert result.exit_code == 0, result.stderr
    assert [name for name, _ in world.history] == ["b", "c", "a"]
    assert (
        "b:8083 instead of a:8083, which is the leader now and is restarted last" in result.stdout
    )


def test_what_somebody_else_changed_meanwhile_stops_a_resume(world: RollingWorld) -> None:
    world.run(*APPLY, "--pause-after", "5")
    world.workers["a"].mode = "enabled"
    failing(world.run("upgrade", "resume", "--yes"), "have been changed meanwhile", code=4)
    assert len(world.history) == 1


def test_abort_takes_back_what_was_changed_and_only_that(tmp_path: Path) -> None:
    world = RollingWorld.of(tmp_path, "disabled", "disabled", "disabled")
    world.run(*APPLY, "--pause-after", "5")
    result = world.run("upgrade", "abort", "--yes", "-o", "json")
    assert checked(result, "upgrade-result")["results"]
    assert world.history == [("a", "preparing"), ("a", "disabled")]
    runs = json.loads(world.run("runs", "list", "-o", "json").stdout)["runs"]
    assert [run["state"] for run in runs] == ["done", "undone"]


def test_abort_goes_back_through_preparing(world: RollingWorld) -> None:
    world.run(*APPLY, "--pause-after", "14")
    assert sorted(world.modes().values(), key=str) == ["enabled", "preparing"]
    assert world.run("upgrade", "abort", "--yes").exit_code == 0
    assert set(world.modes().values()) == {"disabled"}
    last = [mode for _, mode in world.history[3:]]
    assert last == ["preparing", "disabled", "disabled"]


def last_run(world: RollingWorld) -> Any:
    return json.loads(world.run("runs", "list", "-o", "json").stdout)["runs"][0]


def test_a_roll_that_is_done_is_undone_by_runs_undo(world: RollingWorld) -> None:
    assert world.run(*APPLY).exit_code == 0
    run, before = last_run(world)["id"], list(world.history)
    planned = checked(world.run("runs", "undo", run, "--dry-run", "-o", "json"), "plan")
    assert (planned["undoes"], world.history) == (run, before)
    assert world.run("runs", "undo", run, "--yes").exit_code == 0
    assert (set(world.modes().values()), world.violations) == ({"disabled"}, [])
    assert last_run(world)["subjects"] == [f"back from {run}"]
    assert world.notes().get(run).state is RunState.UNDONE
    again = world.run("runs", "undo", run, "--yes")
    assert (again.exit_code, "is undone already" in again.stderr) == (4, True), again.output


def test_a_roll_that_is_done_is_not_undone_where_a_worker_was_changed_since(
    world: RollingWorld,
) -> None:
    assert world.run(*APPLY, "--to", "preparing").exit_code == 0
    run, before = last_run(world)["id"], list(world.history)
    world.workers["a"].file = world.workers["a"].mode = "enabled"
    failing(
        world.run("runs", "undo", run, "--yes"),
        "cannot be undone: its workers have been changed meanwhile",
        "a:8083",
        code=4,
    )
    assert world.history == before


def test_the_plan_in_the_journal_is_the_one_that_was_printed(world: RollingWorld) -> None:
    printed = checked(world.run("upgrade", "apply", "--dry-run", "-o", "json"), "plan")
    world.run(*APPLY, "--pause-after", "1")
    journal = world.notes()
    plan = journal.plan_of(journal.get(last_run(world)["id"]), KINDS)
    assert plan.digest == printed["digest"]
    assert Plan.from_json(plan.as_json(), KINDS) == plan
    assert plan.conditions["gates"]["looks"] == 2
    assert printed["conditions"]["gates"]["looks"] == 3


def test_gates_of_a_resumed_run_and_of_its_undo_are_those_that_it_began_with(
    world: RollingWorld,
) -> None:
    world.run(*APPLY, "--pause-after", "5")
    world.run("upgrade", "resume", "--yes", "--pause-after", "6")
    assert world.run("upgrade", "abort", "--yes", "--gate-timeout", "20").exit_code == 0
    gates = world.notes().plan(last_run(world)["id"])["conditions"]["gates"]
    assert (gates["looks"], gates["timeout"]) == (2, 20)


def test_a_saved_plan_takes_what_fails_by_now_as_the_baseline(
    world: RollingWorld, tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    assert world.run("upgrade", "plan", "--to", "preparing", "--out", str(path)).exit_code == 0
    world.tasks["orders", 0] = "FAILED"
    assert world.run(*APPLY, str(path)).exit_code == 0
    (failed,) = world.notes().plan(last_run(world)["id"])["conditions"]["baseline"]["unhealthy"]
    assert (failed["connector"], failed["task"]) == ("orders", 0)


@pytest.mark.parametrize("command", ["resume", "abort"])
def test_a_run_of_another_operation_is_not_resumed_nor_aborted(
    world: RollingWorld, command: str
) -> None:
    run = world.notes().begin_plan(Plan("fence", "fake-cluster", (), group_id="connect"), ["app-0"])
    failing(
        world.run("upgrade", command, run.id, "--yes"),
        "is not a run of upgrade; it is a run of fence",
        code=2,
    )


def test_a_run_that_is_done_is_neither_resumed_nor_left(world: RollingWorld) -> None:
    assert world.run(*APPLY, "--to", "preparing").exit_code == 0
    run = last_run(world)["id"]
    failing(world.run("upgrade", "resume", run, "--yes"), "there is nothing to resume", code=4)
    failing(
        world.run("upgrade", "abort", run, "--leave", "--yes"), "there is nothing to abort", code=4
    )


def test_abort_can_leave_all_as_it_is(world: RollingWorld) -> None:
    world.run(*APPLY, "--pause-after", "5")
    shown = world.run("upgrade", "abort", "--leave", "--dry-run", "-o", "json")
    assert (
        [noop["subject"] for noop in checked(shown, "plan")["unchanged"]],
        len(world.history),
    ) == (
        [run["id"] for run in json.loads(world.run("runs", "list", "-o", "json").stdout)["runs"]],
        1,
    )
    assert world.run("upgrade", "abort", "--leave", "--yes").exit_code == 0
    assert world.modes() == {"a": "preparing", "b": "disabled"}
    assert world.run("upgrade", "plan", "--exit-code").exit_code == 3


def test_a_person_is_told_and_waited_for(world: RollingWorld) -> None:
    world.by_hand = True
    original = world.sleep

    def somebody_does_it(seconds: float) -> None:
        original(seconds)
        while world.told_person:
            world.restart(world.told_person.pop(0).split()[1].partition(":")[0])

    world.sleep = somebody_does_it  # type: ignore[method-assign]
    assert world.run(*APPLY, "--by-hand-timeout", "3600").exit_code == 0
    assert set(world.modes().values()) == {"enabled"}


def test_workers_that_roll_together_have_one_turn(tmp_path: Path) -> None:
    world = RollingWorld.of(tmp_path, "disabled", "disabled", together="KafkaConnect prod/connect")
    data = checked(world.run("upgrade", "plan", "-o", "json"), "plan")
    assert [s["workers"] for s in data["steps"] if s["step"] == "RestartWorker"] == [
        ["a:8083", "b:8083"]
    ] * 2
    result = world.run(*APPLY)
    assert result.exit_code == 0, result.stderr
    assert set(world.modes().values()) == {"enabled"}


def test_workers_before_3_3_are_recognised(world: RollingWorld) -> None:
    world.workers["a"].version = "3.2.3"
    failing(world.run("upgrade", "plan"), "a:8083 runs 3.2.3", "came with 3.3", code=4)
    listed = checked(world.run("upgrade", "list", "-o", "json"), "migrations")["migrations"]
    assert listed[0]["status"] == "not applicable"


def test_list_shows_what_has_been_applied_and_what_is_pending(world: RollingWorld) -> None:
    def standings() -> dict[str, tuple[str, bool]]:
        listed = checked(world.run("upgrade", "list", "-o", "json"), "migrations")["migrations"]
        return {m["name"]: (m["status"], m["run"] is not None) for m in listed}

    assert standings()["prepare-exactly-once"] == ("pending", False)
    world.run(*APPLY, "--migration", "prepare-exactly-once")
    assert standings()["prepare-exactly-once"] == ("converged", True)
    assert standings()["enable-exactly-once"] == ("pending", False)
    world.run(*APPLY)
    assert standings()["enable-exactly-once"] == ("converged", True)
    assert standings()["soft-downgrade"] == ("possible", False)
    assert "0001-prepare-exactly-once" in world.run("upgrade", "list", "-o", "wide").stdout


def downgraded_by_hand(world: RollingWorld, *, breaks: bool = False) -> None:
    """Somebody replaces the binaries of a worker as soon as it is asked for."""
    original, asked = world.sleep, list(world.workers)

    def sleep(seconds: float) -> None:
        original(seconds)
        notes = list(world.journal.glob("runs/*/notes.json"))
        text = "".join(p.read_text() for p in notes)
        for name in list(asked):
            if f'"{name}:8083": {{"value": "not supported"' in text:
                asked.remove(name)
                world.workers[name].version = "3.2.3"
                world.restart(name)
                if breaks:
                    world.tasks["orders", 1], world.traces["orders", 1] = "FAILED", FENCED

    world.sleep = sleep  # type: ignore[method-assign]


def test_a_hard_downgrade_in_two_steps(tmp_path: Path) -> None:
    world = RollingWorld.of(tmp_path, "enabled", "enabled")
    downgraded_by_hand(world)
    result = world.run(
        *APPLY, "--migration", "hard-downgrade-two-steps", "--by-hand-timeout", "3600"
    )
    assert result.exit_code == 0, result.stderr
    assert [mode for _, mode in world.history][:2] == ["disabled", "disabled"]
    assert {w.version for w in world.workers.values()} == {"3.2.3"}
    assert "install a release before 3.3" in result.stderr


def test_a_hard_downgrade_in_one_step_restarts_what_could_not_fence(tmp_path: Path) -> None:
    world = RollingWorld.of(tmp_path, "enabled", "enabled")
    downgraded_by_hand(world, breaks=True)
    result = world.run(
        *APPLY, "--migration", "hard-downgrade-one-step", "--by-hand-timeout", "3600"
    )
    assert result.exit_code == 0, result.stderr
    assert world.restarted_tasks == ["/connectors/orders/tasks/1/restart"]
    assert world.tasks["orders", 1] == "RUNNING"


def test_runs_show_and_resume_know_upgrades(world: RollingWorld) -> None:
    world.run(*APPLY, "--pause-after", "5")
    (run,) = json.loads(world.run("runs", "list", "-o", "json").stdout)["runs"]
    shown = world.run("runs", "show", run["id"])
    assert f"done       set {PROPERTY}=preparing on a:8083" in shown.stdout
    before = list(world.history)
    assert "preparing on b:8083" in world.run("runs", "resume", run["id"], "--dry-run").stdout
    assert world.history == before
    result = world.run("runs", "resume", run["id"], "--yes")
    assert result.exit_code == 0, result.stderr
    assert set(world.modes().values()) == {"enabled"}


def test_more_workers_roll_one_by_one(tmp_path: Path) -> None:
    world = RollingWorld.of(tmp_path, "disabled", "disabled", "disabled", "disabled", leads="b")
    world.workers["d"] = FakeWorker(member="m9")
    assert world.run(*APPLY).exit_code == 0
    assert set(world.modes().values()) == {"enabled"}
    assert world.violations == []
    assert [name for name, _ in world.history[:4]] == ["a", "c", "d", "b"]


def test_status_tells_what_is_only_in_transition_from_what_has_failed(tmp_path: Path) -> None:
    world = RollingWorld.of(tmp_path, "enabled", "enabled")
    world.tasks = {("orders", 0): "UNASSIGNED", ("orders", 1): "FAILED"}
    shown = world.run("upgrade", "status").stdout
    assert (
        "In transition: orders/0 is UNASSIGNED. It resolves when the rebalance or restart is over"
        in shown
    )
    assert "Unhealthy: orders/1 is FAILED" in shown
    data = json.loads(world.run("upgrade", "status", "-o", "json").stdout)
    assert (data["transient"], len(data["unhealthy"])) == (["orders/0 is UNASSIGNED"], 2)
