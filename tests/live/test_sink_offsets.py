"""Offsets of a stopped FileStreamSink on real workers: shown, set, read on from there, reset, and
given back.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from confluent_kafka import Consumer
from live.filesink import entries, sink
from live.offsetchanges import SCHEMAS, changed, ctl
from live.real import connector, create_topic, eventually, write

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
LINES = [f"line {n}" for n in range(10)]


def committed(cluster: Sandbox, *target: str) -> dict[int, int]:
    shown = ctl(cluster, "offsets", "show", *target, "-o", "json").json
    jsonschema.validate(shown, SCHEMAS["SinkOffsets"])
    (found,) = shown["connectors"]
    return {
        each["partition"]["kafka_partition"]: each["offset"]["kafka_offset"]
        for each in found["offsets"]
    }


def test_a_stopped_sink_reads_on_from_where_it_was_set(cluster: Sandbox, tmp_path: Path) -> None:
    topic = create_topic(cluster.bootstrap_servers, "sink-offsets-lines", 1, "delete")
    write(cluster.bootstrap_servers, topic, *[(None, line) for line in LINES], partition=0)
    name, file = "sink-offsets", tmp_path / "lines.txt"

    def lines() -> list[str]:
        return file.read_text().splitlines() if file.exists() else []

    with connector(cluster, name, sink(topic, file)) as rest:
        eventually(lambda: lines() == LINES)
        refused = ctl(
            cluster, "offsets", "set", name, "-f", "-", "--yes", code=4, stdin=entries(topic, 7)
        )
        assert "stop it first" in refused.err
        refused = ctl(cluster, "offsets", "reset", "--group", f"connect-{name}", "--yes", code=4)
        assert f"connector-consumer-{name}-0 at " in refused.err
        ctl(cluster, "connectors", "stop", name, "--wait", "--yes")
        assert committed(cluster, name) == {0: 10}

        set_ = changed(cluster, "set", name, "-f", "-", stdin=entries(topic, 7))
        assert rest.offsets(name) == json.loads(entries(topic, 7))["offsets"]
        ctl(cluster, "connectors", "resume", name, "--wait", "--yes")
        eventually(lambda: lines() == LINES + LINES[7:])

        ctl(cluster, "connectors", "stop", name, "--wait", "--yes")
        for via in ("rest", "kafka"):
            reset = changed(cluster, "reset", name, "--via", via)
            assert (committed(cluster, name), rest.offsets(name)) == ({}, [])
            changed(cluster, "undo", reset)
            assert committed(cluster, name) == {0: 10}
        changed(cluster, "set", name, "-f", "-", "--via", "kafka", stdin=entries(topic, 4))
        refused = ctl(cluster, "offsets", "undo", set_, "--yes", code=4)
        assert f"1 partition of the group connect-{name} moved since the run {set_}" in refused.err
        assert committed(cluster, name) == {0: 4}
        changed(cluster, "reset", name)
        ctl(cluster, "connectors", "resume", name, "--wait", "--yes")
        eventually(lambda: lines() == LINES + LINES[7:] + LINES)


@pytest.mark.drawn
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_without_a_connector_is_changed_when_its_members_have_left(
    cluster: Sandbox, protocol: str
) -> None:
    topic = create_topic(cluster.bootstrap_servers, f"group-offsets-{protocol}", 2, "delete")
    write(cluster.bootstrap_servers, topic, *[(None, line) for line in LINES], partition=0)
    group = f"connect-group-offsets-{protocol}"
    options: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group}
    consumer = Consumer(options | {"auto.offset.reset": "earliest", "group.protocol": protocol})
    consumer.subscribe([topic])
    got: list[Any] = []

    def all_read() -> bool:
        got.extend(m.value() for m in consumer.consume(10, 0.5))
        return len(got) == len(LINES)

    eventually(all_read)
    consumer.commit(asynchronous=False)
    refused = ctl(
        cluster,
        "offsets",
        "set",
        "--group",
        group,
        "-f",
        "-",
        "--yes",
        code=4,
        stdin=entries(topic, 3),
    )
    assert f"the group {group} has members" in refused.err
    consumer.close()
    assert committed(cluster, "--group", group)[0] == 10

    run = changed(cluster, "set", "--group", group, "-f", "-", stdin=entries(topic, 3))
    assert committed(cluster, "--group", group)[0] == 3
    reset = changed(cluster, "reset", "--group", group)
    assert committed(cluster, "--group", group) == {}
    assert "moved since" in ctl(cluster, "offsets", "undo", run, "--yes", code=4).err
    changed(cluster, "undo", reset)
    assert committed(cluster, "--group", group)[0] == 3
    changed(cluster, "undo", run)
    assert committed(cluster, "--group", group)[0] == 10
    wrong = ctl(
        cluster,
        "offsets",
        "set",
        "--group",
        group,
        "-f",
        "-",
        "--yes",
        code=4,
        stdin=entries(topic, 11),
    )
    assert "ends at 10" in wrong.err
