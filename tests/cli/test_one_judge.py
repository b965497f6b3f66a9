"""Every changing command in every state of a connector and its group: nothing is changed on a view
that is not whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from connectctl.cli import session as cli_session
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.core.errors import TimedOut, Unreachable
from connectctl.ops.core.journal import Journal
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.cluster import group_workers
from connectctl.ops.operations.connectors import observe
from connectctl.ops.operations.connectors.steps import SetTargetState
from connectctl.ops.task_runtime.job import environment
from fakes.changingworld import PASSING
from fakes.endedtasks import without_spark
from fakes.kafkareads import connect_group
from fakes.rollingworld import FakeWorker, RollingWorld
from fakes.runner import command_at, commands
from fakes.scene import ON_CONNECTORS, ON_TASKS, Command, Scene, made, without_waits, words
from fakes.workers import FakeConnector, FakeWorkers

REST = {"rest": ["http://ingress:8083"]}


# --------------------------------------------------------------------------------------- situations


def runs(scene: Scene) -> None:
    """The connector runs, and all that is asked answers."""


def stopped(scene: Scene) -> None:
    """It is stopped, and no task is assigned."""
    _target(scene, tasks=0)
    _assign(scene, connect_group("connect", one=[("plain", -1), ("moved", -1), ("moved", 0)]))
    scene.world.workers.connectors["plain"] = _stopped(scene)


def being_stopped(scene: Scene) -> None:
    """Its target state is STOPPED and its tasks are still assigned; its status is another
    writer's.
    """
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
    scene.calls.levels |= {url: {"root": "INFO"} for url in REST["rest"]}


def another_group(scene: Scene) -> None:
    """The address in use is a worker of another group, which lists none of these connectors."""
    stopped(scene)
    levels = scene.calls.levels | {url: {"root": "INFO"} for url in REST["rest"]}
    scene.calls = FakeWorkers({"theirs": FakeConnector()}, urls=tuple(REST["rest"]), levels=levels)
    scene.told |= REST


def another_group_while_it_runs(scene: Scene) -> None:
    """The same, of a connector that runs."""
    another_group(scene)
    _target(scene, tasks=1, state="STARTED")
    _assign(scene, connect_group("connect", one=[("plain", -1), ("plain", 0)]))


def rest_dead(scene: Scene) -> None:
    """Nobody answers at the workers' addresses, and the connector runs."""
    scene.calls.errors[""] = Unreachable(
        "The worker at http://one:8083 cannot be reached", why="Connection refused"
    )


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
    _assign(
        scene,
        replace(group, members=tuple(replace(member, url="NOTUSED") for member in group.members)),
    )
    scene.calls.urls = ()
    scene.calls.errors[""] = Unreachable(
        "No address of a worker is known", why="its members serve no REST"
    )


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
    return FakeConnector(
        own="STOPPED", tasks=[], config=scene.world.workers.connectors["plain"].config
    )


# ----------------------------------------------------------------------------------------- commands

TAKE_OVER, HEAL = "run --take-over", "doctor"
IDLE = {
    ("connectors resume", "runs"),
    ("connectors stop", "stopped"),
    ("runs resume", "stopped"),
    (TAKE_OVER, "stopped"),
    ("connectors restart", "stopped"),
    *(("connectors restart", where) for where in ("being stopped", "rebalances", "one suspended")),
    *((HEAL, where) for where in ("stopped", "being stopped", "rebalances", "one suspended")),
}
"""What there is nothing to do about: it is so already, or a restart would start nothing."""
PROVEN = {
    ("fence", "REST of another"): "the assignments alone prove that no task runs",
    (
        "loggers undo",
        "REST of another",
    ): "the run names the worker, and the group's members are where it is",
    ("loggers undo", "another, it runs"): "the same",
}
"""Changes that do not rest on the address in use, and why."""
ON_EVERY_WORKER = {("loggers set", "one suspended")}
"""Commands that ask each worker, and are refused where one does not answer."""
WITHOUT_REST: dict[str, Command] = {
    "transactions abort": words("transactions", "abort", "app-0"),
    "transactions commit": words("transactions", "commit", "--topic", "h", "--partition", "0"),
}
"""Commands that ask coordinators and partition leaders alone: no view of connectors is too blind
for them.
"""
MORE = {
    "loggers set": words("loggers", "set", "root", "DEBUG"),
    TAKE_OVER: words("run", "{directory}/job.json", "--take-over"),
    HEAL: words("doctor", "--heal", "plain"),
}


def _last_run(scene: Scene) -> str:
    return str(json.loads(scene.run("runs", "list", "-o", "json").stdout)["runs"][0]["id"])


