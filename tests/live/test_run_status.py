"""A run's statuses among those of workers: what it says besides is read past."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.task_runtime.job.scheduler import TaskTotals
from connectctl.ops.task_runtime.job.status_topic import task_key, value
from connectctl.ops.task_runtime.spi.metrics import metrics
from live.real import FILE_SOURCE, connectctl, connector, eventually, write

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live


def test_a_worker_reads_past_the_metrics_in_a_tasks_status_and_run_status_shows_them(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name = f"status-{secrets.token_hex(4)}"
    config = {"connector.class": FILE_SOURCE, "file": str(tmp_path / "in.txt"), "topic": f"{name}-data"}
    total = TaskTotals(records=12, transactions=3, smallest=2, largest=7)
    with connector(cluster, name, config, "STOPPED") as rest:
        said = value("RUNNING", "10.0.0.1:1", 0, metrics=metrics(total))
        write(cluster.bootstrap_servers, cluster.topics["status"], (task_key(name, 0), said))
        eventually(lambda: rest.state(name)[1:] == ["RUNNING"])
        ran = connectctl("--context", f"sandbox-{cluster.spec.name}", "run", "status", name, "-o", "json")
        (task,) = ran.json["connectors"][0]["tasks"]
        assert (task["metrics"]["transaction-size-max"], task["metrics"]["source-record-write-total"]) == (7, 12)
