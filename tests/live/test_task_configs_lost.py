"""Task configurations that compaction of the config topic takes away (KAFKA-17719): seen before a
restart, and cured.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from live.real import Workers, connectctl, connector, create_topic, eventually, write

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
SOURCE = "org.apache.kafka.connect.tools.VerifiableSourceConnector"
PATIENCE = 600.0
"""Seconds for what a slow machine may take its time with."""


def run(cluster: Sandbox, *args: str, code: int | None = 0) -> Any:
    where = (
        "--context",
        f"sandbox-{cluster.spec.name}",
        "--rest",
        cluster.rest_urls[0],
        "--timeout",
        "120",
    )
    ran = connectctl(*where, *args, "-o", "json")
    assert code is None or ran.code == code, ran.out + ran.err
    return json.loads(ran.out or ran.err)


def told(cluster: Sandbox, name: str, *command: str) -> dict[str, Any] | None:
    found = run(cluster, *(command or ("cluster", "show")), code=None)["findings"]
    return next((f for f in found if f["id"] == "TASK010" and f["subject"] == name), None)


def configuration(name: str) -> dict[str, str]:
    return {
        "name": name,
        "connector.class": SOURCE,
        "tasks.max": "2",
        "topic": name,
        "throughput": "1",
    }


def test_an_identical_configuration_endangers_the_tasks_until_they_are_published_again(
    cluster: Sandbox,
) -> None:
    name = f"k{uuid.uuid4().hex[:8]}"
    with connector(cluster, name, configuration(name)) as workers:
        eventually(lambda: workers.state(name) == ["RUNNING"] * 3, PATIENCE)
        assert told(cluster, name) is None
        workers.call("PUT", f"/connectors/{name}/config", configuration(name))
        finding = eventually(lambda: told(cluster, name), PATIENCE)
        assert finding["message"].startswith(
            "After the next compaction, workers that start have no task configurations"
        )
        assert told(cluster, name, "preflight", "--ignore", "EOS001") is not None

        # What seems to help does not: tasks that did not change are not written again.
        workers.call("POST", f"/connectors/{name}/restart?includeTasks=true")
        eventually(lambda: workers.state(name) == ["RUNNING"] * 3, PATIENCE)
        assert told(cluster, name) is not None

        planned = run(cluster, "connectors", "cure", name, "--dry-run")
        says = [step["description"] for step in planned["steps"]]
        assert says[0] == f"stop {name}"
        assert says[2] == f"resume {name}"
        run(cluster, "connectors", "cure", name, "--yes")
        assert told(cluster, name) is None
        assert workers.state(name) == ["RUNNING"] * 3


def test_a_connector_that_is_paused_stays_so(cluster: Sandbox) -> None:
    name = f"k{uuid.uuid4().hex[:8]}"
    with connector(cluster, name, configuration(name)) as workers:
        eventually(lambda: workers.state(name) == ["RUNNING"] * 3, PATIENCE)
        workers.call("PUT", f"/connectors/{name}/pause")
        eventually(lambda: workers.state(name) == ["PAUSED"] * 3, PATIENCE)
        workers.call("PUT", f"/connectors/{name}/config", configuration(name))
        eventually(lambda: told(cluster, name), PATIENCE)
        run(cluster, "connectors", "cure", name, "--yes")
        assert told(cluster, name) is None
        assert workers.state(name)[0] == "PAUSED"
        workers.call("PUT", f"/connectors/{name}/resume")
        eventually(lambda: workers.state(name) == ["RUNNING"] * 3, PATIENCE)
        assert told(cluster, name) is None


def test_what_compaction_has_taken_already_is_lost_at_the_next_start(cluster: Sandbox) -> None:
    name, topic = f"k{uuid.uuid4().hex[:8]}", f"configs-{uuid.uuid4().hex[:8]}"
    create_topic(cluster.bootstrap_servers, topic, partitions=1)
    task = {"properties": {"task.class": "T"}}
    write(
        cluster.bootstrap_servers, topic, (f"task-{name}-0", task), (f"commit-{name}", {"tasks": 1})
    )
    write(
        cluster.bootstrap_servers, topic, (f"connector-{name}", {"properties": configuration(name)})
    )
    where = (
        "--bootstrap-servers",
        cluster.bootstrap_servers,
        "--group-id",
        f"g-{name}",
        "--config-topic",
        topic,
    )
    ran = connectctl(*where, "cluster", "show", "-o", "json")
    (finding,) = [f for f in ran.json["findings"] if f["id"] == "TASK010"]
    assert finding["message"].startswith("A worker that starts has no task configurations of it")


@pytest.fixture
def compacting() -> Iterator[Sandbox]:
    """A cluster whose config topic is compacted within seconds."""
    from connectctl.ops.sandbox.cluster import SandboxSpec, down, up

    name = f"compacting-{uuid.uuid4().hex[:6]}"
    # What ends a segment is the next record after its time, and the cleaner looks every second.
    small = {
        "segment.ms": "1000",
        "min.cleanable.dirty.ratio": "0.001",
        "delete.retention.ms": "100",
    }
    workers = {f"config.storage.{key}": value for key, value in small.items()}
    brokers = {"log.cleaner.backoff.ms": "500"}
    try:
        yield up(
            SandboxSpec(
                name,
                workers=2,
                support="enabled",
                extra_worker_properties=workers,
                extra_broker_properties=brokers,
            )
        )
    finally:
        down(name)


@pytest.mark.slow
def test_on_a_real_worker_compaction_takes_the_tasks_and_the_cure_brings_them_back(
    compacting: Sandbox,
) -> None:
    name, other = "orders", "other"
    rest = Workers(compacting.rest_urls[0])
    config = configuration(name) | {"tasks.max": "6"}
    rest.create(name, config)
    eventually(lambda: rest.state(name) == ["RUNNING"] * 7, PATIENCE)
    for _ in range(2):
        time.sleep(1.1)
        rest.call("PUT", f"/connectors/{name}/config", config)

    def compacted() -> bool:
        # Each record after a second ends a segment, so that those before it can be compacted.
        rest.call(
            "PUT",
            f"/connectors/{other}/config",
            configuration(other) | {"throughput": str(time.time_ns() % 1000)},
        )
        finding = told(compacting, name)
        return finding is not None and finding["message"].startswith(
            "A worker that starts has no task"
        )

    rest.create(other, configuration(other))
    eventually(compacted, PATIENCE)

    refused = run(compacting, "upgrade", "plan", "--to", "disabled", code=4)
    assert "TASK010 orders" in refused["error"]["why"]

    # The worker without the connector starts again, and is given tasks of which it has no
    # configuration: alone with its tasks, the connector stays where it is, and half of them go to
    # the other worker.
    rest.delete(other)
    status = rest.call("GET", f"/connectors/{name}/status").json()
    addresses = [url.partition("//")[2] for url in compacting.rest_urls]
    restarted = 1 + addresses.index(
        next(a for a in addresses if a != status["connector"]["worker_id"])
    )
    compacting.group.stop_worker(restarted)
    compacting.group.start_worker(restarted)
    log = compacting.layout.logs / f"worker-{restarted}.log"
    eventually(lambda: "invalid task configuration" in log.read_text(), PATIENCE)

    run(compacting, "connectors", "cure", name, "--yes")
    eventually(lambda: told(compacting, name) is None, PATIENCE)
    mark = len(log.read_text())
    compacting.group.stop_worker(restarted)
    compacting.group.start_worker(restarted)
    eventually(lambda: rest.state(name) == ["RUNNING"] * 7, PATIENCE)
    assert "invalid task configuration" not in log.read_text()[mark:]
