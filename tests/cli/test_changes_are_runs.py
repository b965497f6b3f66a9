"""Every command that changes something: its run is in the journal, it holds the lock, and a kill
leaves a run to resume.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from connectctl.cli import flow
from connectctl.migrations.operations import OPERATIONS as REGISTRY
from connectctl.ops.config import paths
from connectctl.ops.connect.cluster_lock import LockHolder
from connectctl.ops.connect.connector import State
from connectctl.ops.core.journal import Journal, Run, RunState
from connectctl.ops.core.plan import Plan
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.operations.connectors.steps import Await, SetTargetState
from connectctl.ops.registry import KINDS
from connectctl.ops.task_runtime.job import hand_back
from depth import deep
from fakes.changingworld import (
    IDS,
    OPERATIONS,
    UNDO,
    UNDOING,
    Clock,
    Killed,
    World,
    timed_by,
)
from fakes.endedtasks import without_spark
from fakes.inline import without_threads
from fakes.kafkareads import connect_group
from fakes.memory import directory_in_memory

STRIDE = deep(1, 4)
"""Between two points at which a change is killed; each operation begins with another."""


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    without_threads(monkeypatch)
    with directory_in_memory() as path:
        yield path


@pytest.fixture
def world(directory: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(flow, "context_of", partial(timed_by, Clock(), flow.context_of))
    monkeypatch.setattr("connectctl.ops.operations.fencing.batch_fencer.FIRST_PAUSE", 0.001)
    monkeypatch.setattr(hand_back, "alone", lambda clients, name: nullcontext())
    without_spark(monkeypatch)
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(directory / "journal"))
    return World(directory)


@contextmanager
def killed_when_begun(world: World) -> Iterator[None]:
    """The process is killed when its first step is marked as begun, and nothing has been asked
    for.
    """
    world.left = 2
    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        patch.setattr(Journal, "mark", world.counted(Journal.mark))
        yield
    world.left = -1
    assert [run["state"] for run in world.runs()] == ["open"]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_change_is_in_the_list_of_runs_and_held_the_lock(world: World, operation: str) -> None:
    done = world.change(operation, "--yes")
    assert done.exit_code == 0, done.output
    (run,) = world.runs()
    assert (run["operation"], run["state"], run["groupId"]) == (operation, "done", "connect")
    assert set(world.session.lock.taken) == {run["id"]}
    shown = world.run("runs", "show", run["id"])
    assert shown.exit_code == 0, shown.output
    again = world.run("runs", "resume", run["id"], "--yes")
    assert (again.exit_code, "nothing to resume" in again.stderr) == (4, True)


ELSEWHERE = {
    "offsets": "tests/ops/operations/offsets/test_fail_at.py",
    "run members": "tests/ops/task_runtime/job/test_left_members.py",
    "run sweep": "tests/cli/test_run_sweep.py",
    "upgrade": "tests/ops/operations/upgrade/test_fail_at.py",
    "loggers undo": "tests/cli/test_loggers.py",
}
"""Operations that this world does not have, by name or noun, and the test that performs and undoes
them.
"""


def requested(world: World) -> Any:
    """What was requested of connectors, coordinators and loggers; whether tasks failed is not a
    request.
    """
    connectors, *others = copy.deepcopy(world.state())
    own = {
        name: (target, dict(config) | {"name": name})
        for name, (target, _, config) in connectors.items()
    }
    return own, others


def test_every_operation_is_tried() -> None:
    tried = {
        name
        for name in REGISTRY
        if name in OPERATIONS or {name, name.partition(" ")[0]} & ELSEWHERE.keys()
    }
    assert tried == REGISTRY.keys()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_undo_restores_what_a_run_changed_or_says_why_nothing_can_be_undone(
    world: World, operation: str
) -> None:
    world.prepare(operation)
    before = requested(world)
    assert world.change(operation, "--yes").exit_code in (0, 1)
    after = requested(world)
    (run,) = world.runs()
    planned = world.run("runs", "undo", run["id"], "--dry-run", "-o", "json")
    assert requested(world) == after
    undone = world.run("runs", "undo", run["id"], "--yes", "--wait")
    if REGISTRY[operation].irreversible:
        assert (undone.exit_code, "cannot be undone; nothing was done" in undone.stderr) == (
            4,
            True,
        ), undone.output
        assert requested(world) == after
        return
    # A task of users had failed before: it is as it was, and not healthy.
    as_it_was = operation in ("connectors patch", UNDO)
    assert undone.exit_code == as_it_was, undone.output
    assert json.loads(planned.stdout)["undoes"] == run["id"]
    assert requested(world) == before, undone.output
    assert {each["state"] for each in world.runs()} == (
        {"done", "failed"} if as_it_was else {"done", "undone"}
    )


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_second_change_beside_it_is_refused_with_who_holds_the_lock(
    world: World, operation: str
) -> None:
    world.session.lock.other = LockHolder(
        "20260101-103100-ab12", "anna@ops-1", "2026-01-01T10:31:00Z"
    )
    refused = world.change(operation, "--yes")
    assert refused.exit_code == 4
    assert "anna@ops-1" in refused.stderr
    assert world.changed == []
    assert [run["state"] for run in world.runs()] == ["refused"]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_second_change_with_the_same_journal_is_refused_with_its_process(
    world: World, operation: str
) -> None:
    with Journal(world.directory / "journal").locked(
        "fake-cluster", "connect", "20260101-103100-ab12"
    ):
        refused = world.change(operation, "--yes")
    assert refused.exit_code == 4
    assert "run 20260101-103100-ab12" in refused.stderr
    assert world.changed == []


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_dry_run_leaves_no_run_and_takes_no_lock(world: World, operation: str) -> None:
    assert world.change(operation, "--dry-run").exit_code == 0
    assert (world.runs(), world.session.lock.taken, world.changed) == ([], [], [])


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_plan_in_the_journal_is_what_the_dry_run_printed(world: World, operation: str) -> None:
    planned = json.loads(world.change(operation, "--dry-run", "-o", "json").stdout)
    assert world.change(operation, "--yes").exit_code == 0
    journal = Journal(world.directory / "journal")
    (run,) = [run for run in journal.runs() if run.id != world.former]
    plan = journal.plan_of(run, KINDS)
    assert Plan.from_json(plan.as_json(), KINDS) == plan
    assert (planned["kind"], planned["digest"]) == ("Plan", plan.digest)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_without_a_journal_nothing_is_changed(
    world: World, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = world.directory / "file"
    file.write_text("")
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(file / "journal"))
    refused = world.change(operation, "--yes")
    assert (refused.exit_code, world.changed) == (1, [])
    assert re.search("The journal in .* cannot be (written; nothing was done|read)", refused.stderr)


def killed_worlds(
    world: World, operation: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[int, World, dict[str, Any]]]:
    """Worlds in which ``operation`` was killed, each at another call, and its run."""
    for points in itertools.count(1 + OPERATIONS.index(operation) % STRIDE, STRIDE):
        directory = world.directory / str(points)
        directory.mkdir()
        monkeypatch.setenv("CONNECTCTL_JOURNAL", str(directory / "journal"))
        victim = World(directory, left=points)
        with pytest.MonkeyPatch.context() as counted:
            for name in ("mark", "end"):
                counted.setattr(Journal, name, victim.counted(getattr(Journal, name)))
            try:
                victim.change(operation, "--yes")
            except Killed:
                pass
            else:
                assert points > 6
                return
        victim.left = -1
        victim.new_session()
        if not victim.runs():
            assert victim.changed == []
            continue
        (run,) = victim.runs()
        yield points, victim, run


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_change_that_is_killed_anywhere_leaves_a_run_that_is_resumed(
    world: World, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.change(operation, "--yes").exit_code == 0
    wanted = world.state()
    for points, victim, run in killed_worlds(world, operation, monkeypatch):
        changed = list(victim.changed)
        # A run whose connector was not stopped yet has nothing to hand back.
        begun = operation != "run" or changed or run_of(victim, run).done(0)
        if run["state"] == "open":
            left = victim.run("runs", "resume", run["id"], "--dry-run", "-o", "json")
            assert (victim.changed, victim.runs()) == (changed, [run])
            resumed = victim.run("runs", "resume", run["id"], "--yes")
            if not begun and left.exit_code == 4:
                assert (resumed.exit_code, victim.changed) == (4, []), resumed.output
                assert "there is nothing to hand back" in resumed.stderr
                assert victim.runs()[0]["state"] == "failed"
                continue
            assert (left.exit_code, json.loads(left.stdout)["operation"]) == (
                0,
                f"resume {operation}",
            ), left.output
            assert resumed.exit_code == 0, (points, resumed.output)
        assert victim.runs()[0]["state"] == "done"
        former = (
            Journal(paths.journal_directory()).get(str(victim.former)).state
            if victim.former
            else None
        )
        assert former is (RunState.UNDONE if operation in UNDOING else None)
        assert victim.state() == wanted, points


def run_of(world: World, run: dict[str, Any]) -> Run:
    return Journal(paths.journal_directory()).get(run["id"])


def test_a_take_over_that_is_killed_anywhere_is_undone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = world.state()
    undone = 0
    for points, victim, run in killed_worlds(world, "run", monkeypatch):
        stopped = victim.workers.sent == ["PUT /connectors/orders/stop"]
        planned = victim.run("runs", "undo", run["id"], "--dry-run", "-o", "json")
        said = victim.run("runs", "undo", run["id"], "--yes")
        assert victim.state() == before, points
        assert planned.exit_code == said.exit_code, said.output
        if stopped:
            undone += 1
            plan = json.loads(planned.stdout)
            assert (said.exit_code, plan["operation"]) == (0, "run hand-back"), said.output
            assert plan["undoes"] == run["id"]
            assert {each["state"] for each in victim.runs()} == {"done", "undone"}
        else:
            assert said.exit_code == 4, (points, said.output)
    assert undone > 1


def test_a_take_over_is_not_undone_where_others_changed_the_connector_since(world: World) -> None:
    run = world.taken_over(0, 1)
    assert world.run("connectors", "resume", "off", "--yes", "--wait").exit_code == 0
    changed = list(world.changed)
    refused = world.run("runs", "undo", run, "--yes")
    assert (refused.exit_code, world.changed) == (4, changed), refused.output
    assert f"off was changed since the run {run}; nothing was undone" in refused.stderr


def test_an_id_that_was_fenced_before_the_kill_is_not_fenced_again(world: World) -> None:
    real = world.coordinators.fence

    def fence(timeouts: Any, patience: float, told: Any) -> None:
        def heard(id_: str, answer: Any) -> None:
            told(id_, answer)
            if id_ == IDS[1]:
                raise Killed

        real(timeouts, patience, heard)

    world.coordinators.fence = fence  # type: ignore[method-assign]
    with pytest.raises(Killed):
        world.change("fence", "--yes")
    world.coordinators.fence = real  # type: ignore[method-assign]
    (run,) = world.runs()
    before = list(world.coordinators.asked)
    assert world.run("runs", "resume", run["id"], "--yes").exit_code == 0
    assert IDS[1] in before
    assert IDS[1] not in world.coordinators.asked[len(before) :]


def test_a_fence_is_not_resumed_where_a_task_took_its_id_back_meanwhile(world: World) -> None:
    id_ = "connect-orders-0"
    world.coordinators.known[id_] = Transaction(id_, "Empty", 20, 0)
    group = world.kafka.groups["connect"]
    world.kafka.groups["connect"] = connect_group("connect", one=[("orders", -1)])
    with killed_when_begun(world):
        world.run("fence", "--transactional-id", id_, "--yes")
    world.kafka.groups["connect"] = group
    (run,) = world.runs()
    asked = list(world.coordinators.asked)
    refused = world.run("runs", "resume", run["id"], "--yes")
    assert refused.exit_code == 4, refused.output
    assert "running tasks would fail: " in refused.stderr
    assert world.coordinators.asked == asked


def test_a_run_whose_connector_failed_is_resumed_with_the_restart_that_it_needs_as_a_step(
    world: World,
) -> None:
    steps = (SetTargetState("users", "resume", now="PAUSED"), Await("users", State.RUNNING))
    journal = Journal(world.directory / "journal")
    plan = Plan("connectors resume", "fake-cluster", steps, group_id="connect", independent=True)
    run = journal.begin_plan(plan)
    for number, what in enumerate(("done", "failed")):
        journal.mark(run.id, number, what)
    journal.end(run.id, RunState.FAILED)
    left = world.run("runs", "resume", run.id, "--dry-run")
    assert "1. restart the failed parts of users, and wait until it is RUNNING" in left.stdout
    assert world.workers.connectors["users"].tasks == ["RUNNING", "FAILED"]
    resumed = world.run("runs", "resume", run.id, "--yes")
    assert (resumed.exit_code, world.runs()[0]["state"]) == (0, "done"), resumed.output
    assert world.workers.connectors["users"].tasks == ["RUNNING", "RUNNING"]


def test_an_abort_is_not_resumed_for_another_producer(world: World) -> None:
    with killed_when_begun(world):
        world.change("transactions abort", "--yes")
    world.coordinators.known[IDS[0]] = Transaction(
        IDS[0], "Ongoing", 7, 9, 60_000, 1, (TopicPartition("t", 0),)
    )
    (run,) = world.runs()
    refused = world.run("runs", "resume", run["id"], "--yes")
    assert (refused.exit_code, "another producer" in refused.stderr) == (4, True), refused.output
    assert Journal(world.directory / "journal").get(run["id"]).state in (
        RunState.REFUSED,
        RunState.FAILED,
    )


def test_a_run_of_another_cluster_is_not_resumed_here(world: World) -> None:
    with killed_when_begun(world):
        world.change("connectors stop", "--yes")
    (run,) = world.runs()
    world.session.told["group_id"] = "other"
    world.kafka.groups["other"] = connect_group("other", one=[("orders", -1)])
    world.session.__dict__.pop("settings", None)
    refused = world.run("runs", "resume", run["id"], "--yes")
    assert (refused.exit_code, "is of the group connect" in refused.stderr) == (4, True), (
        refused.output
    )


def saved(world: World, operation: str, *more: str) -> Path:
    """What the dry run of ``operation`` prints, in a file."""
    path = world.directory / "plan.json"
    path.write_text(world.change(operation, "--dry-run", "-o", "json", *more).stdout)
    return path


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_saved_plan_is_carried_out_as_it_is_written_and_leaves_a_run(
    world: World, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = saved(world, operation)
    data = json.loads(plan.read_text())
    applied = world.run("runs", "apply", str(plan), "--yes", "-o", "json")
    assert applied.exit_code == 0, applied.output
    journal = Journal(world.directory / "journal")
    (run,) = [run for run in journal.runs() if run.id != world.former]
    assert (run.operation, run.state) == (operation, RunState.DONE)
    assert journal.plan_of(run, KINDS).digest == data["digest"]
    assert set(world.session.lock.taken) == {run.id}
    other = world.directory / "direct"
    other.mkdir()
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(other / "journal"))
    direct = World(other)
    said = direct.change(operation, "--yes", "-o", "json")
    assert direct.state() == world.state()
    assert json.loads(said.stdout).keys() == json.loads(applied.stdout).keys()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_plan_that_was_carried_out_already_is_stale(world: World, operation: str) -> None:
    plan = saved(world, operation)
    assert world.run("runs", "apply", str(plan), "--yes").exit_code == 0
    before = list(world.changed)
    again = world.run("runs", "apply", str(plan), "--yes")
    if operation in ("fence", "run"):  # the same ids are fenced, and the same tasks run, again
        assert again.exit_code == 0
        return
    assert again.exit_code == 4, again.output
    assert world.changed == before


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_plan_of_another_cluster_is_refused(world: World, operation: str) -> None:
    plan = saved(world, operation)
    world.new_session()
    world.session.told["group_id"] = "other"
    world.kafka.groups["other"] = connect_group("other", one=[("orders", -1)])
    refused = world.run("runs", "apply", str(plan), "--yes")
    assert (refused.exit_code, "The plan is for the group connect" in refused.stderr) == (
        4,
        True,
    ), refused.output
    assert (world.changed, world.runs()) == ([], [])


def test_a_plan_is_stale_where_a_connector_changed_meanwhile(world: World) -> None:
    plan = saved(world, "connectors stop")
    world.workers.connectors["users"].tasks = ["RUNNING", "RUNNING"]
    refused = world.run("runs", "apply", str(plan), "--yes")
    assert refused.exit_code == 4
    assert "The plan is stale: now it would be: 2. stop users (now RUNNING" in refused.stderr
    assert (world.changed, world.runs()) == ([], [])


def test_a_fence_is_stale_where_a_task_has_the_id_by_now(world: World) -> None:
    id_ = "connect-orders-0"
    world.coordinators.known[id_] = Transaction(id_, "Empty", 20, 0)
    group = world.kafka.groups["connect"]
    world.kafka.groups["connect"] = connect_group("connect", one=[("orders", -1)])
    plan = world.directory / "plan.json"
    plan.write_text(world.run("fence", "--transactional-id", id_, "--dry-run", "-o", "json").stdout)
    world.kafka.groups["connect"] = group
    refused = world.run("runs", "apply", str(plan), "--yes")
    assert (refused.exit_code, "or their running tasks have changed" in refused.stderr) == (
        4,
        True,
    ), refused.output
    assert world.coordinators.asked == []


def test_an_abort_is_stale_for_another_producer(world: World) -> None:
    plan = saved(world, "transactions abort")
    world.coordinators.known[IDS[0]] = Transaction(
        IDS[0], "Ongoing", 7, 9, 60_000, 1, (TopicPartition("t", 0),)
    )
    refused = world.run("runs", "apply", str(plan), "--yes")
    assert (refused.exit_code, "The plan is stale" in refused.stderr) == (4, True), refused.output


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "is not a plan"),
        ("[]", "it is not a JSON object"),
        ('{"kind": "FenceResult"}', "kind FenceResult; --dry-run -o json prints the plan"),
        ('{"operation": "walk"}', "connectctl runs resume"),
        ('{"operation": "resume upgrade"}', "Resume the run itself: connectctl runs resume RUN"),
        ('{"operation": "upgrade abort"}', "connectctl upgrade abort --leave"),
        ('{"operation": "connectors stop"}', "it has no digest"),
        ('{"operation": "connectors stop", "digest": "x"}', "it has no member 'clusterId'"),
    ],
)
def test_what_is_no_plan_is_refused_with_the_reason(world: World, content: str, why: str) -> None:
    path = world.directory / "plan.json"
    path.write_text(content)
    refused = world.run("runs", "apply", str(path))
    assert (refused.exit_code, why in refused.stderr) == (2, True), refused.output


def test_a_plan_that_was_edited_is_refused(world: World) -> None:
    plan = saved(world, "connectors stop")
    plan.write_text(plan.read_text().replace("orders", "off"))
    refused = world.run("runs", "apply", str(plan), "--yes")
    assert (refused.exit_code, "changed after it was made" in refused.stderr) == (2, True), (
        refused.output
    )


def test_a_take_over_that_was_killed_is_resumed_by_handing_the_connector_back(world: World) -> None:
    run = world.taken_over(0, 1)
    world.coordinators.known["connect-off-0"] = Transaction("connect-off-0", "Empty", 20, 0)
    left = world.run("runs", "resume", run, "--dry-run")
    assert (left.exit_code, "1. resume off on its workers" in left.stdout, world.changed) == (
        0,
        True,
        [],
    ), left.output
    assert [r["state"] for r in world.runs()] == ["open"]
    resumed = world.run("runs", "resume", run, "--yes")
    assert resumed.exit_code == 0, resumed.output
    assert world.coordinators.asked == ["connect-off-0"]
    assert world.workers.connectors["off"].own == "RUNNING"
    assert (world.runs()[0]["state"], world.session.lock.taken) == ("done", [run])


def test_a_change_names_earlier_runs_that_did_not_end_and_reads_none_of_their_plans(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(world.directory / "journal")
    for operation, state in (
        ("connectors stop", RunState.FAILED),
        ("offsets set", RunState.FAILED),
        ("upgrade", None),
    ):
        run = journal.begin(operation, "fake-cluster", "connect", ("a",), {})
        journal.mark(run.id, 0, "begun")
        if state:
            journal.end(run.id, state)

    def read(*given: Any) -> None:
        raise AssertionError("a plan was read")

    monkeypatch.setattr(Journal, "read", read)
    stopped = world.run("connectors", "stop", "orders", "--yes")
    assert stopped.exit_code == 0, stopped.output
    told = [
        each
        for each in ("connectors stop", "offsets set", "upgrade")
        if f"({each} a) did not end" in stopped.stderr
    ]
    assert told == ["offsets set", "upgrade"]


@pytest.mark.parametrize(("begun", "named"), [((0, 1), True), ((), False), ((1,), False)])
def test_a_change_names_a_run_of_a_job_only_where_it_has_a_connector_to_hand_back(
    world: World, begun: tuple[int, ...], named: bool
) -> None:
    run = world.taken_over(*begun)
    stopped = world.run("connectors", "stop", "orders", "--yes")
    assert (stopped.exit_code, f"the run {run} (run off) did not end" in stopped.stderr) == (
        0,
        named,
    ), stopped.output


def test_a_hand_back_fences_no_task_of_workers_that_have_the_connector_again(world: World) -> None:
    run = world.taken_over(0)
    world.coordinators.known["connect-off-0"] = Transaction("connect-off-0", "Empty", 20, 0)
    assert world.run("connectors", "resume", "off", "--yes", "--wait").exit_code == 0
    sent = list(world.changed)
    resumed = world.run("runs", "resume", run, "--yes")
    assert (resumed.exit_code, "handed back to its workers" in resumed.stdout) == (0, True), (
        resumed.output
    )
    assert world.changed == sent


def test_a_run_that_has_nothing_to_hand_back_is_ended_and_says_how_it_goes_on(world: World) -> None:
    run = world.taken_over()
    assert world.run("runs", "resume", run, "--dry-run").exit_code == 4
    assert world.runs()[0]["state"] == "open"
    explained = world.run("runs", "resume", run, "--yes")
    assert (explained.exit_code, "connectctl run FILE" in explained.stderr) == (4, True), (
        explained.output
    )
    assert (world.runs()[0]["state"], world.changed) == ("failed", [])


def test_a_file_without_ids_is_what_an_error_of_fence_names(world: World, tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("\n")
    ran = world.run("fence", "--from-file", str(tmp_path / "ids.txt"), "--yes")
    assert (ran.exit_code, "ids.txt has no transactional id" in ran.stderr) == (2, True), ran.stderr
