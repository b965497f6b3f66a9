"""What ``connectors apply`` waits for, refuses and reports, on real workers: states, health, the
rules of ``validate``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from live.real import Ran, connectctl, eventually, workers

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live

MANIFEST = """apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnector
metadata: {{name: {name}}}
spec:
  class: FileStreamSource
  state: {state}
  config: {{file: {file}, topic: {name}, marker: "{marker}"}}
"""


class Place:
    """A directory of configurations that are applied to the cluster, and removed from it in the
    end.
    """

    def __init__(self, cluster: Sandbox, directory: Path):
        self.cluster, self.directory = cluster, directory
        self.names: set[str] = set()
        (directory / "in.txt").write_text("a line\n")

    def file(self, name: str, **config: str) -> str:
        self.names.add(name)
        path = self.directory / f"{name}.json"
        path.write_text(json.dumps({"name": name, "config": config}))
        return str(path)

    def manifest(self, name: str, state: str, marker: str) -> None:
        self.names.add(name)
        given = MANIFEST.format(
            name=name, state=state, marker=marker, file=self.directory / "in.txt"
        )
        (self.directory / "manifests").mkdir(exist_ok=True)
        (self.directory / "manifests" / f"{name}.yaml").write_text(given)

    def run(self, *words: str) -> Ran:
        return connectctl(
            "--context", f"sandbox-{self.cluster.spec.name}", "--timeout", "240", *words
        )

    def apply(self, path: str, *more: str) -> Ran:
        return self.run("connectors", "apply", "-f", path, "--yes", "--wait", *more)


@pytest.fixture
def place(cluster: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    made = Place(cluster, tmp_path)
    yield made
    for name in made.names:
        workers(cluster).delete(name)


def told(ran: Ran, code: int, *words: str) -> None:
    said = ran.out + ran.err
    assert ran.code == code, said
    assert [word for word in words if word not in said] == [], said


def test_a_rerun_of_a_red_job_is_red_until_the_connector_is_healthy(place: Place) -> None:
    """A sink whose directory is not there: its task fails in its first second. Then somebody stops
    it by hand.
    """
    lines = place.directory / "later" / "out.txt"
    path = place.file(
        "states-sink",
        **{"connector.class": "FileStreamSink", "topics": "states-t", "file": str(lines)},
    )
    told(place.apply(path), 1, "states-sink is FAILED")
    told(place.apply(path), 1, "states-sink: unchanged; it is FAILED", "NoSuchFileException")
    lines.parent.mkdir()
    told(place.run("connectors", "restart", "states-sink", "--only-failed", "--yes", "--wait"), 0)
    told(place.apply(path), 0, "unchanged", "verify that states-sink is RUNNING")
    assert place.run("connectors", "apply", "-f", path, "--dry-run", "--exit-code").code == 0

    told(place.run("connectors", "stop", "states-sink", "--yes", "--wait"), 0)
    told(
        place.apply(path),
        1,
        "it is STOPPED, and its file means RUNNING",
        "connectors resume states-sink",
    )
    told(
        place.run("connectors", "apply", "-f", path, "--dry-run", "--exit-code"),
        3,
        "its file means RUNNING",
    )
    told(place.run("connectors", "resume", "states-sink", "--yes", "--wait"), 0)
    told(place.apply(path), 0)


def test_a_run_that_is_resumed_restarts_the_connector_that_failed(place: Place) -> None:
    lines = place.directory / "later" / "out.txt"
    path = place.file(
        "states-retry",
        **{"connector.class": "FileStreamSink", "topics": "states-t", "file": str(lines)},
    )
    told(place.apply(path), 1, "states-retry is FAILED")
    (run,) = [each["id"] for each in place.run("runs", "list", "-o", "json").json["runs"]]
    lines.parent.mkdir()
    told(
        place.run("runs", "resume", run, "--yes"),
        0,
        "restart the failed parts of states-retry, and wait until it is RUNNING: RUNNING",
    )


def test_connectors_of_one_apply_may_be_meant_to_be_in_different_states(place: Place) -> None:
    for name, state in (("states-a", "running"), ("states-b", "running")):
        place.manifest(name, state, "1")
    manifests = str(place.directory / "manifests")
    told(place.apply(manifests), 0)
    place.manifest("states-a", "running", "2")
    place.manifest("states-b", "paused", "1")
    told(
        place.apply(manifests),
        0,
        "wait until states-b is PAUSED: PAUSED",
        "wait until states-a is RUNNING: RUNNING",
    )
    told(place.apply(manifests), 0, "verify that states-b is PAUSED")


def test_what_validate_calls_an_error_is_refused_and_what_it_warns_of_is_in_the_plan(
    place: Place,
) -> None:
    base = {
        "connector.class": "FileStreamSource",
        "topic": "states-t",
        "file": str(place.directory / "in.txt"),
    }
    fails = base | {"topic.creation.default.partitions": "1", "task.max": "2"}
    path = place.file("states-bad", **fails)
    validated = place.run("validate", "-f", path, "-o", "json").json
    found = {each["id"]: each["severity"] for each in validated["findings"]}
    assert found == {"CONFIG015": "error", "CONFIG016": "warning"}
    for verb in ("create", "apply"):
        told(place.run("connectors", verb, "-f", path, "--yes"), 4, "CONFIG015", "--force")
    assert workers(place.cluster).call("GET", "/connectors/states-bad").status_code == 404
    forced: Any = place.run(
        "connectors", "apply", "-f", path, "--force", "--dry-run", "-o", "json"
    ).json
    assert [line.split()[1] for line in forced["warnings"]] == ["CONFIG015", "CONFIG016"]

    good = place.file("states-bad", **base)
    told(place.apply(good), 0)
    patch = ("connectors", "patch", "states-bad", "topic.creation.default.partitions=1", "--yes")
    told(place.run(*patch), 4, "CONFIG015")
    told(
        place.run("connectors", "patch", "states-bad", "errors.tolerance=all", "--dry-run"),
        0,
        "CONFIG018",
    )
    told(
        place.run("connectors", "patch", "states-bad", "tasks.max=0", "--yes"),
        2,
        "The workers do not accept",
    )
    missing = place.file("states-none", **{"connector.class": "FileStreamSorce", "topic": "t"})
    refused = place.run("connectors", "apply", "-f", missing, "--yes")
    told(refused, 2, "CONFIG001", "No such class FileStreamSorce; did you mean ", "plugins list")
    assert len(refused.err) < 1_000


def test_a_sink_that_fails_at_its_first_record_is_not_healthy(place: Place) -> None:
    """Its tasks are RUNNING while they join their group, which takes longer than a look."""
    producer = Producer({"bootstrap.servers": place.cluster.bootstrap_servers})
    producer.produce("states-words", b"not JSON")
    producer.flush()
    config = {
        "connector.class": "FileStreamSink",
        "topics": "states-words",
        "file": str(place.directory / "out"),
    }
    json_ = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
    earliest = {"consumer.override.auto.offset.reset": "earliest"}
    path = place.file("states-words", **config, **json_, **earliest)
    told(place.apply(path), 1, "states-words is FAILED")
    assert eventually(lambda: workers(place.cluster).state("states-words")) == ["RUNNING", "FAILED"]
