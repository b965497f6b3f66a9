"""``cluster show`` and ``connectors`` on a real broker and real workers."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from confluent_kafka import Consumer, Producer
from live.real import FILE_SOURCE, Ran, connectctl, connector, create_topic, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
TESTABLE = "org.apache.kafka.connect.integration.TestableSourceConnector"


def run(cluster: Sandbox, *args: str, code: int = 0) -> Ran:
    ran = connectctl("--context", f"sandbox-{cluster.spec.name}", *args)
    assert ran.code == code, ran.out + ran.err
    return ran


def bare(cluster: Sandbox, *args: str) -> Ran:
    """A run that is told nothing but the brokers and the group."""
    return connectctl(
        "--bootstrap-servers", cluster.bootstrap_servers, "--group-id", cluster.group_id, *args
    )


def checked(ran: Ran, schema: str) -> Any:
    jsonschema.validate(ran.json, json.loads((SCHEMAS / f"{schema}.json").read_text()))
    return ran.json


def listed(cluster: Sandbox, name: str) -> Any:
    found = run(cluster, "connectors", "list", "-o", "json").json["connectors"]
    return next(c for c in found if c["name"] == name)


def verdict(cluster: Sandbox, name: str) -> str:
    return str(listed(cluster, name)["state"])


@contextmanager
def running(cluster: Sandbox, tmp_path: Path, **more: str) -> Iterator[str]:
    """A source connector of one task that reads a file."""
    name = f"live-{uuid.uuid4().hex[:8]}"
    source = tmp_path / "in.txt"
    source.write_text("one\ntwo\n")
    config = {"connector.class": FILE_SOURCE, "topic": name, "file": str(source), "tasks.max": "1"}

    def is_running() -> bool:
        # A connector is RUNNING with 0 tasks until it has published their configurations.
        found = listed(cluster, name)
        return [found["state"], *(task["state"] for task in found["tasks"])] == ["RUNNING"] * 2

    with connector(cluster, name, config | more):
        eventually(is_running)
        yield name


def test_the_cluster_is_seen_whole_from_brokers_and_group_alone(
    cluster: Sandbox, tmp_path: Path
) -> None:
    with running(cluster, tmp_path) as name:
        view = checked(bare(cluster, "cluster", "show", "-o", "json"), "cluster")
    assert view["group"]["state"] == "Stable"
    assert {worker["url"] for worker in view["workers"]} == set(cluster.rest_urls)
    assert [worker["exactlyOnceSupport"] for worker in view["workers"]] == ["enabled", "enabled"]
    assert sum(worker["leader"] for worker in view["workers"]) == 1
    assert all(topic["cleanupPolicy"] == "compact" for topic in view["topics"] if topic["name"])
    assert name in {c["name"] for c in view["connectors"]}


def test_show_tells_a_running_connector_whole(cluster: Sandbox, tmp_path: Path) -> None:
    with running(cluster, tmp_path, **{"database.password": "hush"}) as name:
        shown = checked(run(cluster, "connectors", "show", name, "-o", "json"), "connectors-show")
        text = run(cluster, "connectors", "show", name).out
    assert (shown["state"], shown["targetState"], shown["type"]) == ("RUNNING", "STARTED", "source")
    assert (shown["taskCountRecord"], shown["fencingPending"]) == (1, False)
    assert shown["tasks"][0]["worker"] in {url.removeprefix("http://") for url in cluster.rest_urls}
    assert "hush" not in json.dumps(shown) + text


def test_stop_resume_pause_and_restart_reach_what_they_say(
    cluster: Sandbox, tmp_path: Path
) -> None:
    with running(cluster, tmp_path) as name:
        for verb, state in [
            ("stop", "STOPPED"),
            ("resume", "RUNNING"),
            ("pause", "PAUSED"),
            ("resume", "RUNNING"),
            ("restart", "RUNNING"),
        ]:
            ran = run(
                cluster,
                "connectors",
                verb,
                name,
                "--yes",
                "--wait",
                "--timeout",
                "60",
                "-o",
                "json",
            )
            assert [r["outcome"] for r in checked(ran, "result")["results"]] == ["done", "done"]
            assert verdict(cluster, name) == state
        assert "already RUNNING" in run(cluster, "connectors", "resume", name, "--yes").out


def test_a_saved_plan_is_carried_out_later_and_once(cluster: Sandbox, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    with running(cluster, tmp_path) as name:
        plan.write_text(
            run(cluster, "connectors", "stop", name, "--wait", "--dry-run", "-o", "json").out
        )
        assert verdict(cluster, name) == "RUNNING"
        applied = run(cluster, "runs", "apply", str(plan), "--yes", "--timeout", "60", "-o", "json")
        assert [r["outcome"] for r in checked(applied, "result")["results"]] == ["done", "done"]
        assert verdict(cluster, name) == "STOPPED"
        assert "The plan is stale" in run(cluster, "runs", "apply", str(plan), "--yes", code=4).err


def test_stopping_leaves_no_task_running(cluster: Sandbox, tmp_path: Path) -> None:
    with running(cluster, tmp_path) as name:
        run(cluster, "connectors", "stop", name, "--yes", "--wait")
        shown = run(cluster, "connectors", "show", name, "-o", "json").json
    assert (shown["targetState"], shown["tasks"], shown["fencingPending"]) == ("STOPPED", [], True)


def test_a_restart_of_what_fails_again_is_told_and_not_waited_for(cluster: Sandbox) -> None:
    name = f"live-{uuid.uuid4().hex[:8]}"
    config = {
        "connector.class": TESTABLE,
        "topic": name,
        "tasks.max": "1",
        "connector.start.inject.error": "true",
    }
    with connector(cluster, name, config):
        eventually(lambda: verdict(cluster, name) == "FAILED")
        ran = run(
            cluster,
            "connectors",
            "restart",
            name,
            "--only-failed",
            "--yes",
            "--wait",
            "--timeout",
            "60",
            code=1,
        )
        assert "FAILED" in ran.err
        assert "Injecting errors during connector start" in ran.err


def test_a_task_that_was_fenced_runs_again_after_a_restart_of_what_failed(
    cluster: Sandbox, tmp_path: Path
) -> None:
    with running(cluster, tmp_path) as name:
        eventually(
            lambda: (
                run(cluster, "connectors", "show", name, "-o", "json").json["taskCountRecord"] == 1
            )
        )
        intruder = Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "transactional.id": f"{cluster.group_id}-{name}-0",
            }
        )
        intruder.init_transactions(120)
        source = tmp_path / "in.txt"
        source.write_text(source.read_text() + "three\n")
        eventually(lambda: verdict(cluster, name) == "FAILED")
        ran = run(
            cluster,
            "connectors",
            "restart",
            name,
            "--only-failed",
            "--yes",
            "--wait",
            "--timeout",
            "60",
        )
        assert f"wait until {name} is RUNNING: RUNNING" in ran.out


def test_without_a_terminal_and_yes_a_change_is_refused(cluster: Sandbox, tmp_path: Path) -> None:
    with running(cluster, tmp_path) as name:
        command = [
            sys.executable,
            "-m",
            "connectctl.cli",
            "--context",
            f"sandbox-{cluster.spec.name}",
        ]
        done = subprocess.run(
            [*command, "connectors", "stop", name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert f"stop {name}" in done.stderr
        assert verdict(cluster, name) == "RUNNING"


def test_many_changes_during_rebalances_all_succeed(cluster: Sandbox, tmp_path: Path) -> None:
    with (
        running(cluster, tmp_path) as one,
        running(cluster, tmp_path) as two,
        running(cluster, tmp_path) as three,
    ):
        names = [one, two, three]
        for verb in ("stop", "resume", "stop"):
            run(cluster, "connectors", verb, *names, "--yes", "--wait", "--timeout", "90")
        assert {verdict(cluster, name) for name in names} == {"STOPPED"}


def test_a_group_of_todays_consumers_is_not_taken_for_workers_that_are_down(
    cluster: Sandbox,
) -> None:
    topic = create_topic(cluster.bootstrap_servers, "read-by-consumers", 1, "delete")
    client = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": "consumers-of-today",
        "group.protocol": "consumer",
    }
    consumer = Consumer(client)
    consumer.subscribe([topic])
    try:
        eventually(lambda: consumer.poll(0.5) or consumer.assignment())
        where = (
            "--bootstrap-servers",
            cluster.bootstrap_servers,
            "--group-id",
            "consumers-of-today",
        )
        ran = connectctl(*where, "cluster", "show")
        assert (ran.code, "it is a consumer group (KIP-848)" in ran.err) == (2, True), (
            ran.out + ran.err
        )
    finally:
        consumer.close()
