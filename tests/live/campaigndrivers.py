"""The drivers of a campaign on Spark: ``connectctl run`` in processes of their own, with a plugin
that counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from live import campaignplugin
from sparkjvm import java_options

PLUGIN = "plugin.zip"
TIMEOUT_MS = 5_000
LEASE = 5
"""Seconds: a speculative attempt begins when one takes longer."""
WORKERS = (4, 4)
"""Cores of the cluster's workers, which have addresses of their own: Spark starts a speculative
attempt only on another host than the first one's. A run takes half of them, so that the next one
can begin beside it.
"""
CONF = {
    "spark.driver.extraJavaOptions": java_options(),
    "spark.executor.extraJavaOptions": java_options(),
    "spark.cores.max": "4",
    "spark.executor.cores": "2",
    "spark.executor.memory": "512m",
    "spark.task.maxFailures": "8",
    "spark.speculation": "true",
    "spark.speculation.interval": "500ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.2",
    "spark.executor.heartbeatInterval": "3s",
    "spark.network.timeout": "15s",
    "spark.network.timeoutInterval": "3s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "15000",
}


@dataclass
class Driver:
    """A run that was started. ``killed`` is whether that was our doing."""

    process: subprocess.Popen[bytes]
    log: Path
    killed: bool = False

    @property
    def over(self) -> str | None:
        """How it ended, None while it runs."""
        code = self.process.poll()
        if code is None:
            return None
        if self.killed:
            return "killed"
        outcome = self.log.with_suffix(".json").read_text()
        return (
            f"{json.loads(outcome)['outcome'] if outcome.strip() else 'without a result'}, "
            f"exit code {code}"
        )


def pack(directory: Path) -> None:
    """The plugin, beside the jobs."""
    with zipfile.ZipFile(directory / PLUGIN, "w") as archive:
        archive.write(campaignplugin.__file__, "campaignplugin.py")


def job_file(
    directory: Path,
    number: int,
    name: str,
    master: str,
    config: Mapping[str, str],
    conf: Mapping[str, str] = CONF,
) -> Path:
    """A job without an end."""
    ours = {
        "connector.class": "campaignplugin:Counting",
        "producer.override.transaction.timeout.ms": str(TIMEOUT_MS),
    }
    spark = {"master": master, "conf": conf}
    job = {
        "name": name,
        "config": ours | dict(config),
        "spark": spark,
        "until": {"forever": True},
        "plugins": [PLUGIN],
    }
    path = directory / f"job-{number}.yaml"
    path.write_text(json.dumps(job))  # which is YAML, too
    return path


def start(job: Path, bootstrap: str, group: str, lease: int = LEASE) -> Driver:
    """A run of it."""
    flags = ["--bootstrap-servers", bootstrap, "--group-id", group]
    args = ["run", str(job), "--yes", "-o", "json", "--lease", str(lease)]
    log = job.with_suffix(".log")
    with log.open("wb") as err, log.with_suffix(".json").open("wb") as out:
        command = [sys.executable, "-m", "connectctl.cli", *flags, *args]
        return Driver(subprocess.Popen(command, stdout=out, stderr=err), log)
