"""Plugins, loggers and active topics of real workers."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from connectctl.ops.clients.librdkafka.client import Kafka
from live.real import FILE_SOURCE, Ran, connectctl, connector, create_topic, eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"


def run(cluster: Sandbox, *args: str, code: int = 0) -> Ran:
    ran = connectctl("--context", f"sandbox-{cluster.spec.name}", *args)
    assert ran.code == code, ran.out + ran.err
    return ran


def checked(ran: Ran, schema: str) -> Any:
    jsonschema.validate(ran.json, json.loads((SCHEMAS / f"{schema}.json").read_text()))
    return ran.json


def test_a_topic_that_is_named_twice_is_described_once(cluster: Sandbox) -> None:
    """As one that two connectors, or two roles of a group, may have in common."""
    topic = create_topic(cluster.bootstrap_servers, f"twice-{uuid.uuid4().hex[:8]}", 1)
    kafka = Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
    assert list(kafka.topics([topic, topic])) == [topic]
    assert list(kafka.topic_configs([topic, topic])) == [topic]


def test_plugins_of_two_equal_workers_do_not_differ(cluster: Sandbox) -> None:
    ran = run(cluster, "plugins", "list", "-o", "json")
    listed = checked(ran, "plugin-list")
    assert (len(listed["workers"]), listed["silentWorkers"], ran.err) == (2, {}, "")
    file = next(
        each for each in listed["plugins"] if each["class"].endswith(".FileStreamSourceConnector")
    )
    assert (file["type"], file["workers"]) == ("source", listed["workers"])
    shown = checked(run(cluster, "plugins", "show", "FileStreamSource", "-o", "json"), "plugin")
    assert {"file", "topic", "batch.size"} <= {each["name"] for each in shown["properties"]}
    version = str(file["version"])
    assert run(
        cluster, "plugins", "show", "FileStreamSource", "--plugin-version", version, "-o", "name"
    ).out.split()


def test_a_level_is_set_on_both_workers_and_set_back(cluster: Sandbox) -> None:
    def levels() -> dict[str, Any]:
        found = checked(run(cluster, "loggers", "get", "org.apache", "-o", "json"), "logger-list")[
            "loggers"
        ]
        return {f"{each['name']} {each['level']}": each["workers"] for each in found}

    before = levels()
    run(cluster, "loggers", "set", "org.apache.kafka.connect.runtime", "ERROR", "--yes")
    during = run(cluster, "loggers", "get", "org.apache.kafka.connect.runtime", "-o", "json").json[
        "loggers"
    ]
    assert {each["level"] for each in during} == {"ERROR"}
    id_ = run(cluster, "runs", "list", "-o", "name").out.split()[0]
    run(cluster, "loggers", "undo", id_, "--yes")
    after = levels()
    assert {key: workers for key, workers in after.items() if key in before} == before
    worker = cluster.rest_urls[1].removeprefix("http://")
    run(cluster, "loggers", "set", "org.example", "DEBUG", "--worker", worker, "--yes")
    assert levels_of(run(cluster, "loggers", "get", "org.example", "-o", "json")) == {
        "DEBUG": [worker]
    }


def levels_of(ran: Ran) -> dict[str, list[str]]:
    return {each["level"]: each["workers"] for each in ran.json["loggers"]}


def test_active_topics_come_with_records_and_go_with_a_reset(
    cluster: Sandbox, tmp_path: Path
) -> None:
    name = f"live-{uuid.uuid4().hex[:8]}"
    file = tmp_path / "in.txt"
    file.write_text("one\n")
    with connector(
        cluster,
        name,
        {"connector.class": FILE_SOURCE, "topic": name, "file": str(file), "tasks.max": "1"},
    ):
        eventually(
            lambda: run(cluster, "connectors", "topics", name, "-o", "name").out == f"{name}\n"
        )
        run(cluster, "connectors", "topics", name, "--reset", "--yes")
        eventually(lambda: run(cluster, "connectors", "topics", name, "-o", "name").out == "")
        checked(run(cluster, "connectors", "topics", name, "-o", "json"), "connector-topics")
