"""MirrorMaker 2 in dedicated mode has no REST API: it is read from topics, and changed by its
operator.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from live.mirrormaker import MirrorMaker
from live.real import Ran, connectctl, create_topic, eventually, write

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live
SOURCE = "MirrorSourceConnector"
CONNECTORS = {SOURCE, "MirrorCheckpointConnector", "MirrorHeartbeatConnector"}
RECORDS = 20
DEADLINE = 900.0
"""Seconds for a process to start and to join its group, on a slow machine."""
REFUSED = [
    ("connectors", "stop", SOURCE),
    ("connectors", "restart", SOURCE),
    ("connectors", "delete", SOURCE, "--yes"),
    ("connectors", "cure", SOURCE, "--dry-run"),
    ("plugins", "list"),
    ("loggers", "get"),
    ("upgrade", "status"),
    ("offsets", "reset", SOURCE, "--yes", "--confirm", SOURCE),
    ("offsets", "reset", SOURCE, "--stop", "--yes", "--confirm", SOURCE),
]


@pytest.fixture(scope="module")
def mirror(cluster: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MirrorMaker]:
    source = f"live{secrets.token_hex(3)}"
    topic = f"{source}-in"
    create_topic(cluster.bootstrap_servers, topic, 1, "delete")
    write(cluster.bootstrap_servers, topic, *((None, str(n)) for n in range(RECORDS)))
    made = MirrorMaker(
        tmp_path_factory.mktemp("mm2"), cluster.bootstrap_servers, source, "dr", topic
    )
    made.start()
    try:
        yield made
    finally:
        made.stop()


def of(mirror: MirrorMaker, *args: str, stdin: str | None = None) -> Ran:
    return connectctl(
        "--bootstrap-servers", mirror.bootstrap, "--group-id", mirror.group, *args, stdin=stdin
    )


def states(mirror: MirrorMaker) -> dict[str, str]:
    ran = of(mirror, "connectors", "list", "-o", "json")
    return {each["name"]: each["state"] for each in ran.json["connectors"]} if ran.code == 0 else {}


def offset(mirror: MirrorMaker) -> int:
    """The offset after the last record that was copied, -1 where there is none."""
    ran = of(mirror, "offsets", "show", SOURCE, "-o", "json")
    found = (
        [each["effective"] for c in ran.json["connectors"] for each in c["offsets"]]
        if ran.code == 0
        else []
    )
    return int(found[0]["offset"]) if found and found[0] else -1


def copying(mirror: MirrorMaker) -> None:
    eventually(lambda: states(mirror) == dict.fromkeys(CONNECTORS, "RUNNING"), DEADLINE)
    eventually(lambda: offset(mirror) == RECORDS - 1, DEADLINE)


def partition(mirror: MirrorMaker) -> dict[str, Any]:
    return {"cluster": mirror.source, "partition": 0, "topic": mirror.topic}


def test_its_state_configurations_and_offsets_are_read_from_its_topics(mirror: MirrorMaker) -> None:
    copying(mirror)
    shown = of(mirror, "cluster", "show", "-o", "json")
    assert shown.code == 0, shown.err
    (worker,) = shown.json["workers"]
    assert (worker["address"], worker["url"], worker["leader"]) == (
        f"{mirror.source}->dr@127.0.0.1",
        None,
        True,
    )
    assert {each["name"] for each in shown.json["topics"]} == set(mirror.topics.values())
    assert [(f["id"], f["severity"]) for f in shown.json["findings"]] == [("CLUSTER010", "info")]
    one = of(mirror, "connectors", "show", SOURCE, "-o", "json")
    assert one.json["config"]["source.cluster.alias"] == mirror.source, one.out
    assert json.loads(of(mirror, "offsets", "backup").out.splitlines()[1])["value"] == json.dumps(
        {"offset": RECORDS - 1}, separators=(",", ":")
    )
    fenced = of(mirror, "fence", SOURCE, "--dry-run", "-o", "json")
    assert fenced.code == 0, fenced.err
    for command in (["tasks", "check"], ["transactions", "list"], ["transactions", "lag"]):
        ran = of(mirror, *command)
        assert ran.code == 0, ran.err


def test_preflight_knows_the_mode(mirror: MirrorMaker) -> None:
    copying(mirror)
    ran = of(mirror, "preflight", "-o", "json")
    found = {finding["id"] for finding in ran.json["findings"]}
    assert "CLUSTER010" in found
    assert not found & {"CLUSTER004", "CLUSTER008", "CLUSTER012", "TOPIC002", "UNSEEN001"}, ran.out


def test_what_needs_rest_is_refused_with_the_reason(mirror: MirrorMaker) -> None:
    copying(mirror)
    for command in REFUSED:
        ran = of(mirror, *command)
        assert (ran.code, "MirrorMaker 2 in dedicated mode" in ran.err) == (4, True), (
            command,
            ran.err,
        )
    assert states(mirror) == dict.fromkeys(CONNECTORS, "RUNNING")


def test_offsets_are_changed_with_the_process_stopped_and_it_resumes_from_them(
    mirror: MirrorMaker,
) -> None:
    copying(mirror)
    mirror.stop()
    eventually(lambda: of(mirror, "cluster", "show", "-o", "json").json["workers"] == [], DEADLINE)
    wanted = json.dumps({"offsets": [{"partition": partition(mirror), "offset": {"offset": 9}}]})
    ran = of(mirror, "offsets", "set", SOURCE, "-f", "-", "--yes", stdin=wanted)
    assert ran.code == 0, ran.err
    assert offset(mirror) == 9
    mirror.start()
    copying(mirror)


def test_its_rest_server_for_its_own_processes_is_not_taken_for_connects(
    mirror: MirrorMaker,
) -> None:
    copying(mirror)
    mirror.stop()
    mirror.more = {"dedicated.mode.enable.internal.rest": "true", "listeners": "http://127.0.0.1:0"}
    mirror.start()
    copying(mirror)
    shown = of(mirror, "cluster", "show", "-o", "json")
    assert [f["id"] for f in shown.json["findings"]] == ["CLUSTER010"]
    ran = of(mirror, "connectors", "stop", SOURCE)
    assert (ran.code, "MirrorMaker 2 in dedicated mode" in ran.err) == (4, True), ran.err
