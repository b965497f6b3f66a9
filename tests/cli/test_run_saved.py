"""The plan of ``connectctl run``, saved and applied: as it is written, or refused because what it
was made from changed.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from connectctl.ops.core.errors import NeverAnswered
from connectctl.ops.core.journal import Journal, RunState
from connectctl.ops.registry import KINDS
from connectctl.ops.task_runtime.job import job_context
from connectctl.ops.task_runtime.job.planned_run import PlannedRun
from fakes.changingworld import World
from fakes.endedtasks import without_spark

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/plan.json").read_text())
JOB = """\
name: f
config: {connector.class: FileStreamSource, file: /in, topic: t}
spark: {conf: {spark.hadoop.fs.secret: hunter2}}
until: {idle: 1s}
"""
CONNECTOR = """\
from connectctl.ops.task_runtime.connectors.filestream import FileStreamSource

class Mine(FileStreamSource):
    pass
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    monkeypatch.chdir(tmp_path)
    world = World(tmp_path)
    world.kafka.records["t"] = []
    another_process(world)
    (tmp_path / "job.yaml").write_text(JOB)
    return world


@pytest.fixture
def performed(monkeypatch: pytest.MonkeyPatch) -> list[PlannedRun]:
    """The runs that came to their tasks, which end at once."""
    monkeypatch.setattr(job_context, "create_topic", lambda *given: None)
    return without_spark(monkeypatch)


def saved(world: World, *more: str) -> Path:
    """What the dry run prints, in a file."""
    path = world.directory / "plan.json"
    planned = world.run("run", "job.yaml", "--dry-run", "-o", "json", *more)
    assert planned.exit_code == 0, planned.output
    jsonschema.validate(json.loads(planned.stdout), SCHEMA)
    path.write_text(planned.stdout)
    another_process(world)
    return path


def another_process(world: World) -> None:
    """What it opens, whose settings can still be changed: a group of its own, whose topics are
    named after it.
    """
    world.new_session()
    world.session.told = {"group_id": "mine", "spark.master": "local[1]"}


def tasks_of(plan: Path) -> Any:
    (step,) = [step for step in json.loads(plan.read_text())["steps"] if step["step"] == "RunTasks"]
    return step


def refused(world: World, plan: Path, code: int = 4) -> str:
    """The one line with which ``plan`` is refused; nothing was done."""
    ran = world.run("runs", "apply", str(plan), "--yes")
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (code, "", 1), ran.output
    assert (world.changed, world.runs()) == ([], [])
    return ran.stderr


