"""A promised latency on Spark and a real broker: commits while a poll waits, and every record once
whatever is killed.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live.real import eventually
from live.rundirectory import KILLED, Place, python_workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = [
    pytest.mark.live,
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]
LATENCY = "transaction.boundary.latency.ms"
P99 = "poll-to-visible-p99-time-ms"
PLUGIN = """
import time
from pathlib import Path

from connectctl.source import SourceConnector, SourceRecord, SourceTask


class PatientTask(SourceTask):
    \"\"\"A number for each poll; the sixth waits for a file.\"\"\"

    def start(self, configs):
        self.topic, self.go = configs["topic"], Path(configs["go"])
        self.next = (self.context.offsets.offset({}) or {"n": 0})["n"]

    def poll(self):
        while self.next == 5 and not self.go.exists():
            time.sleep(0.05)
        self.next += 1
        return [SourceRecord({}, {"n": self.next}, self.topic, f"line {self.next - 1}")]

    @property
    def finished(self):
        return self.next == 10


class Patient(SourceConnector):
    task = PatientTask

    def task_configs(self, max_tasks):
        return [dict(self.configs)]
"""


@pytest.mark.usefixtures("without_spark")
def test_records_are_visible_while_the_poll_behind_them_has_nothing_to_give(
    cluster: Sandbox, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    (tmp_path / "patient.py").write_text(PLUGIN)
    place = Place(
        cluster, tmp_path, **{"connector.class": "patient:Patient", "go": str(go), LATENCY: "200"}
    )
    with place.running() as process:
        eventually(lambda: len(place.seen()) == 5)
        go.touch()
        out, err = process.communicate(timeout=900)
    assert process.returncode == 0, err
    place.written = 10
    place.all_there()
    found = json.loads(out)["latency"]
    assert (found["records"], found["promiseMs"]) == (10, 200)


@KILLED
def test_a_killed_task_with_a_promise_loses_and_repeats_nothing_and_its_latency_is_in_the_status(
    cluster: Sandbox, tmp_path: Path
) -> None:
    place = Place(cluster, tmp_path, **{LATENCY: "100"})
    place.append(300)
    with place.running("--lease", "2") as process:
        place.sees(300)
        for each in python_workers(process):
            each.kill()
        place.append(300)
        place.sees(300)
        task = eventually(
            lambda: [
                t for t in place.status()["tasks"] if (t["metrics"] or {}).get(P99) is not None
            ]
        )
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=900)
    assert process.returncode == 0, err
    place.all_there()
    assert task[0]["metrics"]["latency-promise-ms"] == 100
