"""The journal's secrets: which are kept, for how long, and ``runs prune``."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from connectctl.ops.clients.secrets import reveal
from connectctl.ops.config.settings import SecretSource
from connectctl.ops.connect import target_state_wait
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.journal import Journal, RunState
from connectctl.ops.core.journal_prune import BEGINNING, age, plan_prune, prune
from connectctl.ops.operations.connectors.config.values import (
    content,
    digest,
    store_configs,
    stored_config,
)
from fakes.changingworld import World

SECRET, OTHER = "Pl4nt3d-one", "Pl4nt3d-two"
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/pruned.json").read_text())


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(target_state_wait, "STEADY", 0.0)
    monkeypatch.setattr("connectctl.ops.operations.connectors.steps.QUICK_POLL", 0.001)
    monkeypatch.setattr("connectctl.ops.operations.connectors.steps.POLL", 0.001)
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    return World(tmp_path)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path / "journal")
    made.reveal = reveal
    return made


def texts(journal: Journal) -> str:
    return "".join(p.read_text("latin-1") for p in journal.directory.rglob("*") if p.is_file())


def references(value: str = SECRET) -> Any:
    return {"c": {"db.password": (SecretSource("env", "DB"), value)}}


def ended(
    journal: Journal,
    *configs: dict[str, str],
    state: RunState | None = RunState.DONE,
    hours: float = 2,
) -> str:
    """A run of these configurations that ended so; None for one that is open. They were written
    ``hours`` before.
    """
    store_configs(configs, journal)
    plan = {"steps": [{"after": digest(config)} for config in configs]}
    run = journal.begin("connectors apply", "cluster", "group", ("c",), plan)
    journal.mark(run.id, 0, "begun")
    if state is not None:
        journal.end(run.id, state)
    for path in journal.path("kept", "").iterdir():
        os.utime(path, (time.time() - max(hours * BEGINNING, 1),) * 2)
    return run.id


@pytest.mark.parametrize("name", ["orders", "fresh"])
def test_a_secret_that_a_file_refers_to_is_not_in_the_journal(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB", SECRET)
    verb = "create" if name == "fresh" else "apply"
    file = world.directory / "given.json"
    config = {"name": name, "connector.class": "x.y.Source", "db.password": {"env": "DB"}}
    file.write_text(json.dumps(config))
    assert world.run("connectors", verb, "-f", str(file), "--yes").exit_code == 0
    assert world.workers.connectors[name].config["db.password"] == SECRET
    journal = Journal(world.directory / "journal")
    assert SECRET not in texts(journal)
    # A later change that does not know the reference finds the secret on the workers, which an undo
    # then needs.
    assert world.run("connectors", "patch", name, "a=1", "--yes").exit_code == 0
    for _ in range(2):
        run = next(
            run["id"]
            for run in world.runs()
            if run["state"] == "done" and "undo" not in run["operation"]
        )
        undone = world.run("runs", "undo", run, "--yes")
        assert undone.exit_code == 0, undone.output
    assert (
        name not in world.workers.connectors
        or "db.password" not in world.workers.connectors[name].config
    )


def test_a_reference_is_followed_when_the_configuration_is_needed(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"name": "c", "db.password": SECRET, "x": "y"}
    store_configs([config], journal, references())
    assert SECRET not in texts(journal)
    monkeypatch.setenv("DB", SECRET)
    assert stored_config(journal, digest(config)) == config
    monkeypatch.setenv("DB", OTHER)
    with pytest.raises(BadInput, match="not what they were: db") as told:
        stored_config(journal, digest(config))
    assert SECRET not in str(told.value)
    monkeypatch.delenv("DB")
    with pytest.raises(BadInput, match="DB is not set"):
        stored_config(journal, digest(config))


def test_a_secret_that_was_rotated_is_kept_as_long_as_an_undo_needs_it(journal: Journal) -> None:
    before, after = ({"name": "c", "db.password": value} for value in (SECRET, OTHER))
    store_configs([before], journal, references())
    store_configs([before, after], journal, references(OTHER))
    assert stored_config(journal, digest(before)) == before
    assert OTHER not in texts(journal)


@pytest.mark.parametrize("hours", [0, 2])
def test_what_no_run_needs_is_removed_with_the_runs(journal: Journal, hours: int) -> None:
    old, new = {"name": "c", "db.password": SECRET}, {"name": "c", "db.password": OTHER}
    first, second = ended(journal, old, hours=hours), ended(journal, new, hours=hours)
    plan = plan_prune(journal, older_than=None, keep=1)
    assert [run.id for run in plan.runs] == [first]
    prune(journal, plan)
    assert [run.id for run in journal.runs()] == [second]
    assert not journal.path(first, "").exists()
    assert SECRET not in texts(journal)
    assert stored_config(journal, digest(new)) == new
    assert plan_prune(journal, older_than=None, keep=1).files == ()


@pytest.mark.parametrize("state", [None, RunState.FAILED])
def test_a_run_that_can_be_resumed_is_never_removed(
    journal: Journal, state: RunState | None
) -> None:
    config = {"name": "c", "db.password": SECRET}
    run = ended(journal, config, state=state)
    plan = plan_prune(journal, older_than=None, keep=0, now=datetime.now(UTC) + timedelta(days=999))
    assert (plan.runs, plan.files) == ((), ())
    assert [each.id for each in journal.runs()] == [run]


def test_runs_are_removed_by_their_age(journal: Journal) -> None:
    run = ended(journal, {"name": "c"})
    now = datetime.now(UTC)
    assert plan_prune(journal, older_than=age("1h"), keep=None, now=now).runs == ()
    later = now + timedelta(hours=2)
    assert [
        each.id for each in plan_prune(journal, older_than=age("1h"), keep=None, now=later).runs
    ] == [run]
    assert plan_prune(journal, older_than=age("1h"), keep=1, now=later).runs == ()


def test_what_a_run_is_about_to_need_is_left_alone(journal: Journal) -> None:
    store_configs([{"name": "c", "db.password": SECRET}], journal)
    assert plan_prune(journal, older_than=None, keep=0).files == ()


def test_what_an_old_run_had_and_one_that_is_about_to_begin_needs_again_is_left_alone(
    journal: Journal,
) -> None:
    config = {"name": "c", "db.password": SECRET}
    ended(journal, config)
    prune(journal, plan_prune(journal, older_than=None, keep=1))
    path = journal.path("kept", digest(config))
    os.utime(path, (time.time() + 1,) * 2)
    assert path not in plan_prune(journal, older_than=None, keep=0).files


def test_nothing_is_removed_while_the_cluster_is_changed(journal: Journal) -> None:
    run = ended(journal, {"name": "c"})
    plan = plan_prune(journal, older_than=None, keep=0)
    with (
        journal.locked("cluster", "group", "another"),
        pytest.raises(Refused, match="is changing group"),
    ):
        prune(journal, plan)
    assert [each.id for each in journal.runs()] == [run]


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "0d", "1y", "1.5h", "9999999d"])
def test_what_is_no_age_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput, match="is not an age"):
        age(text)


def test_prune_keeps_to_the_contract_of_changing_commands(world: World) -> None:
    assert world.run("connectors", "patch", "orders", "a=1", "--yes").exit_code == 0
    (run,) = (each["id"] for each in world.runs())
    assert world.run("runs", "prune").exit_code == 2
    assert world.run("runs", "prune", "--keep", "0").exit_code == 2
    planned = world.run("runs", "prune", "--keep", "0", "--dry-run", "-o", "json")
    data = json.loads(planned.stdout)
    jsonschema.validate(data, SCHEMA)
    assert (data["runs"], data["dryRun"]) == ([run], True)
    assert len(world.runs()) == 1
    done = world.run("runs", "prune", "--keep", "0", "--yes")
    assert (done.exit_code, world.runs()) == (0, [])
    assert "Removed 1 run with" in done.output
    assert "No run to remove" in world.run("runs", "prune", "--keep", "0", "--yes").output


def test_a_kept_configuration_that_was_changed_is_not_used(journal: Journal) -> None:
    config = {"name": "c", "x": "y"}
    store_configs([config], journal)
    journal.path("kept", digest(config)).write_bytes(content({"name": "c", "x": "z"}))
    with pytest.raises(BadInput, match="was changed since"):
        stored_config(journal, digest(config))
