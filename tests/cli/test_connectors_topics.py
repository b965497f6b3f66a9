"""``connectctl connectors topics``: what tasks were seen to use."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.adminworkers import AdminWorkers, run


@pytest.fixture(autouse=True)
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))


def test_active_topics_are_listed() -> None:
    assert run(AdminWorkers(), "connectors", "topics", "orders").stdout == "TOPIC\nt\nu\n"
    assert run(AdminWorkers(), "connectors", "topics", "orders", "-o", "name").stdout == "t\nu\n"


def test_no_topic_is_told_from_no_connector() -> None:
    workers = AdminWorkers(active={})
    none = run(workers, "connectors", "topics", "orders")
    assert (none.exit_code, "orders has used no topic" in none.stderr) == (0, True)
    missing = run(workers, "connectors", "topics", "nobody")
    assert (missing.exit_code, "Connector not found: nobody" in missing.stderr) == (2, True)


def test_tracking_that_is_off_is_no_lack_of_rights() -> None:
    done = run(AdminWorkers(tracking=False), "connectors", "topics", "orders")
    assert (done.exit_code, "topic.tracking.enable is off" in done.stderr) == (1, True)


def test_a_reset_is_a_change_with_a_plan() -> None:
    workers = AdminWorkers()
    plan = run(workers, "connectors", "topics", "orders", "--reset", "--dry-run")
    assert "reset the active topics of orders: t, u" in plan.stdout
    assert (workers.sent, run(workers, "connectors", "topics", "orders", "--reset").exit_code) == (
        [],
        2,
    )
    done = run(workers, "connectors", "topics", "orders", "--reset", "--yes")
    assert (done.exit_code, workers.sent) == (0, ["/connectors/orders/topics/reset"]), done.output
    again = run(workers, "connectors", "topics", "orders", "--reset", "--yes")
    assert (again.exit_code, "no active topics" in again.stdout) == (0, True)


def test_a_saved_plan_of_a_reset_is_applied_unless_topics_have_come(tmp_path: Path) -> None:
    workers = AdminWorkers()
    plan = tmp_path / "plan.json"
    plan.write_text(
        run(workers, "connectors", "topics", "orders", "--reset", "--dry-run", "-o", "json").stdout
    )
    stale = run(AdminWorkers(active={"orders": ["t"]}), "runs", "apply", str(plan), "--yes")
    assert (stale.exit_code, "The plan is stale" in stale.stderr) == (4, True), stale.output
    done = run(workers, "runs", "apply", str(plan), "--yes")
    assert (done.exit_code, workers.sent) == (0, ["/connectors/orders/topics/reset"]), done.output


def test_options_of_a_change_need_the_change() -> None:
    assert run(AdminWorkers(), "connectors", "topics", "orders", "--yes").exit_code == 2
    assert (
        run(AdminWorkers(), "connectors", "topics", "orders", "--reset", "-o", "name").exit_code
        == 2
    )
