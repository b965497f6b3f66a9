"""The files that lie around a cluster: a worker's properties as a context, a bundle with
placeholders, offsets in a ConfigMap, on real workers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from live.real import Ran, connectctl, eventually, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
NAMES = ("files-lines", "files-deep")
BUNDLE = """apiVersion: v1
kind: List
items:
- {apiVersion: kafka.strimzi.io/v1, kind: KafkaConnect, metadata: {name: my-connect}}
- apiVersion: kafka.strimzi.io/v1
  kind: KafkaConnector
  metadata: {name: "files-${WHAT}"}
  spec:
    class: FileStreamSource
    tasksMax: 1
    config: {file: "${FILE}", topic: files-lines, kept: "${file:/run/x:y}"}
"""


@pytest.fixture
def removed(cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    yield
    for name in NAMES:
        workers(cluster).delete(name)


def done(ran: Ran, code: int = 0) -> Ran:
    assert ran.code == code, ran.out + ran.err
    return ran


@pytest.mark.usefixtures("removed")
def test_what_a_team_has_around_its_cluster_is_read(cluster: Sandbox, tmp_path: Path) -> None:
    config = str(tmp_path / "config.yaml")
    properties = str(cluster.layout.properties("worker-1"))
    done(connectctl("--config", config, "context", "add", "prod", "--from", properties, "--use"))
    with_context = ("--config", config, "--context", "prod", "--timeout", "240")

    def run(*words: str) -> Ran:
        return connectctl(*with_context, *words)

    shown = done(run("cluster", "show", "-o", "json")).json
    assert (shown["groupId"], len(shown["workers"])) == (cluster.spec.group_id, 2)

    lines = tmp_path / "lines.txt"
    lines.write_text("one\ntwo\n")
    files = tmp_path / "connectors"
    (files / "deep").mkdir(parents=True)
    (files / "bundle.yaml").write_text(BUNDLE)
    deep = {"connector.class": "FileStreamSource", "file": "${FILE}", "topic": "files-lines"}
    (files / "deep" / "files-deep.json").write_text(json.dumps({**deep, "file": "/dev/null"}))
    (tmp_path / "stage.env").write_text(f"WHAT=nothing\nFILE={lines}\n")
    given = ("--env-file", str(tmp_path / "stage.env"), "--set", "WHAT=lines", "--recursive")
    assert (
        "placeholders without a value"
        in done(run("validate", "-f", str(files), "--set", "WHAT=lines"), 2).err
    )
    done(run("validate", "-f", str(files), *given))
    applied = done(run("connectors", "apply", "-f", str(files), *given, "--yes", "--wait"))
    assert "ignored KafkaConnect my-connect" in applied.err
    assert (
        workers(cluster).call("GET", "/connectors/files-lines/config").json()["kept"]
        == "${file:/run/x:y}"
    )
    done(
        run(
            "connectors",
            "diff",
            "files-lines",
            "-f",
            str(files / "bundle.yaml"),
            *given[:4],
            "--exit-code",
        )
    )

    def listed() -> bool:
        found = run("offsets", "show", "files-lines", "-o", "configmap")
        return found.code == 0 and "position" in found.out

    eventually(listed)
    saved = tmp_path / "offsets.yaml"
    saved.write_text(done(run("offsets", "show", "files-lines", "-o", "configmap")).out)
    there = done(run("offsets", "show", "files-lines", "-o", "json")).json["connectors"][0]
    read = done(run("offsets", "show", "-f", str(saved), "-o", "json")).json["connectors"][0]
    assert [o["effective"] for o in read["offsets"]] == [o["effective"] for o in there["offsets"]]
    resource = yaml.safe_load(saved.read_text())
    resource["data"]["offsets.json"] = resource["data"]["offsets.json"].replace(
        '"position": 8', '"position": 4'
    )
    saved.write_text(yaml.safe_dump(resource))
    done(run("connectors", "stop", "files-lines", "--yes", "--wait"))
    done(run("offsets", "set", "files-lines", "-f", str(saved), "--yes"))
    assert workers(cluster).offsets("files-lines")[0]["offset"] == {"position": 4}

    (tmp_path / "none.json").write_text(json.dumps({**deep, "connector.class": "FileStreamSorce"}))
    for words in (("create",), ("apply",)):
        ran = done(run("connectors", *words, "-f", str(tmp_path / "none.json"), "--yes"), 2)
        assert (
            "No such class FileStreamSorce; did you mean org.apache.kafka.connect.file." in ran.err
        )
        assert " plugins list. " in ran.err
        assert len(ran.err) < 1_000
