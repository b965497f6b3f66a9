"""Workers without a REST API (MirrorMaker 2 in dedicated mode): read from topics, and nothing is
asked of a REST server.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from connectctl.ops.core.errors import ConnectctlError
from fakes.kafkareads import connect_group, records
from fakes.offsetworld import World
from fakes.runner import invoke
from fakes.session import FakeSession

MIRROR = "MirrorSourceConnector"
GROUP = "live-mm2"
TOPICS = {role: f"mm2-{role}.live.internal" for role in ("configs", "offsets", "status")}
STATUS = {"state": "RUNNING", "trace": None, "worker_id": "host/live->dr/1e0d", "generation": 1}
OFFSETS = json.dumps({"offsets": [{"partition": {"cluster": "live"}, "offset": {"offset": 1}}]})
SHOWN = [
    ["cluster", "show"],
    ["connectors", "list"],
    ["connectors", "show", MIRROR],
    ["offsets", "show"],
    ["tasks", "check"],
]
REFUSED = [
    ["connectors", "stop", MIRROR],
    ["connectors", "pause", MIRROR],
    ["connectors", "restart", MIRROR],
    ["connectors", "delete", MIRROR, "--yes"],
    ["connectors", "create", "-f", "-", "--yes"],
    ["connectors", "topics", MIRROR],
    ["plugins", "list"],
    ["loggers", "get"],
    ["loggers", "set", "root", "DEBUG", "--yes"],
    ["upgrade", "status"],
    ["offsets", "set", MIRROR, "-f", "-", "--yes"],
    ["offsets", "set", MIRROR, "-f", "-", "--yes", "--stop"],
    ["offsets", "set", MIRROR, "-f", "-", "--yes", "--via", "rest"],
    ["offsets", "reset", MIRROR, "--yes", "--confirm", MIRROR],
]


class NeverAsked:
    """Keeps ``ConnectCalls``, and fails where it is asked."""

    urls: tuple[str, ...] = ()

    def get(self, *args: Any, **given: Any) -> Any:
        raise AssertionError(args)

    send = get


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.kafka.records.clear()
    made.kafka.groups.clear()
    group = connect_group(GROUP, one=[(MIRROR, -1), (MIRROR, 0)])
    members = tuple(
        replace(m, url="", client_id="live->dr", host="/10.0.0.1", without_rest=True)
        for m in group.members
    )
    made.kafka.groups[GROUP] = replace(group, members=members)
    made.kafka.partitions |= {TOPICS["offsets"]: 3}
    made.kafka.records[TOPICS["configs"]] = records(
        (
            f"connector-{MIRROR}",
            {"properties": {"connector.class": f"x.{MIRROR}", "name": MIRROR, "tasks.max": "1"}},
        ),
        (f"task-{MIRROR}-0", {"properties": {"task.class": "x"}}),
        (f"commit-{MIRROR}", {"tasks": 1}),
    )
    made.kafka.records[TOPICS["status"]] = records(
        (f"status-connector-{MIRROR}", STATUS), (f"status-task-{MIRROR}-0", STATUS)
    )
    made.kafka.records[TOPICS["offsets"]] = []
    made.put(TOPICS["offsets"], f'["{MIRROR}",{{"cluster":"live"}}]', '{"offset":7}')
    return made


def run(world: World, *args: str, stdin: str | None = None) -> Any:
    never: Any = NeverAsked()
    session = FakeSession(told={"group_id": GROUP}, reads=world.kafka, calls=never)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONNECTCTL_JOURNAL", str(world.journal))
        return invoke(list(args), obj=session, input=stdin)


@pytest.mark.parametrize("command", SHOWN, ids=" ".join)
def test_it_is_read_from_its_topics(world: World, command: list[str]) -> None:
    ran = run(world, *command)
    assert ran.exit_code == 0, ran.stderr
    assert MIRROR in ran.stdout


def test_its_connector_runs_on_the_process_of_its_client_id(world: World) -> None:
    ran = run(world, "cluster", "show", "-o", "json")
    found = json.loads(ran.stdout)
    assert [(c["name"], c["state"]) for c in found["connectors"]] == [(MIRROR, "RUNNING")]
    assert [w["address"] for w in found["workers"]] == ["live->dr@10.0.0.1"]
    assert [(f["id"], f["severity"]) for f in found["findings"]] == [("CLUSTER010", "info")]
    assert run(world, "cluster", "show", "--exit-code").exit_code == 0


@pytest.mark.parametrize("command", REFUSED, ids=" ".join)
def test_what_needs_rest_or_a_stopped_connector_is_refused(
    world: World, command: list[str]
) -> None:
    before = world.state()
    given = (
        json.dumps({"name": "x", "config": {"connector.class": "x.y.Source"}})
        if "create" in command
        else OFFSETS
    )
    ran = run(world, *command, stdin=given)
    assert (ran.exit_code, "MirrorMaker 2 in dedicated mode" in str(ran.stderr)) == (4, True), (
        ran.stderr
    )
    assert world.state() == before


def test_its_offsets_may_be_changed_once_its_process_is_stopped(world: World) -> None:
    world.kafka.groups[GROUP] = connect_group(GROUP, "Empty")
    ran = run(world, "offsets", "set", MIRROR, "-f", "-", "--yes", stdin=OFFSETS)
    assert ran.exit_code == 0, ran.stderr
    assert json.loads(world.kafka.records[TOPICS["offsets"]][-1].value or b"") == {"offset": 1}


def test_a_rebalance_hides_addresses_and_is_not_taken_for_workers_without_rest(
    world: World,
) -> None:
    group = world.kafka.groups[GROUP]
    hidden = tuple(replace(m, without_rest=False, assignment=None) for m in group.members)
    world.kafka.groups[GROUP] = replace(group, state="PreparingRebalance", members=hidden)
    assert not world.kafka.groups[GROUP].settled
    session = FakeSession(told={"group_id": GROUP, "timeout": 1}, reads=world.kafka)
    assert session.group(patience=0.0).without_rest is False
    assert session.connect_to(session.group(patience=0.0)) is session.calls


def test_some_workers_without_rest_leave_the_others_to_be_asked() -> None:
    group = connect_group(one=[], two=[])
    mixed = replace(
        group, members=(replace(group.members[0], url="", without_rest=True), group.members[1])
    )
    session = FakeSession()
    assert session.connect_to(mixed) is session.calls
    with pytest.raises(ConnectctlError, match="no REST API"):
        session.connect_to(replace(mixed, members=mixed.members[:1])).get("/")
