"""KIP-1004's integration scenarios on real workers: ``tasks check`` says before what the workers do
after.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from connectctl.ops.sandbox.cluster import Sandbox, SandboxSpec, down, up
from connectctl.ops.sandbox.jars.versions import LATEST
from live.real import connectctl, connector, eventually, workers, write

if TYPE_CHECKING:
    from live.real import Workers

pytestmark = pytest.mark.live
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/tasks-check.json").read_text())
PLUGIN = "org.apache.kafka.connect.integration.MonitorableSourceConnector"
"""It generates ``num.tasks`` tasks, whatever tasks.max is; that of 3.7 does not know
``num.tasks``.
"""


def configuration(topic: str, asked: int, generated: int, **more: str) -> dict[str, str]:
    counts = {"tasks.max": str(asked), "num.tasks": str(generated)}
    return (
        {"connector.class": PLUGIN, "name": topic, "topic": topic, "throughput": "5"}
        | counts
        | more
    )


def check(sandbox: Sandbox, *args: str, code: int | None = None) -> Any:
    # In the middle of a rebalance the group does not tell its workers' addresses.
    where = ("--context", f"sandbox-{sandbox.spec.name}", "--rest", sandbox.rest_urls[0])
    ran = connectctl(*where, "tasks", "check", *args, "-o", "json")
    assert ran.out, ran.err
    jsonschema.validate(ran.json, SCHEMA)
    assert code is None or ran.code == code, ran.out + ran.err
    return ran.json


def outlook(said: Any, name: str) -> tuple[str, str]:
    found = next(c for c in said["connectors"] if c["name"] == name)
    return found["now"], found["then"]


def ids(said: Any, name: str) -> list[str]:
    return sorted(f["id"] for f in said["findings"] if f["subject"] == name)


def configure(rest: Workers, config: dict[str, str]) -> None:
    answer = rest.call("PUT", f"/connectors/{config['name']}/config", config)
    assert answer.status_code in (200, 201), answer.text


def becomes(rest: Workers, name: str, *states: str) -> None:
    """Wait for the connector's state and its tasks'."""
    eventually(lambda: rest.state(name) == list(states))


def settled(rest: Workers, name: str) -> bool:
    """Whether the connector and its two tasks run; tasks that failed are restarted."""
    states = rest.state(name)
    for task, state in enumerate(states[1:]):
        if state == "FAILED":
            rest.call("POST", f"/connectors/{name}/tasks/{task}/restart")
    return states == ["RUNNING", "RUNNING", "RUNNING"]


def message(said: Any, id_: str, name: str) -> str:
    return next(
        str(f["message"]) for f in said["findings"] if (f["id"], f["subject"]) == (id_, name)
    )


@pytest.fixture
def name() -> str:
    return f"tasks-{uuid.uuid4().hex[:8]}"


def test_too_many_tasks_fail_the_connector_and_the_check_says_why(
    cluster: Sandbox, name: str
) -> None:
    with connector(cluster, name, configuration(name, 1, 2)) as rest:
        becomes(rest, name, "FAILED")
        said = check(cluster, name, code=1)
        assert outlook(said, name) == ("FAILED", "fails")
        assert ids(said, name) == ["TASK001"]
        assert message(said, "TASK001", name) == (
            "It is FAILED: it generated 2 tasks with a tasks.max of 1. It has no tasks."
        )
        configure(rest, configuration(name, 1, 2, **{"tasks.max.enforce": "false"}))
        becomes(rest, name, "RUNNING", "RUNNING", "RUNNING")
        said = check(cluster, name, code=0)
        assert (outlook(said, name), ids(said, name)) == (("allowed", "fails"), ["TASK005"])
        assert check(cluster, name, "--fail-on", "warning", code=1)
        configure(rest, configuration(name, 2, 2, **{"tasks.max.enforce": "false"}))
        eventually(lambda: ids(check(cluster, name), name) == ["TASK006"])


def test_a_set_that_is_larger_than_a_lowered_limit_runs_and_fails_when_it_starts_again(
    cluster: Sandbox, name: str
) -> None:
    with connector(cluster, name, configuration(name, 2, 2)) as rest:
        for _ in range(5):
            configure(rest, configuration(name, 2, 2))
            eventually(lambda: settled(rest, name))
            assert ids(check(cluster, name, code=0), name) == []
            configure(rest, configuration(name, 1, 2))
            eventually(lambda: rest.state(name)[0] == "FAILED")
            before = check(cluster, name, code=1)
            if ids(before, name) == ["TASK001", "TASK003"]:
                break
            # A rebalance came between, which moved a task: that has started again, and failed.
            assert ids(before, name) == ["TASK001", "TASK002"]
            assert "FAILED" in rest.state(name)[1:]
        assert "each task that starts again FAILS" in message(before, "TASK003", name)
        for task in (0, 1):
            rest.call("POST", f"/connectors/{name}/tasks/{task}/restart")
        becomes(rest, name, "FAILED", "FAILED", "FAILED")
        after = check(cluster, name, code=1)
        assert ids(after, name) == ["TASK001", "TASK002"]
        assert message(after, "TASK002", name).startswith("2 of its 2 tasks are FAILED")
        configure(rest, configuration(name, 1, 2, **{"tasks.max.enforce": "false"}))
        becomes(rest, name, "RUNNING", "RUNNING", "RUNNING")


def test_a_set_that_fits_runs_on_beside_a_connector_that_has_failed(
    cluster: Sandbox, name: str
) -> None:
    with connector(cluster, name, configuration(name, 1, 1)) as rest:
        becomes(rest, name, "RUNNING", "RUNNING")
        configure(rest, configuration(name, 1, 2))
        becomes(rest, name, "FAILED", "RUNNING")
        said = check(cluster, name, code=1)
        assert ids(said, name) == ["TASK001"]
        assert "It still has its previous 1 task" in message(said, "TASK001", name)
        rest.call("POST", f"/connectors/{name}/tasks/0/restart")
        eventually(lambda: rest.state(name) == ["FAILED", "RUNNING"])


def test_a_stopped_connector_is_judged_by_its_last_run(cluster: Sandbox, name: str) -> None:
    with connector(cluster, name, configuration(name, 2, 2)) as rest:
        becomes(rest, name, "RUNNING", "RUNNING", "RUNNING")
        rest.call("PUT", f"/connectors/{name}/stop")
        eventually(lambda: rest.state(name)[0] == "STOPPED")
        eventually(
            lambda: (
                outlook(check(cluster, name, code=0), name) == ("seen on resume", "seen on resume")
            )
        )
        configure(rest, configuration(name, 1, 2))
        before = eventually(
            lambda: said if ids(said := check(cluster, name), name) == ["TASK009"] else None
        )
        assert outlook(before, name) == ("may fail on resume", "may fail on resume")
        rest.call("PUT", f"/connectors/{name}/resume")
        eventually(lambda: rest.state(name)[0] == "FAILED")
        assert ids(check(cluster, name, code=1), name) == ["TASK001"]


def test_fewer_tasks_than_asked_are_told_and_no_fault(cluster: Sandbox, name: str) -> None:
    with connector(cluster, name, configuration(name, 3, 1)) as rest:
        becomes(rest, name, "RUNNING", "RUNNING")
        said = check(cluster, name, "--fail-on", "warning", code=0)
        assert (outlook(said, name), ids(said, name)) == (("ok", "ok"), ["TASK007"])


# ------------------------------------------------------------------------------ an upgrade from 3.7


OLD = "3.7.2"


@pytest.fixture(scope="module")
def old() -> Iterator[Sandbox]:
    """A worker that knows nothing of enforcement, which came with 3.8."""
    yield up(SandboxSpec(name="tasksmax", workers=1, kafka_version=OLD))
    down("tasksmax")


def generate(sandbox: Sandbox, name: str, config: dict[str, str], number: int) -> None:
    """Write task configurations as the leader does, as if the plugin had generated so many."""
    tasks = [
        (
            f"task-{name}-{n}",
            {
                "properties": config
                | {
                    "task.class": f"{PLUGIN}$MonitorableSourceTask",
                    "connector.name": name,
                    "task.id": f"{name}-{n}",
                }
            },
        )
        for n in range(number)
    ]
    write(
        sandbox.bootstrap_servers,
        sandbox.topics["config"],
        *tasks,
        (f"commit-{name}", {"tasks": number}),
    )


@pytest.mark.versions(workers=OLD)
def test_what_an_upgrade_breaks_is_foretold(old: Sandbox) -> None:
    rest = workers(old)
    bad, fine, allowed = (
        configuration(f"old-{what}", 1, count)
        for what, count in (("bad", 2), ("ok", 1), ("free", 2))
    )
    allowed["tasks.max.enforce"] = "false"
    for config in (bad, fine, allowed):
        rest.create(config["name"], config)
        becomes(rest, config["name"], "RUNNING", "RUNNING")
    for config in (bad, allowed):
        generate(old, config["name"], config, 2)
        becomes(rest, config["name"], "RUNNING", "RUNNING", "RUNNING")

    plain = check(old, code=0)
    assert plain["forVersion"] == "3.8"
    assert ids(plain, "old-bad") == ["TASK004"]
    assert check(old, "--for-version", "3.7.2", code=0)["findings"] != plain["findings"]
    before = check(old, "--for-version", "3.8", code=1)
    foretold = {c["name"]: (c["now"], c["then"]) for c in before["connectors"]}
    assert foretold == {
        "old-bad": ("not enforced", "fails"),
        "old-ok": ("ok", "ok"),
        "old-free": ("not enforced", "allowed"),
    }

    old.group.stop_worker(1)
    old.group.start_worker(1, kafka_version=LATEST)
    becomes(rest, "old-bad", "FAILED", "FAILED", "FAILED")
    becomes(rest, "old-ok", "RUNNING", "RUNNING")
    becomes(rest, "old-free", "RUNNING", "RUNNING", "RUNNING")
    after = check(old, code=1)
    assert after["forVersion"] is None
    assert ids(after, "old-bad") == ["TASK001", "TASK002"]
    assert outlook(after, "old-free") == ("allowed", "fails")

    for config in (bad, allowed):
        configure(rest, config | {"tasks.max": "2", "tasks.max.enforce": "true"})
        becomes(rest, config["name"], "RUNNING", "RUNNING", "RUNNING")
    eventually(lambda: check(old)["findings"] == [])
