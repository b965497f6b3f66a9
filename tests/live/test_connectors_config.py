"""Connectors are created, changed, deleted and brought back on a real broker and real workers, as
files of each form say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live.connectorfiles import config, config_of, file, last_run, name, run
from live.real import FILE_SOURCE, connectctl, eventually, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

__all__ = ["name"]
pytestmark = pytest.mark.live


def test_a_connector_lives_its_life_and_every_change_is_taken_back(
    cluster: Sandbox, name: str, tmp_path: Path
) -> None:
    first = config(name, tmp_path, **{"database.password": "hush-hush"})
    created = run(
        cluster, "connectors", "create", "-f", file(tmp_path, ".json", first), "--yes", "--wait"
    )
    assert f"create {name}" in created.out
    assert config_of(cluster, name) == first
    refused = run(
        cluster, "connectors", "create", "-f", file(tmp_path, ".json", first), "--yes", code=4
    )
    assert f"Connector already exists: {name}" in refused.err

    run(
        cluster,
        "connectors",
        "patch",
        name,
        "batch.size=7",
        "database.password=other-one",
        "--yes",
        "--wait",
    )
    patching = last_run()
    second = first | {"batch.size": "7", "database.password": "other-one"}
    assert config_of(cluster, name) == second

    third = file(tmp_path, ".properties", first | {"batch.size": "9"})
    differs = run(cluster, "connectors", "diff", name, "-f", third, "--exit-code", code=3)
    assert "batch.size" in differs.out
    planned = run(
        cluster,
        "connectors",
        "apply",
        "-f",
        third,
        "--dry-run",
        "-o",
        "json",
        "--exit-code",
        code=3,
    )
    (tmp_path / "plan.json").write_text(planned.out)
    applied = run(cluster, "runs", "apply", str(tmp_path / "plan.json"), "--yes")
    assert config_of(cluster, name) == first | {"batch.size": "9"}
    run(cluster, "runs", "undo", last_run(), "--yes", "--wait")
    assert config_of(cluster, name) == second
    run(cluster, "runs", "undo", patching, "--yes")
    assert config_of(cluster, name) == first

    deleted = run(cluster, "connectors", "delete", f"{name[:-2]}*", "--yes", "--wait")
    assert f"what remains: its offsets of 1 source partition, the topics {name}" in deleted.out
    assert config_of(cluster, name) is None
    run(cluster, "runs", "undo", last_run(), "--yes", "--wait")
    assert config_of(cluster, name) == first
    said = "".join(
        ran.out + ran.err for ran in (created, refused, differs, planned, applied, deleted)
    )
    assert "hush-hush" not in said
    assert "other-one" not in said


def test_offsets_are_there_before_a_connector_runs_and_go_and_come_with_it(
    cluster: Sandbox, name: str, tmp_path: Path
) -> None:
    source = str(tmp_path / "in.txt")
    entry = {"partition": {"filename": source}, "offset": {"position": 4}}
    offsets = tmp_path / "offsets.json"
    offsets.write_text(json.dumps({"offsets": [entry]}))
    given = file(tmp_path, ".json", config(name, tmp_path))
    run(
        cluster,
        "connectors",
        "create",
        "-f",
        given,
        "--offsets",
        str(offsets),
        "--stopped",
        "--yes",
        "--wait",
    )
    assert workers(cluster).offsets(name) == [entry]
    run(cluster, "connectors", "resume", name, "--yes", "--wait")
    eventually(lambda: workers(cluster).offsets(name) == [entry | {"offset": {"position": 8}}])
    run(cluster, "connectors", "delete", name, "--with-offsets", "--yes", "--wait")
    deleting = last_run()
    run(cluster, "connectors", "create", "-f", given, "--stopped", "--yes", "--wait")
    assert workers(cluster).offsets(name) == []
    run(cluster, "connectors", "delete", name, "--yes", "--wait")
    run(cluster, "runs", "undo", deleting, "--yes", "--wait")
    assert workers(cluster).offsets(name) == [entry | {"offset": {"position": 8}}]


def test_a_directory_of_strimzis_manifests_is_applied_as_one(
    cluster: Sandbox, name: str, tmp_path: Path
) -> None:
    directory = tmp_path / "connectors"
    directory.mkdir()
    for each, state in ((name, "running"), (f"{name}-b", "stopped")):
        manifest = f"""
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnector
metadata: {{name: {each}, labels: {{strimzi.io/cluster: my-connect}}}}
spec:
  class: {FILE_SOURCE}
  tasksMax: 1
  state: {state}
  config: {{file: {tmp_path / "in.txt"}, topic: {each}, batch.size: 5}}
"""
        (directory / f"{each}.yaml").write_text(manifest)
    run(cluster, "connectors", "apply", "-f", str(directory), "--yes", "--wait")
    assert config_of(cluster, name) == config(name, tmp_path, **{"batch.size": "5"})
    states = {
        c["name"]: c["state"]
        for c in run(cluster, "connectors", "list", "-o", "json").json["connectors"]
    }
    assert (states[name], states[f"{name}-b"]) == ("RUNNING", "STOPPED")
    again = run(cluster, "connectors", "apply", "-f", str(directory), "--dry-run", "--exit-code")
    assert f"{name}-b, {name}: unchanged" in again.out
    run(cluster, "connectors", "restart", name, "--task", "0", "--yes", "--wait")
    run(cluster, "runs", "undo", next(runs_of("connectors apply")), "--yes", "--wait")
    assert config_of(cluster, name) is None


def runs_of(operation: str) -> Iterator[str]:
    return (
        r["id"]
        for r in connectctl("runs", "list", "-o", "json").json["runs"]
        if r["operation"] == operation
    )


def test_what_workers_would_refuse_is_refused_before_anything_is_done(
    cluster: Sandbox, name: str, tmp_path: Path
) -> None:
    bad = file(tmp_path, ".json", config(name, tmp_path, **{"tasks.max": "none"}))
    refused = run(cluster, "connectors", "create", "-f", bad, "--yes", code=2)
    assert "tasks.max" in refused.err
    assert config_of(cluster, name) is None
