"""Every changing command in every state of a connector and its group: nothing is changed on a view that is not whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest
import typer
from connectctl.cli import session as cli_session
from connectctl.cli.commands import cluster as cluster_command
from connectctl.cli.commands.connectors import cluster as connectors_cluster
from connectctl.cli.commands.connectors import cure as connectors_cure
from connectctl.cli.commands.offsets import execution
from connectctl.cli.main import app
from connectctl.ops.connect import target_state_wait
from connectctl.ops.connect.connect_protocol import ConnectGroup
from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.core.errors import TimedOut, Unreachable
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.operations.cluster import group_workers
from connectctl.ops.operations.connectors import context as steps_context
from connectctl.ops.operations.connectors import observe
from connectctl.ops.operations.fencing import observe as fencing_observe
from connectctl.ops.task_runtime.job import environment
from connectctl.ops.task_runtime.job.environment import JobEnvironment
from connectctl.ops.task_runtime.job.generation import Leader, read_config_topic
from connectctl.ops.task_runtime.job.planned_run import PlannedRun
from connectctl.ops.task_runtime.job.steps import RecordedParts
from connectctl.ops.task_runtime.job.worker_takeover import WorkerTakeOver
from fakes.changingworld import COMMITTED, EDITOR, HANGING, HUNG, Clock, timed_by
from fakes.coordinators import FakeCoordinators
from fakes.kafkareads import connect_group
from fakes.offsetworld import TOPICS, World
from fakes.rollingworld import FakeWorker, RollingWorld
from fakes.session import FakeSession
from fakes.transactionlog import FakeTransactionLog, log_of
from fakes.workers import FakeConnector, FakeWorkers
from typer.testing import CliRunner, Result

ID = task_id("connect", "plain", 0)
REST = {"rest": ["http://ingress:8083"]}


@dataclass
class Scene:
    """A cluster with the connector ``plain``, and the settings with which it is looked at."""

    world: World
    calls: FakeWorkers
    told: dict[str, Any]
    directory: Path
    coordinators: FakeCoordinators
    log: FakeTransactionLog

    def run(self, *args: str, stdin: str | None = None) -> Result:
        """Run connectctl on a clock that only sleeping moves."""
        session = FakeSession(
            told=TOPICS | self.told, reads=self.world.kafka, calls=self.calls, committed=self.world.groups
        )
        session.__dict__ |= {"transactions": self.coordinators, "transaction_log": self.log}
        return CliRunner().invoke(app, list(args), obj=session, input=stdin)

    def state(self) -> Any:
        """All that a command may change."""
        live = dict(self.world.kafka.live())
        return (
            live,
            list(self.calls.sent),
            list(self.world.workers.sent),
            [*self.coordinators.asked, *self.coordinators.marked],
        )


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

Command = Callable[[Scene], Result]


def _words(*words: str, stdin: str | None = None) -> Command:
    def run(scene: Scene) -> Result:
        return scene.run(*(word.format(directory=scene.directory) for word in words), "--yes", stdin=stdin)

    return run


OFFSETS = json.dumps({"offsets": [{"partition": {"table": "a"}, "offset": {"lsn": 99}}]})
ON_CONNECTORS: dict[str, Command] = {
    "connectors stop": _words("connectors", "stop", "plain"),
    "connectors pause": _words("connectors", "pause", "plain"),
    "connectors resume": _words("connectors", "resume", "plain"),
    "connectors restart": _words("connectors", "restart", "plain"),
    "connectors create": _words("connectors", "create", "-f", "{directory}/new.json"),
    "connectors apply": _words("connectors", "apply", "-f", "{directory}/plain.json"),
    "connectors edit": _words("connectors", "edit", "plain"),
    "connectors patch": _words("connectors", "patch", "plain", "batch.size=5"),
    "connectors delete": _words("connectors", "delete", "plain"),
    "connectors rollback": _words("connectors", "rollback", "plain", "--to", "2"),
    "connectors cure": _words("connectors", "cure", "plain"),
    "connectors topics": _words("connectors", "topics", "plain", "--reset"),
}
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
ON_TASKS: dict[str, Command] = {
    "offsets set": _words("offsets", "set", "plain", "-f", "-", stdin=OFFSETS),
    "offsets reset": _words("offsets", "reset", "plain"),
    "offsets merge": _words("offsets", "merge", "plain", "--into", "dedicated", "--topic", "new-offsets"),
    "offsets copy": _words("offsets", "copy", "moved", "plain"),
    "offsets restore": _words("offsets", "restore", "plain", "-f", "{directory}/backup.jsonl"),
    "fence": _words("fence", "plain"),
}
"""Commands that would harm a task that runs."""
ON_EVERY_WORKER = {("loggers set", "one suspended")}
"""Commands that ask each worker, and are refused where one does not answer."""
WITHOUT_REST: dict[str, Command] = {
    "transactions abort": _words("transactions", "abort", "app-0"),
    "transactions commit": _words("transactions", "commit", "--topic", "h", "--partition", "0"),
}
"""Commands that ask coordinators and partition leaders alone: no view of connectors is too blind for them."""
MORE = {
    "loggers set": _words("loggers", "set", "root", "DEBUG"),
    TAKE_OVER: _words("run", "{directory}/job.json", "--take-over"),
}
COMMANDS = ON_CONNECTORS | ON_TASKS | WITHOUT_REST | MORE


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv("CONNECTCTL_JOURNAL", str(tmp_path / "journal"))
    monkeypatch.setenv("EDITOR", EDITOR)
    for module, name in (
        (cli_session, "REBALANCE_PATIENCE"),
        (cluster_command, "REBALANCE"),
        (observe, "AGREEING"),
        (group_workers, "AGREEING"),
        (fencing_observe, "LISTING"),
        (steps_context, "AGREEING"),
        (target_state_wait, "STEADY"),
    ):
        monkeypatch.setattr(module, name, 0.0)
    monkeypatch.setattr(fencing_observe.FencingSources, "patience", 0.0)
    monkeypatch.setattr(fencing_observe.FencingSources.__init__, "__defaults__", (None, 0.0))
    monkeypatch.setattr(PlannedRun, "perform", taken_over)
    monkeypatch.setattr(Leader, "_read_state", lambda self, name: read_config_topic(self.kafka, self.topic, name, 1.0))
    monkeypatch.setattr(environment, "LEAST_PATIENCE", 1.0)
    clock = Clock()
    for where in (execution, connectors_cluster, connectors_cure):
        monkeypatch.setattr(where, "context_of", partial(timed_by, clock, where.context_of))
    return made(tmp_path)


def taken_over(self: PlannedRun, parts: RecordedParts, progress: object) -> NoReturn:
    """The run of a job whose tasks end at once: the connector is stopped on its workers, and handed back."""
    settings: Any = {"spark": None, "timeout": 1.0, "parts": parts}
    with WorkerTakeOver(JobEnvironment(self.scene, self.job, **settings)).held():
        raise typer.Exit


def made(directory: Path) -> Scene:
    """A scene in which ``plain`` runs, with files for the commands."""
    world = World(directory / "journal")
    world.workers.levels = {world.workers.urls[0]: {"root": "INFO"}}
    for name in ("plain", "moved"):
        world.kafka.append("cfg", f"commit-{name}".encode(), b'{"tasks":1}')
    _older_version(world)
    (directory / "new.json").write_text(json.dumps({"name": "new", "connector.class": "x.y.Source"}))
    job = {"connector.class": "FileStreamSource", "file": "/in", "topic": "t", "name": "plain"}
    (directory / "job.json").write_text(json.dumps({"name": "plain", "config": job, "spark": {"master": "local[1]"}}))
    (directory / "plain.json").write_text(json.dumps({"name": "plain", "connector.class": "x.y.Source", "x": "1"}))
    world.workers.active = {"plain": ["t"]}
    open_ = Transaction("app-0", "Ongoing", 8, 3, 60_000, 1, (TopicPartition("t", 0),))
    known = {ID: Transaction(ID, "Empty", 7, 0, 60_000), open_.id: open_}
    places: dict[TopicPartition, Any] = {TopicPartition("t", 0): (), HANGING: (HUNG,)}
    log = FakeTransactionLog()
    log.written += log_of(*COMMITTED).written
    found = Scene(world, world.workers, {}, directory, FakeCoordinators(known, partitions=places), log)
    backup = found.run("offsets", "backup", "plain", "--out", str(directory / "backup.jsonl"))
    assert backup.exit_code == 0, backup.output
    world.put("off", '["plain",{"table":"a"}]', '{"lsn":2}')
    return found


def _older_version(world: World) -> None:
    config = {"properties": {"connector.class": "x.y.Source", "name": "plain", "batch.size": "9"}}
    now = {"properties": dict(world.workers.connectors["plain"].config)}
    for value in (config, now):
        world.kafka.append("cfg", b"connector-plain", json.dumps(value).encode())


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
