"""Every changing command in every state of a connector and its group: nothing is changed on a view that is not whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
import typer
from connectctl.cli import session as cli_session
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.core.errors import TimedOut, Unreachable
from connectctl.ops.operations.cluster import group_workers
from connectctl.ops.operations.connectors import observe
from connectctl.ops.task_runtime.job import environment
from connectctl.ops.task_runtime.job.environment import JobEnvironment
from connectctl.ops.task_runtime.job.generation import Leader, read_config_topic
from connectctl.ops.task_runtime.job.planned_run import PlannedRun
from connectctl.ops.task_runtime.job.steps import RecordedParts
from connectctl.ops.task_runtime.job.worker_takeover import WorkerTakeOver
from fakes.kafkareads import connect_group
from fakes.rollingworld import FakeWorker, RollingWorld
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

TAKE_OVER = "run --take-over"
IDLE = {
    ("connectors resume", "runs"),
    ("connectors stop", "stopped"),
    (TAKE_OVER, "stopped"),
    ("connectors restart", "stopped"),
    *(("connectors restart", where) for where in ("being stopped", "rebalances", "one suspended")),
}
"""What there is nothing to do about: it is so already, or a restart would start nothing."""
PROVEN = {("fence", "REST of another")}
"""What rests on assignments alone, which prove that no task runs."""
ON_EVERY_WORKER = {("loggers set", "one suspended")}
"""Commands that ask each worker, and are refused where one does not answer."""
WITHOUT_REST: dict[str, Command] = {
    "transactions abort": words("transactions", "abort", "app-0"),
    "transactions commit": words("transactions", "commit", "--topic", "h", "--partition", "0"),
}
"""Commands that ask coordinators and partition leaders alone: no view of connectors is too blind for them."""
MORE = {
    "loggers set": words("loggers", "set", "root", "DEBUG"),
    TAKE_OVER: words("run", "{directory}/job.json", "--take-over"),
}
COMMANDS = ON_CONNECTORS | ON_TASKS | WITHOUT_REST | MORE


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
    monkeypatch.setattr(PlannedRun, "perform", taken_over)
    monkeypatch.setattr(Leader, "_read_state", lambda self, name: read_config_topic(self.kafka, self.topic, name, 1.0))
    monkeypatch.setattr(environment, "LEAST_PATIENCE", 1.0)
    return made(tmp_path)


def taken_over(self: PlannedRun, parts: RecordedParts, progress: object) -> NoReturn:
    """The run of a job whose tasks end at once: the connector is stopped on its workers, and handed back."""
    settings: Any = {"spark": None, "timeout": 1.0, "parts": parts}
    with WorkerTakeOver(JobEnvironment(self.scene, self.job, **settings)).held():
        raise typer.Exit


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
    takes_running = command == TAKE_OVER and situation != "runs"
    if blind or ((command in ON_TASKS or takes_running) and situation in MAY_RUN):
        assert not found.changed, found.said
        assert found.code in (4, 5, 6), found.said
    elif (command, situation) in IDLE:
        assert not found.changed, found.said
    else:
        assert (found.code, found.changed) == (0, True), found.said
    if situation.startswith(("REST of another", "another")):
        assert found.code == 4, found.said
        assert "http://ingress:8083" in found.said
        assert "http://one:8083" in found.said
        assert "--rest-is-group" in found.said


# ------------------------------------------------------------------------------------------------------------------ rolls


def _hidden(world: RollingWorld, **member: Any) -> None:
    """Members of the group are otherwise in its description."""
    real, state = world.group, "PreparingRebalance" if member.get("assignment", "") is None else "Stable"

    def group(group_id: str) -> ConnectGroup:
        found = real(group_id)
        return replace(found, state=state, members=tuple(replace(each, **member) for each in found.members))

    vars(world)["group"] = group


def _roll_of_another(world: RollingWorld) -> None:
    world.workers["other"], world.strangers = FakeWorker(mode=None), frozenset({"other"})
    world.told["rest"] = ["http://other:8083"]


def _mute(world: RollingWorld, *names: str) -> None:
    for name in names:
        world.workers[name].mute = True


ROLLS: dict[str, Callable[[RollingWorld], None]] = {
    "runs": lambda world: None,
    "stopped": lambda world: world.tasks.clear(),
    "rebalances": lambda world: _hidden(world, url="", assignment=None),
    "REST of another": _roll_of_another,
    "REST dead": lambda world: _mute(world, "a", "b"),
    "one suspended": lambda world: _mute(world, "a"),
    "without REST": lambda world: _hidden(world, url="", without_rest=True),
}
ROLL = ("upgrade", "apply", "--to", "preparing", "--yes", "--gate-looks", "2", "--gate-timeout", "30")


@pytest.mark.parametrize("situation", ROLLS)
def test_no_roll_begins_on_a_view_that_is_not_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, situation: str
) -> None:
    for module, name in ((group_workers, "AGREEING"), (observe, "AGREEING"), (cli_session, "REBALANCE_PATIENCE")):
        monkeypatch.setattr(module, name, 0.0)
    world = RollingWorld.of(tmp_path, "disabled", "disabled")
    ROLLS[situation](world)
    result = world.run(*ROLL)
    files = [worker.file for worker in world.workers.values()]
    found = Cell(result.exit_code, bool(world.history) or set(files) != {"disabled"}, result.output)
    print(f"\n{'upgrade apply':20} {situation:18} {found!s:10} {' '.join(found.said.split())[-150:]}", end="")
    if situation in ("runs", "stopped"):
        assert (found.code, found.changed) == (0, True), found.said
    elif situation == "one suspended":
        # A worker that does not answer is restarted first, and the roll does not get past it.
        assert (found.code, files) == (7, ["preparing", "disabled"]), found.said
    else:
        assert not found.changed, found.said
        assert found.code in (4, 5, 6), found.said
