"""``doctor``: findings by patient with since when, what changed, metrics, and what was not seen."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import jsonschema
import pytest
from connectctl.cli.views.checks import explain_finding
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.topics import TopicFacts
from fakes.brokers import FakeBrokers
from fakes.clusters import Clusters
from fakes.workers import FakeConnector

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs/schema/doctor.json").read_text())


@pytest.fixture
def at(tmp_path: Path) -> Clusters:
    return Clusters(tmp_path)


def fail_lately(at: Clusters) -> None:
    """Write to the status topic that the task 1 of users failed two minutes ago."""
    status = {"state": "FAILED", "worker_id": "one:8083", "generation": 1, "trace": "x: disk full"}
    log = at.plain.kafka.records["sta"]
    when = int((time.time() - 120) * 1000)
    log.append(
        ConsumerRecord(b"status-task-users-1", json.dumps(status).encode(), 0, len(log), when)
    )


def test_a_finding_has_its_patient_since_when_and_what_changed(at: Clusters) -> None:
    fail_lately(at)
    table = at.plain.run("doctor", "users")
    assert table.exit_code == 1
    row = next(line for line in table.stdout.splitlines() if "FAIL001" in line)
    assert row.startswith("task users/1")
    assert "   2m0" in row
    assert "task 1 FAILED on one:8083" in table.stdout
    data = json.loads(at.plain.run("doctor", "users", "-o", "json").stdout)
    jsonschema.validate(data, SCHEMA)
    assert {"kind": "task", "name": "users/1", "severity": "error", "findings": ["FAIL001"]} in (
        data["patients"]
    )
    assert [each["kind"] for each in data["timeline"]][-1] == "failed"


def test_metrics_are_one_series_for_each_finding(at: Clusters, tmp_path: Path) -> None:
    fail_lately(at)
    file = tmp_path / "doctor.prom"
    assert at.plain.run("doctor", "users", "--prometheus", str(file)).exit_code == 1
    lines = file.read_text().splitlines()
    series = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
    assert len(series) == len(set(series))
    assert any('id="FAIL001"' in line and "since_seconds" in line for line in lines)
    assert [path.name for path in tmp_path.glob(".*.prom.*")] == []


def test_what_may_not_be_read_is_told_and_not_called_healthy(at: Clusters) -> None:
    at.plain.kafka.records["__consumer_offsets"] = []
    at.plain.kafka.forbidden |= {"__consumer_offsets", "off"}
    told = at.plain.run("doctor").stdout
    assert "the rebalances of connect in __consumer_offsets" in told
    assert "the offsets topic off" in told


def test_advice_about_settings_is_left_to_preflight(at: Clusters) -> None:
    assert "TOPIC012" in at.plain.run("preflight").stdout
    assert "TOPIC012" not in at.plain.run("doctor").stdout


def test_a_broker_that_is_fenced_while_doctor_reads_is_seen(at: Clusters) -> None:
    asked = threading.Event()

    class Dying(FakeBrokers):
        """Broker 2 is dead, and in the metadata until the topics are read, their replicas in sync."""

        def unreachable(self) -> dict[int, str]:
            gone = read.is_set()
            asked.set()
            return {} if gone else {2: "two:9092"}

    read = threading.Event()
    kafka, of_topics = at.plain.kafka, at.plain.kafka.topics

    def topics(names: Sequence[str]) -> dict[str, TopicFacts]:
        asked.wait(10)
        read.set()
        return of_topics(names)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafka, "topics", topics)
        at.plain.session.brokers = Dying()
        told = at.plain.run("doctor").stdout
    assert "BROKER019" in told
    assert "two:9092" in told


def test_what_ignore_leaves_out_is_counted_and_named(at: Clusters) -> None:
    fail_lately(at)
    ran = at.plain.run("doctor", "users", "--ignore", "FAIL001")
    assert "Left out by --ignore: 1 finding (FAIL001)." in ran.stderr


def test_heal_says_that_there_is_nothing_to_do(at: Clusters) -> None:
    at.plain.workers.connectors["users"] = FakeConnector(tasks=["RUNNING", "RUNNING"])
    healed = at.plain.run("doctor", "--heal")
    assert (healed.exit_code, healed.stdout) == (0, "Nothing to do.\n"), healed.output


def test_an_explanation_fits_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    explain_finding("FAIL001")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert "restarts it: workers never restart" in " ".join(lines)