def _offsets_set(scene: Scene) -> None:
    """The connector is stopped, its offsets are set, and it runs again."""
    group, running = scene.world.kafka.groups["connect"], scene.world.workers.connectors["plain"]
    stopped(scene)
    assert ON_TASKS["offsets set"](scene).exit_code == 0
    _target(scene, tasks=1, state="STARTED")
    _assign(scene, group)
    scene.world.workers.connectors["plain"] = running


def _interrupted(scene: Scene) -> None:
    """A run that was killed before its only step."""
    step = SetTargetState("plain", "stop", now="RUNNING")
    Journal(scene.directory / "journal").begin_plan(
        Plan("connectors stop", scene.world.kafka.cluster_id(), (step,), group_id="connect")
    )


AGAIN: dict[str, tuple[Callable[[Scene], object], tuple[str, ...]]] = {
    "loggers undo": (words("loggers", "set", "root", "DEBUG"), ("loggers", "undo")),
    "offsets undo": (_offsets_set, ("offsets", "undo")),
    "runs undo": (words("connectors", "patch", "plain", "batch.size=5"), ("runs", "undo")),
    "runs resume": (_interrupted, ("runs", "resume")),
}
"""Commands that change again what a run has changed, or was about to: what is done before, and the
words.
"""
SAVED = ("connectors", "patch", "plain", "batch.size=5", "--dry-run", "-o", "json")


def _of_the_last_run(words: tuple[str, ...]) -> Command:
    return lambda scene: scene.run(*words, _last_run(scene), "--yes")


HARMFUL = {*ON_TASKS, "offsets undo"}
COMMANDS = {
    **ON_CONNECTORS,
    **ON_TASKS,
    **WITHOUT_REST,
    **MORE,
    **{name: _of_the_last_run(words) for name, (_, words) in AGAIN.items()},
    "runs apply": words("runs", "apply", "{directory}/saved.json"),
}
ELSEWHERE = {
    "run job": "with --take-over it is in the table; without, it refuses a connector that the "
    "workers have",
    "run status": "--remove-members removes members of consumer groups of runs, which no worker "
    "has",
    "upgrade apply": "changes workers: the table of rolls",
    "upgrade resume": "changes workers: the table of rolls",
    "upgrade abort": "changes workers: the table of rolls",
    "runs prune": "changes the journal alone, on this machine",
    "context remove": "changes the file of contexts alone, on this machine",
}
"""Commands that ask before a change and have no row, and why."""


def prepare(scene: Scene, command: str) -> None:
    """Do what ``command`` changes again, while the connector runs and all that is asked answers."""
    if command in AGAIN:
        AGAIN[command][0](scene)
    elif command == HEAL:
        failed = FakeConnector(tasks=["FAILED"], trace=PASSING)
        scene.world.workers.connectors["plain"] = replace(
            failed, config=scene.world.workers.connectors["plain"].config
        )
    elif command == "runs apply":
        (scene.directory / "saved.json").write_text(scene.run(*SAVED).stdout)


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
    without_spark(monkeypatch)
    monkeypatch.setattr(environment, "LEAST_PATIENCE", 1.0)
    return made(tmp_path)


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_changes_anything_on_a_view_that_is_not_whole(
    scene: Scene, command: str, situation: str
) -> None:
    prepare(scene, command)
    SITUATIONS[situation](scene)
    found = cell(scene, command)
    said = " ".join(found.said.split())[-150:]
    print(f"\n{command:20} {situation:18} {found!s:10} {said}", end="")
    if (command, situation) in PROVEN or command in WITHOUT_REST:
        assert (found.code, found.changed) == (0, True), found.said
        return
    blind = situation in BLIND or (command, situation) in ON_EVERY_WORKER
    takes_running = command == TAKE_OVER and situation != "runs"
    if blind or ((command in HARMFUL or takes_running) and situation in MAY_RUN):
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


def test_a_run_is_not_undone_at_an_address_that_is_another_groups_by_now(scene: Scene) -> None:
    prepare(scene, "loggers undo")
    another_group(scene)
    group = scene.world.kafka.groups["connect"]
    _assign(
        scene,
        replace(
            group, members=tuple(replace(each, url="http://two:8083") for each in group.members)
        ),
    )
    found = cell(scene, "loggers undo")
    assert (found.code, found.changed) == (4, False), found.said
    assert "http://one:8083" in found.said


def test_every_command_that_asks_before_a_change_has_a_row_or_a_reason() -> None:
    paths = [
        path for path in commands() if path and not getattr(command_at(path), "commands", None)
    ]
    asking = {
        " ".join(path)
        for path in paths
        if any("--yes" in each.opts for each in command_at(path).params)
    }
    assert asking == (COMMANDS.keys() - {TAKE_OVER}) | ELSEWHERE.keys()


