"""On a real cluster: every command that changes something is killed with SIGKILL, is in the list of
runs, and is resumed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.core.journal import Journal, RunState
from live.real import connectctl, connector, create_topic, eventually, write_uncommitted

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
SOURCE = "org.apache.kafka.connect.tools.VerifiableSourceConnector"


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    return Journal(tmp_path / "journal")


def killed(journal: Journal, *args: str) -> None:
    """Begin a change in a process of its own, and kill it when it has begun."""
    known = len(journal.runs())
    command = [sys.executable, "-m", "connectctl.cli", *args]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and not (len(runs := journal.runs()) > known and runs[0].marks):
        time.sleep(0.002)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    _, said = process.communicate(timeout=900)
    assert len(journal.runs()) == known + 1, said


@pytest.mark.parametrize("count", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_every_change_outlives_a_kill_and_is_in_the_list_of_runs(
    cluster: Sandbox, journal: Journal, count: int
) -> None:
    context = ("--context", f"sandbox-{cluster.spec.name}", "--timeout", "120")
    source, id_ = (f"r{uuid.uuid4().hex[:8]}" for _ in range(2))
    write_uncommitted(
        cluster.bootstrap_servers,
        create_topic(cluster.bootstrap_servers, source, 1),
        id_,
        ("k", "v"),
    )
    config = {"connector.class": SOURCE, "tasks.max": "1", "topic": source, "throughput": "10"}
    with connector(cluster, source, config) as rest:
        eventually(lambda: rest.state(source) == ["RUNNING"] * 2)
        changes = [
            (("connectors", "stop", source, "--wait"), lambda: rest.state(source) == ["STOPPED"]),
            (("fence", source), lambda: True),
            (("transactions", "abort", id_), lambda: True),
            (
                ("connectors", "resume", source, "--wait"),
                lambda: rest.state(source) == ["RUNNING"] * 2,
            ),
            (
                ("connectors", "restart", source, "--wait"),
                lambda: rest.state(source) == ["RUNNING"] * 2,
            ),
        ][:count]
        for args, came_true in changes:
            killed(journal, *context, *args, "--yes")
            run = journal.runs()[0]
            if run.state is RunState.OPEN:
                resumed = connectctl(*context, "runs", "resume", run.id, "--yes")
                assert resumed.code == 0, (args, resumed.out, resumed.err)
            assert journal.get(run.id).state is RunState.DONE
            eventually(came_true)
    listed = connectctl("runs", "list", "-o", "json").json["runs"]
    said = [" ".join(args[: 1 if args[0] == "fence" else 2]) for args, _ in changes]
    assert [run["operation"] for run in reversed(listed)] == said
