"""``connectctl loggers``: levels of all workers, set and set back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from connectctl.cli import apply
from connectctl.ops.core.errors import ConnectctlError
from fakes.adminworkers import ONE, TWO, AdminWorkers, run

OLD = {"root": "INFO", "a.b": "INFO", "a.b.c": "WARN"}


@pytest.fixture(autouse=True)
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    monkeypatch.setattr("connectctl.ops.operations.cluster.loggers.POLL", 0.001)


def last_run() -> str:
    return str(
        json.loads(run(AdminWorkers(), "runs", "list", "-o", "json").stdout)["runs"][0]["id"]
    )


def states() -> list[str]:
    """The states of the runs, the newest first."""
    return [
        each["state"]
        for each in json.loads(run(AdminWorkers(), "runs", "list", "-o", "json").stdout)["runs"]
    ]


def test_levels_are_shown_once_where_workers_have_the_same() -> None:
    workers = AdminWorkers(levels={ONE: OLD, TWO: OLD | {"a.b": "DEBUG"}})
    done = run(workers, "loggers", "get", "a.b")
    assert [line.split() for line in done.stdout.splitlines()[1:]] == [
        ["a.b", "DEBUG", "two:8083"],
        ["a.b", "INFO", "one:8083"],
        ["a.b.c", "WARN", "all"],
    ]
    assert run(workers, "loggers", "get", "-o", "name").stdout == "a.b\na.b.c\nroot\n"
    assert "effective: INFO" in run(workers, "loggers", "get", "x.y").stderr


def test_new_workers_are_set_by_one_request_and_back_to_what_each_had() -> None:
    workers = AdminWorkers(levels={ONE: dict(OLD), TWO: OLD | {"a.b": "ERROR"}})
    done = run(workers, "loggers", "set", "a.b", "debug", "--yes")
    assert (done.exit_code, workers.sent) == (0, ["/admin/loggers/a.b?scope=cluster DEBUG"]), (
        done.output
    )
    assert workers.levels[TWO] == {"root": "INFO", "a.b": "DEBUG", "a.b.c": "DEBUG"}
    undone = run(workers, "loggers", "undo", last_run(), "--yes")
    assert undone.exit_code == 0, undone.output
    assert workers.levels == {ONE: OLD, TWO: OLD | {"a.b": "ERROR"}}


def test_an_undo_leaves_workers_alone_that_are_not_in_the_group_any_more() -> None:
    workers = AdminWorkers(levels={ONE: dict(OLD), TWO: dict(OLD)})
    run(workers, "loggers", "set", "a.b", "DEBUG", "--yes")
    first, workers.urls, workers.sent = last_run(), (TWO,), []
    undone = run(workers, "loggers", "undo", first, "--yes")
    assert (undone.exit_code, "one:8083: it is not one of the workers now" in undone.output) == (
        0,
        True,
    )
    assert (workers.levels[TWO], workers.levels[ONE]["a.b"]) == (OLD, "DEBUG")
    run(workers, "loggers", "set", "a.b", "DEBUG", "--yes")
    second, workers.urls, workers.sent = last_run(), (ONE,), []
    refused = run(workers, "loggers", "undo", second, "--yes")
    assert (refused.exit_code, workers.sent) == (4, []), refused.output


def test_runs_undo_restores_levels() -> None:
    workers = AdminWorkers(levels={ONE: dict(OLD), TWO: dict(OLD)})
    run(workers, "loggers", "set", "a.b", "DEBUG", "--yes")
    done = run(workers, "runs", "undo", last_run(), "--yes")
    assert done.exit_code == 0, done.output
    assert workers.levels == {ONE: OLD, TWO: OLD}


def test_levels_that_somebody_changed_since_are_left_and_named() -> None:
    workers = AdminWorkers(levels={ONE: dict(OLD), TWO: dict(OLD)})
    run(workers, "loggers", "set", "a.b", "DEBUG", "--yes")
    undone, workers.sent = last_run(), []
    workers.levels[TWO]["a.b.c"] = "TRACE"
    refused = run(workers, "runs", "undo", undone, "--yes")
    assert (refused.exit_code, workers.sent) == (4, []), refused.output
    assert "a.b.c is TRACE on two:8083, not DEBUG" in refused.stderr
    workers.levels[TWO] = dict(OLD)  # as after a restart of the worker
    done = run(workers, "runs", "undo", undone, "--yes")
    assert (done.exit_code, workers.levels) == (0, {ONE: OLD, TWO: OLD}), done.output
    assert "two:8083: it has its former levels" in done.output


def test_a_level_that_is_changed_behind_the_plan_of_an_undo_is_not_overwritten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workers = AdminWorkers(levels={ONE: dict(OLD), TWO: dict(OLD)})
    run(workers, "loggers", "set", "a.b", "DEBUG", "--yes")
    confirm = apply.confirm

    def changes_meanwhile(*args: Any, **more: Any) -> Any:
        workers.levels[TWO]["a.b"] = "TRACE"
        return confirm(*args, **more)

    monkeypatch.setattr(apply, "confirm", changes_meanwhile)
    refused = run(workers, "runs", "undo", last_run(), "--yes")
    assert (refused.exit_code, workers.levels[TWO]["a.b"]) == (4, "TRACE"), refused.output
    assert "a.b is TRACE on two:8083, not DEBUG" in refused.output


def test_loggers_undo_is_for_changes_of_levels_alone() -> None:
    workers = AdminWorkers()
    run(workers, "loggers", "set", "a.b", "DEBUG", "--yes")
    run(workers, "loggers", "undo", last_run(), "--yes")
    refused = run(workers, "loggers", "undo", last_run(), "--yes")
    assert (refused.exit_code, "it is a run of loggers undo" in refused.stderr) == (2, True), (
        refused.output
    )


def test_an_undo_that_failed_and_is_resumed_ends_the_run_that_it_undoes() -> None:
    workers = AdminWorkers()
    run(workers, "loggers", "set", "a.b", "DEBUG", "--yes")
    undone = last_run()
    workers.errors = {f"{TWO}/admin/loggers/a.b": ConnectctlError("The worker answers 500")}
    assert run(workers, "loggers", "undo", undone, "--yes").exit_code == 1
    assert states() == ["failed", "done"]
    workers.errors = {}
    assert run(workers, "runs", "resume", last_run(), "--yes").exit_code == 0
    assert states() == ["done", "undone"]
    again = run(workers, "loggers", "undo", undone, "--yes")
    assert (again.exit_code, "is undone already; there is nothing to undo" in again.stderr) == (
        4,
        True,
    ), again.output


def test_an_old_worker_makes_the_plan_name_each() -> None:
    workers = AdminWorkers(versions={TWO: "3.6.2"})
    plan = run(workers, "loggers", "set", "a.b", "DEBUG", "--dry-run")
    assert "set a.b to DEBUG on one:8083 (now INFO)" in plan.stdout
    assert "set a.b to DEBUG on two:8083 (now INFO)" in plan.stdout
    assert run(workers, "loggers", "set", "a.b", "DEBUG", "--yes").exit_code == 0
    assert workers.sent == [f"{ONE}/admin/loggers/a.b DEBUG", f"{TWO}/admin/loggers/a.b DEBUG"]


def test_one_worker_is_set_by_itself_and_what_is_so_already_is_not() -> None:
    workers = AdminWorkers()
    assert (
        run(workers, "loggers", "set", "root", "WARN", "--worker", "two:8083", "--yes").exit_code
        == 0
    )
    assert workers.sent == [f"{TWO}/admin/loggers/root WARN"]
    again = run(workers, "loggers", "set", "root", "WARN", "--scope", "worker", "--dry-run")
    assert "two:8083: root is WARN already" in again.stdout


@pytest.mark.parametrize("more", [(), ("--scope", "worker"), ("--worker", "two:8083")])
def test_a_saved_plan_is_applied_unless_levels_have_changed(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    workers = AdminWorkers()
    plan = tmp_path / "plan.json"
    plan.write_text(
        run(workers, "loggers", "set", "root", "WARN", *more, "--dry-run", "-o", "json").stdout
    )
    changed = AdminWorkers(levels={ONE: {"root": "OFF"}, TWO: {"root": "OFF"}})
    stale = run(changed, "runs", "apply", str(plan), "--yes")
    assert (stale.exit_code, "The plan is stale" in stale.stderr, changed.sent) == (4, True, []), (
        stale.output
    )
    done = run(workers, "runs", "apply", str(plan), "--yes")
    assert (done.exit_code, workers.levels[TWO]["root"]) == (0, "WARN"), done.output


def test_a_saved_plan_of_an_undo_is_refused_with_what_to_do_instead(tmp_path: Path) -> None:
    workers = AdminWorkers()
    run(workers, "loggers", "set", "a.b", "DEBUG", "--yes")
    plan = tmp_path / "plan.json"
    plan.write_text(run(workers, "loggers", "undo", last_run(), "--dry-run", "-o", "json").stdout)
    done = run(workers, "runs", "apply", str(plan), "--yes")
    assert (done.exit_code, "connectctl runs undo RUN" in done.stderr) == (2, True), done.output


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["set", "a", "LOUD"], "Invalid value for 'LEVEL'"),
        (["set", "a", "DEBUG", "--worker", "three:1"], "Worker not found: three:1"),
        (["set", "a", "DEBUG", "--scope", "world"], "Invalid value for '--scope'"),
        (["get", "a", "--worker", "three:1"], "Workers: one:8083, two:8083."),
        (["undo", "20260101-120000-ab12"], "20260101-120000-ab12"),
    ],
)
def test_what_is_wrong_is_said(args: list[str], words: str) -> None:
    workers = AdminWorkers()
    done = run(workers, "loggers", *args)
    assert (done.exit_code, workers.sent) == (2, []), done.output
    assert words in done.stderr


def test_a_run_is_undone_once() -> None:
    workers = AdminWorkers()
    run(workers, "loggers", "set", "a.b", "DEBUG", "--yes")
    id_ = last_run()
    assert run(workers, "loggers", "undo", id_, "--yes").exit_code == 0
    assert run(workers, "loggers", "undo", id_, "--yes").exit_code == 4


def test_a_worker_without_the_admin_listener_is_named_with_the_reason() -> None:
    gone = ConnectctlError("The worker answers 404", why="Not Found", code="starting")
    done = run(AdminWorkers(errors={f"{TWO}/admin": gone}), "loggers", "get")
    assert (done.exit_code, "admin.listeners" in done.stderr) == (1, True)
