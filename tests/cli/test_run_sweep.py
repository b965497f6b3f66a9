"""``connectctl run JOB --sweep``: planned, asked, saved, undertaken once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from connectctl.cli.main import app
from connectctl.ops.core.journal import Journal
from fakes.orphans import GROUP, Place
from fakes.session import FakeSession
from typer.testing import CliRunner

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/plan.json").read_text())


class World:
    """``Place`` behind a session, and its job file."""

    def __init__(self, directory: Path):
        self.place = Place(directory / "archive")
        self.session = FakeSession(reads=self.place.kafka, committed=self.place.groups)
        self.job = directory / "a.yaml"
        self.plan = directory / "plan.json"
        self.write("ParquetArchive")

    def write(self, connector: str, **more: str) -> None:
        config = {
            "connector.class": connector,
            "topics": "t",
            "directory": str(self.place.directory),
        }
        self.job.write_text(json.dumps({"config": config | more}))

    def sweep(self, *args: str) -> Any:
        return self.run("run", str(self.job), "--sweep", *args)

    def run(self, *args: str) -> Any:
        return CliRunner().invoke(app, list(args), obj=self.session)

    @property
    def swept(self) -> bool:
        return self.place.orphan not in self.place.there


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    return World(tmp_path)


def test_a_dry_run_lists_the_files_and_removes_none(world: World) -> None:
    shown = world.sweep("--dry-run")
    assert shown.exit_code == 0, shown.output
    assert "remove 1 file of 1 bytes from" in shown.stdout
    assert world.place.orphan in shown.stdout
    plan = json.loads(world.sweep("--dry-run", "-o", "json").stdout)
    jsonschema.validate(plan, SCHEMA)
    assert plan["steps"][0]["files"] == [{"name": world.place.orphan, "bytes": 1}]
    assert not world.swept


def test_without_a_yes_nothing_is_removed_and_with_it_the_files_are(world: World) -> None:
    assert (world.sweep().exit_code, world.swept) == (2, False)
    done = world.sweep("--yes", "-o", "json")
    assert (done.exit_code, world.swept) == (0, True), done.output
    assert json.loads(done.stdout)["results"][0]["detail"] == "1 file of 1 bytes removed"
    again = world.sweep("--yes")
    assert (again.exit_code, "has no file that can be removed" in again.stdout) == (0, True)


def test_a_saved_plan_is_carried_out_and_a_stale_one_is_not(world: World) -> None:
    world.plan.write_text(world.sweep("--dry-run", "-o", "json").stdout)
    world.place.groups.members[GROUP] = ["consumer-1"]
    refused = world.run("runs", "apply", str(world.plan), "--yes")
    assert (refused.exit_code, "consumer-1" in refused.stderr, world.swept) == (4, True, False)
    world.place.groups.members.clear()
    assert world.run("runs", "apply", str(world.plan), "--yes").exit_code == 0
    assert world.swept
    stale = world.run("runs", "apply", str(world.plan), "--yes")
    assert (stale.exit_code, "stale" in stale.stderr) == (4, True)


def test_a_sweep_that_was_killed_is_resumed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(
            "connectctl.ops.task_runtime.connectors.parquet_archive.files.ArchiveDirectory.remove",
            dies,
        )
        world.sweep("--yes")
    (run,) = Journal(world.job.parent / "journal").unfinished_runs("fake-cluster", "connect")
    done = world.run("runs", "resume", run.id, "--yes")
    assert (done.exit_code, world.swept) == (0, True), done.output


def test_members_of_the_group_refuse_it(world: World) -> None:
    world.place.groups.members[GROUP] = ["consumer-1"]
    refused = world.sweep("--yes")
    assert (refused.exit_code, "consumer-1" in refused.stderr, world.swept) == (4, True, False)


def test_what_is_no_archive_or_an_option_of_a_run_is_bad_input(world: World) -> None:
    given = world.sweep("--master", "local[1]")
    assert (given.exit_code, "--master has no effect with --sweep" in given.stderr) == (2, True)
    world.write("FileStreamSink")
    other = world.sweep("--yes")
    assert (
        other.exit_code,
        "--sweep requires a ParquetArchive, and a is not one" in other.stderr,
    ) == (2, True)
    world.write("ParquetArchive", **{"producer.override.bootstrap.servers": "other:9092"})
    elsewhere = world.sweep("--yes")
    assert (elsewhere.exit_code, "in another Kafka cluster" in elsewhere.stderr) == (2, True)
