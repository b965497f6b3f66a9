"""The script of the page on CI, as somebody copies it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from documentation import ROOT, blocks
from live.real import DEADLINE, FILE_SOURCE, connectctl, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live


class Pipeline:
    """A directory of two connectors, and the script beside it."""

    def __init__(self, cluster: Sandbox, place: Path) -> None:
        self.context = f"sandbox-{cluster.spec.name}"
        self.place = place
        self.first, self.second = (f"ci-{uuid.uuid4().hex[:8]}-{n}" for n in "ab")
        (place / "team").mkdir()
        (script,) = blocks(ROOT / "docs/how-to/ci.md", "bash")
        (place / script.file).write_text(script.text)
        for name in (self.first, self.second):
            self.write(name)

    def write(self, name: str, **changed: str) -> None:
        """Write the file of a connector."""
        lines = self.place / f"{name}.txt"
        lines.write_text("one\ntwo\n")
        config = {"connector.class": FILE_SOURCE, "file": str(lines), "topic": name, **changed}
        (self.place / "team" / f"{name}.json").write_text(
            json.dumps({"name": name, "config": config})
        )

    def deploy(self, **settings: str) -> tuple[int, str]:
        """Run the script; return its exit code and what it prints."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "deploy.sh", "team"],
            cwd=self.place,
            env={
                **os.environ,
                "CONNECTCTL_CONTEXT": self.context,
                "CONNECTCTL_LOCK_WAIT": "60",
                "CONNECTCTL_TIMEOUT": "120",
                "PATH": path,
                **settings,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        return done.returncode, done.stdout

    def by_hand(self, *words: str) -> None:
        """Run a command, as somebody does beside the pipeline."""
        ran = connectctl("--context", self.context, *words, "--yes")
        assert ran.code == 0, ran.err

    def fenced(self) -> list[str]:
        """Return the connectors that were fenced."""
        runs = connectctl("--context", self.context, "runs", "list", "-o", "json").json["runs"]
        fences = [run["subjects"] for run in runs if run["operation"] == "fence"]
        return [
            name for subjects in fences for name in subjects if name in (self.first, self.second)
        ]


@pytest.fixture
def pipeline(cluster: Sandbox, tmp_path: Path) -> Iterator[Pipeline]:
    pipeline = Pipeline(cluster, tmp_path)
    yield pipeline
    for name in (pipeline.first, pipeline.second):
        workers(cluster).delete(name)


def test_the_script_deploys_and_refuses_as_its_page_says(pipeline: Pipeline) -> None:
    code, printed = pipeline.deploy()
    assert code == 0, printed
    assert f"verify that {pipeline.second} is RUNNING: RUNNING" in printed

    # Somebody changes the first connector; what they change is an error of preflight, too.
    pipeline.by_hand("connectors", "stop", pipeline.first, "--wait")
    own = f"offsets.storage.topic={pipeline.first}-offsets"
    pipeline.by_hand("connectors", "patch", pipeline.first, own)
    code, printed = pipeline.deploy()
    assert (code, f"since the last deployment: {pipeline.first};" in printed) == (1, True), printed
    code, printed = pipeline.deploy(DRIFT="overwrite")
    assert (code, "STORE001" in printed) == (1, True), printed

    # It is only stopped then, which no file says, while the second one is deployed anew.
    pipeline.by_hand("connectors", "patch", pipeline.first, "offsets.storage.topic-")
    pipeline.write(pipeline.second, **{"batch.size": "500"})
    assert pipeline.fenced() == []
    code, printed = pipeline.deploy()
    assert code == 1, printed
    assert f"wait until {pipeline.second} is RUNNING: RUNNING" in printed
    assert f"verify that {pipeline.first} is RUNNING" in printed
    assert pipeline.fenced() == [pipeline.second]

    pipeline.by_hand("connectors", "resume", pipeline.first, "--wait")
    code, printed = pipeline.deploy()
    assert code == 0, printed