# -------------------------------------------------------------------------------------------- rolls


def _hidden(world: RollingWorld, **member: Any) -> None:
    """Members of the group are otherwise in its description."""
    real, state = (
        world.group,
        "PreparingRebalance" if member.get("assignment", "") is None else "Stable",
    )

    def group(group_id: str) -> ConnectGroup:
        found = real(group_id)
        return replace(
            found, state=state, members=tuple(replace(each, **member) for each in found.members)
        )

    vars(world)["group"] = group


def _roll_of_another(world: RollingWorld) -> None:
    world.workers["other"], world.strangers = FakeWorker(mode=None), frozenset({"other"})
    world.told["rest"] = ["http://other:8083"]


def _stopped_roll_of_another(world: RollingWorld) -> None:
    world.tasks.clear()
    _roll_of_another(world)


def _mute(world: RollingWorld, *names: str) -> None:
    for name in names:
        world.workers[name].mute = True


ROLLS: dict[str, Callable[[RollingWorld], None]] = {
    "runs": lambda world: None,
    "stopped": lambda world: world.tasks.clear(),
    "being stopped": lambda world: setattr(world, "stopping", ("orders",)),
    "rebalances": lambda world: _hidden(world, url="", assignment=None),
    "REST of another": _stopped_roll_of_another,
    "another, it runs": _roll_of_another,
    "REST dead": lambda world: _mute(world, "a", "b"),
    "one suspended": lambda world: _mute(world, "a"),
    "without REST": lambda world: _hidden(world, url="", without_rest=True),
}
GATES = ("--yes", "--gate-checks", "2", "--gate-timeout", "30")
ROLL = ("upgrade", "apply", "--to", "preparing", *GATES)


def _half_rolled(world: RollingWorld) -> None:
    """The first worker was changed and did not come back; it was started by hand since."""
    world.workers["a"].stays_away = True
    assert world.run(*ROLL).exit_code == 7
    world.workers["a"].stays_away, world.workers["a"].back_at = False, world.clock
    world.sleep(1.0)


@pytest.mark.parametrize("situation", ROLLS)
@pytest.mark.parametrize("command", ["upgrade resume", "upgrade abort"])
def test_no_roll_goes_on_or_back_on_a_view_that_is_not_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, situation: str
) -> None:
    for module, name in (
        (group_workers, "AGREEING"),
        (observe, "AGREEING"),
        (cli_session, "REBALANCE_PATIENCE"),
    ):
        monkeypatch.setattr(module, name, 0.0)
    world = RollingWorld.of(tmp_path, "disabled", "disabled")
    _half_rolled(world)
    ROLLS[situation](world)
    before = [(worker.file, worker.member) for worker in world.workers.values()]
    result = world.run(
        *command.split(), "--yes", *(GATES[1:] if command == "upgrade resume" else ())
    )
    after = [(worker.file, worker.member) for worker in world.workers.values()]
    found = Cell(result.exit_code, after != before, result.output)
    print(
        f"\n{command:20} {situation:18} {found!s:10} {' '.join(found.said.split())[-150:]}", end=""
    )
    assert world.violations == []
    if situation in ("runs", "stopped", "being stopped", "REST of another", "another, it runs"):
        # The gates ask workers at the addresses that the group gives, and not at the one in use.
        assert (found.code, found.changed) == (0, True), found.said
    elif situation == "one suspended":
        assert (found.code, found.changed) == (7, command == "upgrade abort"), found.said
    else:
        assert not found.changed, found.said
        assert found.code in (4, 5, 6, 7), found.said


@pytest.mark.parametrize("situation", ROLLS)
def test_no_roll_begins_on_a_view_that_is_not_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, situation: str
) -> None:
    for module, name in (
        (group_workers, "AGREEING"),
        (observe, "AGREEING"),
        (cli_session, "REBALANCE_PATIENCE"),
    ):
        monkeypatch.setattr(module, name, 0.0)
    world = RollingWorld.of(tmp_path, "disabled", "disabled")
    ROLLS[situation](world)
    result = world.run(*ROLL)
    files = [worker.file for worker in world.workers.values()]
    found = Cell(result.exit_code, bool(world.history) or set(files) != {"disabled"}, result.output)
    print(
        f"\n{'upgrade apply':20} {situation:18} {found!s:10} {' '.join(found.said.split())[-150:]}",
        end="",
    )
    if situation in ("runs", "stopped", "being stopped"):
        assert (found.code, found.changed) == (0, True), found.said
    elif situation == "one suspended":
        # A worker that does not answer is restarted first, and the roll does not get past it.
        assert (found.code, files) == (7, ["preparing", "disabled"]), found.said
    else:
        assert not found.changed, found.said
        assert found.code in (4, 5, 6), found.said
