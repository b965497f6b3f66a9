"""Every changing command in every state of a connector and its group: nothing is changed on a view that is not whole."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.core.errors import TimedOut, Unreachable
from fakes.kafkareads import connect_group
from fakes.scene import ON_CONNECTORS, ON_TASKS, Command, Scene, made, without_waits, words
from fakes.workers import FakeConnector, FakeWorkers

REST = {"rest": ["http://ingress:8083"]}


# ------------------------------------------------------------------------------------------------------------ situations


def runs(scene: Scene) -> None:
    """The connector runs, and all that is asked answers."""


def stopped(scene: Scene) -> None:
    """It is stopped, and no task is assigned."""
    _target(scene, tasks=0)
    _assign(scene, connect_group("connect", one=[("plain", -1), ("moved", -1), ("moved", 0)]))
    scene.world.workers.connectors["plain"] = _stopped(scene)


def being_stopped(scene: Scene) -> None:
    """Its target state is STOPPED and its tasks are still assigned; its status is another writer's."""
    _target(scene, tasks=0)
    scene.world.workers.connectors["plain"] = _stopped(scene)


def rebalances(scene: Scene) -> None:
    """The coordinator gives members without metadata and assignments."""
    stopped(scene)
    group = scene.world.kafka.groups["connect"]
    members = tuple(replace(member, url="", assignment=None) for member in group.members)
    _assign(scene, replace(group, state="PreparingRebalance", members=members))
    scene.told |= REST | {"timeout": 0.3}
    scene.calls.urls = tuple(REST["rest"])
    scene.calls.levels = {scene.calls.urls[0]: {"root": "INFO"}}


def another_group(scene: Scene) -> None:
    """The address in use is a worker of another group, which lists none of these connectors."""
    stopped(scene)
    scene.calls = FakeWorkers({"theirs": FakeConnector()}, urls=tuple(REST["rest"]))
    scene.calls.levels = {scene.calls.urls[0]: {"root": "INFO"}}
    scene.told |= REST


def another_group_while_it_runs(scene: Scene) -> None:
    """The same, of a connector that runs."""
    another_group(scene)
    _target(scene, tasks=1, state="STARTED")
    _assign(scene, connect_group("connect", one=[("plain", -1), ("plain", 0)]))


def rest_dead(scene: Scene) -> None:
    """Nobody answers at the workers' addresses, and the connector runs."""
    scene.calls.errors[""] = Unreachable("The worker at http://one:8083 cannot be reached", why="Connection refused")


def suspended(scene: Scene) -> None:
    """The worker that has the task is in the group and does not answer; another one answers."""
    _target(scene, tasks=0)
    _assign(scene, connect_group("connect", one=[("plain", -1)], two=[("plain", 0)]))
    scene.world.workers.connectors["plain"] = _stopped(scene)
    scene.calls.urls = ("http://one:8083", "http://two:8083")
    scene.calls.errors["http://two:8083"] = TimedOut("The worker at http://two:8083 did not answer")


def without_rest(scene: Scene) -> None:
    """The members serve no REST, and the connector runs."""
    group = scene.world.kafka.groups["connect"]
    _assign(scene, replace(group, members=tuple(replace(member, url="NOTUSED") for member in group.members)))
    scene.calls.urls = ()
    scene.calls.errors[""] = Unreachable("No address of a worker is known", why="its members serve no REST")


SITUATIONS = {
    "runs": runs,
    "stopped": stopped,
    "being stopped": being_stopped,
    "rebalances": rebalances,
    "REST of another": another_group,
    "another, it runs": another_group_while_it_runs,
    "REST dead": rest_dead,
    "one suspended": suspended,
    "without REST": without_rest,
}
BLIND = ("REST of another", "another, it runs", "REST dead", "without REST")
"""Situations in which no worker of the group tells anything."""
MAY_RUN = ("runs", "being stopped", "rebalances", "one suspended", *BLIND)
"""Situations in which a task may run, or in which it cannot be seen that none does."""


def _target(scene: Scene, tasks: int, state: str = "STOPPED") -> None:
    scene.world.kafka.append("cfg", b"target-state-plain", json.dumps({"state.v2": state}).encode())
    scene.world.kafka.append("cfg", b"commit-plain", json.dumps({"tasks": tasks}).encode())


def _assign(scene: Scene, group: ConnectGroup) -> None:
    scene.world.kafka.groups["connect"] = group


def _stopped(scene: Scene) -> FakeConnector:
    return FakeConnector(own="STOPPED", tasks=[], config=scene.world.workers.connectors["plain"].config)


# -------------------------------------------------------------------------------------------------------------- commands

IDLE = {
    ("connectors resume", "runs"),
    ("connectors stop", "stopped"),
    ("connectors restart", "stopped"),
    *(("connectors restart", where) for where in ("being stopped", "rebalances", "one suspended")),
}
"""What there is nothing to do about: it is so already, or a restart would start nothing."""
UNPUBLISHED = {("connectors cure", "runs")}
"""What waits for task configurations that the workers in memory do not write again: changed, and timed out."""
PROVEN = {("fence", "REST of another")}
"""What rests on assignments alone, which prove that no task runs."""
ON_EVERY_WORKER = {("loggers set", "one suspended")}
"""Commands that ask each worker, and are refused where one does not answer."""
WITHOUT_REST: dict[str, Command] = {
    "transactions abort": words("transactions", "abort", "app-0"),
    "transactions commit": words("transactions", "commit", "--topic", "h", "--partition", "0"),
}
"""Commands that ask coordinators and partition leaders alone: no view of connectors is too blind for them."""
COMMANDS = ON_CONNECTORS | ON_TASKS | WITHOUT_REST | {"loggers set": words("loggers", "set", "root", "DEBUG")}


@dataclass(frozen=True)
class Cell:
    """What a command did: its exit code, whether it changed anything, and what it said."""

    code: int
    changed: bool
    said: str

    def __str__(self) -> str:
        return "changed" if self.changed else f"exit {self.code}" if self.code else "nothing"


def cell(scene: Scene, command: str) -> Cell:
    before = scene.state()
    result = COMMANDS[command](scene)
    assert result.exit_code in (0, 1, 2, 4, 5, 6), result.output
    return Cell(result.exit_code, scene.state() != before, result.output)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    without_waits(tmp_path, monkeypatch)
    return made(tmp_path)


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_changes_anything_on_a_view_that_is_not_whole(scene: Scene, command: str, situation: str) -> None:
    SITUATIONS[situation](scene)
    found = cell(scene, command)
    said = " ".join(found.said.split())[-150:]
    print(f"\n{command:20} {situation:18} {found!s:10} {said}", end="")
    if (command, situation) in PROVEN or command in WITHOUT_REST:
        assert (found.code, found.changed) == (0, True), found.said
        return
    blind = situation in BLIND or (command, situation) in ON_EVERY_WORKER
    if blind or (command in ON_TASKS and situation in MAY_RUN):
        assert not found.changed, found.said
        assert found.code in (4, 5, 6), found.said
    elif (command, situation) in IDLE:
        assert not found.changed, found.said
    else:
        code = 6 if (command, situation) in UNPUBLISHED else 0
        assert (found.code, found.changed) == (code, True), found.said
    if situation.startswith(("REST of another", "another")):
        assert found.code == 4, found.said
        assert "http://ingress:8083" in found.said
        assert "http://one:8083" in found.said
        assert "--rest-is-group" in found.said