def test_a_saved_run_is_applied_as_it_was_asked_for_from_any_directory(
    world: World, performed: list[PlannedRun], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    more = ("--master", "local[2]", "--lease", "7", "--patience", "9", "--metrics", "run.prom")
    plan = saved(world, *more)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    applied = world.run("runs", "apply", str(plan), "--yes", "-o", "json")
    assert applied.exit_code == 0, applied.output
    assert json.loads(applied.stdout)["kind"] == "TaskRun"
    (run,) = performed
    assert (run.job.name, run.access.master, run.access.request.lease, run.outage.seconds) == (
        "f",
        "local[2]",
        7.0,
        9.0,
    )
    assert (tmp_path / "run.prom").exists()
    journal = Journal(tmp_path / "journal")
    (kept,) = journal.runs()
    assert (kept.operation, kept.state) == ("run", RunState.DONE)
    assert journal.plan_of(kept, KINDS).digest == json.loads(plan.read_text())["digest"]


def test_the_command_and_its_saved_plan_come_to_the_same_run(
    world: World, performed: list[PlannedRun]
) -> None:
    plan = saved(world)
    assert world.run("runs", "apply", str(plan), "--yes").exit_code == 0
    assert world.run("run", "job.yaml", "--yes").exit_code == 0
    applied, direct = performed
    assert (applied.job.config, applied.access.master, applied.access.request) == (
        direct.job.config,
        direct.access.master,
        direct.access.request.absolute(),
    )


def test_a_dry_run_of_a_saved_plan_prints_it_and_does_nothing(world: World) -> None:
    plan = saved(world)
    again = world.run("runs", "apply", str(plan), "--dry-run", "-o", "json")
    assert json.loads(again.stdout) == json.loads(plan.read_text())
    assert world.runs() == []


def test_a_dry_run_of_a_saved_plan_does_not_wait_for_a_cluster_that_never_responded(
    world: World,
) -> None:
    plan = saved(world, "--patience", "5")
    asked = 0

    def silent() -> str:
        nonlocal asked
        asked += 1
        raise NeverAnswered("Kafka at b:1 does not answer")

    world.kafka.cluster_id = silent  # type: ignore[method-assign]
    another_process(world)
    ran = world.run("runs", "apply", str(plan), "--dry-run")
    assert (ran.exit_code, asked) == (5, 1)


def test_a_plan_has_digests_of_what_it_is_made_from_and_no_secret_of_it(
    world: World, tmp_path: Path
) -> None:
    world.session.told["spark.conf.spark.hadoop.fs.s3a.secret.key"] = "sesame"
    plan = saved(world)
    made_from = tasks_of(plan)["made_from"]
    assert made_from[str(tmp_path / "job.yaml")] == hashlib.sha256(JOB.encode()).hexdigest()
    assert "hunter2" not in plan.read_text()
    assert "sesame" not in plan.read_text()


def test_a_plan_is_stale_where_its_job_file_has_changed_even_if_it_is_no_job_file_now(
    world: World, tmp_path: Path
) -> None:
    plan = saved(world)
    (tmp_path / "job.yaml").write_text("- : [")
    said = refused(world, plan)
    assert f"The plan is stale: {tmp_path / 'job.yaml'} has changed; nothing was done" in said
    assert f"connectctl run {tmp_path / 'job.yaml'} --dry-run -o json" in said


def test_a_plan_is_stale_where_its_job_file_is_gone(world: World, tmp_path: Path) -> None:
    plan = saved(world)
    (tmp_path / "job.yaml").unlink()
    assert "job.yaml cannot be read: No such file or directory; nothing was done" in refused(
        world, plan
    )


def test_a_plan_is_stale_where_a_module_beside_the_job_has_changed_and_it_is_not_imported(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    (tmp_path / "savedrunconnector.py").write_text(CONNECTOR)
    (tmp_path / "job.yaml").write_text(JOB.replace("FileStreamSource", "'savedrunconnector:Mine'"))
    plan = saved(world)
    monkeypatch.delitem(__import__("sys").modules, "savedrunconnector")
    (tmp_path / "savedrunconnector.py").write_text("raise SystemExit(99)")
    assert "savedrunconnector.py has changed; nothing was done" in refused(world, plan)


def test_a_plan_is_stale_where_the_context_gives_spark_other_settings(world: World) -> None:
    plan = saved(world)
    world.session.told["spark.conf.spark.executor.memory"] = "1g"
    assert "The plan is stale: spark.conf of the context has changed" in refused(world, plan)


def test_a_plan_is_stale_where_the_context_has_another_spark_master(world: World) -> None:
    plan = saved(world)
    world.session.told["spark.master"] = "local[3]"
    assert "now it would be: 5. run f on Spark (local[3])" in refused(world, plan)


def test_a_plan_is_stale_where_a_topic_that_it_would_create_is_there_by_now(world: World) -> None:
    plan = saved(world)
    world.kafka.records["mine-configs"] = []
    assert "The plan is stale: now it would be: 1. create the topic mine-offsets" in refused(
        world, plan
    )


def test_a_plan_of_another_group_or_cluster_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = saved(world)
    world.session.told["group_id"] = "other"
    assert "The plan is for the group mine" in refused(world, plan)
    another_process(world)
    monkeypatch.setattr(world.kafka, "cluster_id", lambda: "second")
    assert "on the Kafka cluster fake-cluster: the context is for mine on second" in refused(
        world, plan
    )


def test_a_plan_of_another_version_is_refused_in_one_line(world: World) -> None:
    plan = saved(world)
    data = json.loads(plan.read_text())
    for step in data["steps"]:
        step.pop("request", None)
    agreed = {
        key: value for key, value in data.items() if key not in ("apiVersion", "kind", "digest")
    }
    data["digest"] = hashlib.sha256(json.dumps(agreed, sort_keys=True).encode()).hexdigest()
    plan.write_text(json.dumps(data))
    said = refused(world, plan, 2)
    assert "The plan has a step that this version does not know: RunTasks" in said


def test_a_plan_that_was_edited_is_refused(world: World) -> None:
    plan = saved(world)
    plan.write_text(plan.read_text().replace("3600.0", "3601.0"))
    assert "The plan was changed after it was made" in refused(world, plan, 2)
