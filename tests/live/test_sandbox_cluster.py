"""A sandbox that is up can be handled: workers stop, start and come, the broker dies and returns,
others join.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.sandbox import processes
from connectctl.ops.sandbox.cluster import Sandbox, SandboxSpec, down, find, names, up
from connectctl.ops.sandbox.status import SandboxState, status
from fakes.sandboxes import add_worker, extra_group, kill_broker, properties_file, start_broker

pytestmark = pytest.mark.live


def get(url: str) -> Any:
    return httpx.get(url, trust_env=False, timeout=120).raise_for_status().json()


def supports_exactly_once(url: str) -> bool:
    """The one thing that a worker tells about its exactly-once support."""
    plugin = "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector"
    asked = {"connector.class": plugin, "name": "x", "exactly.once.support": "required"}
    answer = httpx.put(
        f"{url}/connector-plugins/{plugin}/config/validate", json=asked, trust_env=False, timeout=10
    ).json()
    errors = [error for config in answer["configs"] for error in config["value"]["errors"]]
    return not any("does not have exactly-once source support enabled" in error for error in errors)


@pytest.fixture(scope="module")
def small() -> Iterator[Sandbox]:
    yield up(SandboxSpec(name="small", workers=1))
    down("small")


def test_two_workers_are_one_group(cluster: Sandbox) -> None:
    assert len(cluster.rest_urls) == 2
    for url in cluster.rest_urls:
        assert get(url)["kafka_cluster_id"] == cluster.cluster_id
        assert supports_exactly_once(url)


@pytest.mark.parametrize(
    "connector",
    [
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "org.apache.kafka.connect.tools.VerifiableSourceConnector",
        "org.apache.kafka.connect.integration.TestableSourceConnector",
    ],
)
def test_the_workers_have_connectors(cluster: Sandbox, connector: str) -> None:
    assert connector in {
        plugin["class"] for plugin in get(f"{cluster.rest_urls[0]}/connector-plugins")
    }


@pytest.mark.parametrize(
    ("name", "config"),
    [
        (
            "verifiable",
            {
                "connector.class": "VerifiableSource",
                "topic": "sandbox-verifiable",
                "throughput": "10",
            },
        ),
        (
            "testable",
            {
                "connector.class": "org.apache.kafka.connect.integration.TestableSourceConnector",
                "topic": "sandbox-testable",
                "num.tasks": "1",
                "messages.per.poll": "1",
                "throughput": "10",
                "connector.start.inject.error": "false",
            },
        ),
    ],
)
def test_connectors_of_kafkas_own_tests_run(
    cluster: Sandbox, name: str, config: dict[str, str]
) -> None:
    """A plugin that is listed may still lack a class when it runs."""
    url = f"{cluster.rest_urls[0]}/connectors"
    body = {"name": f"sandbox-{name}", "config": {**config, "tasks.max": "1"}}
    httpx.post(url, json=body, trust_env=False, timeout=120).raise_for_status()
    try:
        deadline, states = time.monotonic() + 600, list[str]()
        while states != ["RUNNING"] and time.monotonic() < deadline:
            time.sleep(0.2)
            answer = httpx.get(f"{url}/sandbox-{name}/status", trust_env=False, timeout=120).json()
            states = [task["state"] for task in answer.get("tasks", [])]
            assert "FAILED" not in states, answer
        assert states == ["RUNNING"]
    finally:
        httpx.delete(f"{url}/sandbox-{name}", trust_env=False, timeout=120)


def test_everything_listens_on_the_loopback_only(cluster: Sandbox) -> None:
    pids = [node.pid for node in cluster.record.nodes]
    listening = [
        connection.laddr.ip
        for pid in pids
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 4
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}


def test_up_again_changes_nothing_and_says_so(cluster: Sandbox) -> None:
    before = cluster.record
    assert up(cluster.spec).was_running
    assert cluster.record == before


def test_up_with_other_options_refuses(cluster: Sandbox) -> None:
    with pytest.raises(Refused, match=r"workers is 2, not 1.*connectctl sandbox down --name tests"):
        up(replace(cluster.spec, workers=1))


def test_two_sandboxes_side_by_side(cluster: Sandbox, small: Sandbox) -> None:
    assert cluster.cluster_id != small.cluster_id
    assert not cluster.record.ports() & small.record.ports()
    assert {"tests", "small"} <= set(names())
    for name in ("tests", "small"):
        found = status(name)
        assert found.state is SandboxState.RUNNING
        # Other groups of the shared cluster are other tests', which stop their workers.
        own = [
            process.state for process in found.processes if process.group_id in ("", found.group_id)
        ]
        assert len(own) == {"tests": 3, "small": 2}[name]
        assert set(own) == {SandboxState.RUNNING}


def test_a_worker_restarts_on_its_edited_file(small: Sandbox) -> None:
    assert not supports_exactly_once(small.rest_urls[0])
    properties_file(small, 1).write_text(properties_file(small, 1).read_text() + "client.id=mine\n")
    url = small.rest_urls[0]
    small.group.stop_worker(1)
    assert list(small.rest_urls) == []
    assert [process.state for process in status("small").processes] == [
        SandboxState.RUNNING,
        SandboxState.STOPPED,
    ]
    small.group.start_worker(1, support="enabled")
    assert list(small.rest_urls) == [url]
    assert supports_exactly_once(url)
    assert "client.id=mine\n" in properties_file(small, 1).read_text()


def test_a_worker_is_added_and_killed_and_the_group_closes(small: Sandbox) -> None:
    assert add_worker(small.group) == 2
    assert len(small.rest_urls) == 2
    assert small.group.number_of(small.rest_urls[1]) == 2
    small.group.stop_worker(2, kill=True)
    with pytest.raises(BadInput, match="has workers 1 to 2, not 3"):
        small.group.stop_worker(3)
    assert get(f"{small.rest_urls[0]}/connectors") == []


def test_another_group_on_the_same_broker(small: Sandbox) -> None:
    group = extra_group(
        small, "other", support="preparing", properties={"offset.flush.interval.ms": "500"}
    )
    (url,) = group.rest_urls
    assert get(url)["kafka_cluster_id"] == small.cluster_id
    assert url not in small.rest_urls
    assert group.topics["offsets"] == "other-offsets"
    assert "offset.flush.interval.ms=500\n" in small.layout.properties("other-worker-1").read_text()
    group.stop_worker(1, kill=True)


def test_a_broker_dies_and_returns_with_its_data(small: Sandbox) -> None:
    cluster_id = small.cluster_id
    kill_broker(small)
    assert status("small").processes[0].state is SandboxState.STOPPED
    start_broker(small)
    assert find("small").cluster_id == cluster_id
    assert get(f"{small.rest_urls[0]}/connectors") == []


def test_an_authorizing_broker_with_a_listener_that_asks_who_you_are() -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic

    users = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_eve="secret";'
    spec = SandboxSpec(
        name="guarded",
        workers=0,
        extra_listeners={"SASL": "SASL_PLAINTEXT"},
        extra_broker_properties={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": users,
        },
    )
    try:
        sandbox = up(spec)
        login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "eve",
        }
        eve = AdminClient(
            {"bootstrap.servers": sandbox.listeners["SASL"], "sasl.password": "secret"} | login
        )
        assert eve.describe_cluster(request_timeout=10).result().cluster_id == sandbox.cluster_id
        creation = eve.create_topics([NewTopic("t", 1, 1)])["t"]
        with pytest.raises(KafkaException, match="Authorization failed"):
            creation.result()
    finally:
        assert down("guarded")


def test_a_sandbox_that_is_down_leaves_nothing(small: Sandbox) -> None:
    root: Path = small.layout.root
    assert down("small")
    assert not root.exists()
    assert root not in processes.roots()
    assert not down("small")
    with pytest.raises(BadInput, match="Sandbox not found: small"):
        status("small")
