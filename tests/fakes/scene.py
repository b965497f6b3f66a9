"""A Connect cluster in memory, with all that commands look at or change, on a clock that only
sleeping moves.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from connectctl.cli import flow
from connectctl.cli import session as cli_session
from connectctl.cli.commands import cluster as cluster_command
from connectctl.cli.main import app
from connectctl.ops.connect import target_state_wait
from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.operations.cluster import group_workers
from connectctl.ops.operations.connectors import context as steps_context
from connectctl.ops.operations.connectors import observe
from connectctl.ops.operations.fencing import observe as fencing_observe
from connectctl.ops.operations.offsets import sources
from fakes.changingworld import COMMITTED, EDITOR, HANGING, HUNG, Clock, timed_by
from fakes.coordinators import FakeCoordinators
from fakes.offsetworld import TOPICS, World
from fakes.session import FakeSession
from fakes.transactionlog import FakeTransactionLog, log_of
from fakes.workers import FakeWorkers
from typer.testing import CliRunner, Result

ID = task_id("connect", "plain", 0)


@dataclass
class Scene:
    """A cluster with the connector ``plain``, and the settings with which it is looked at."""

    world: World
    calls: FakeWorkers
    told: dict[str, Any]
    directory: Path
    coordinators: FakeCoordinators
    log: FakeTransactionLog
    session: type[FakeSession] = FakeSession

    def run(self, *args: str, stdin: str | None = None) -> Result:
        """Run connectctl on a clock that only sleeping moves."""
        session = self.session(
            told=TOPICS | self.told,
            reads=self.world.kafka,
            calls=self.calls,
            committed=self.world.groups,
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


Command = Callable[[Scene], Result]


def words(*words: str, stdin: str | None = None) -> Command:
    def run(scene: Scene) -> Result:
        return scene.run(
            *(word.format(directory=scene.directory) for word in words), "--yes", stdin=stdin
        )

    return run


def _rollback(scene: Scene) -> Result:
    written = [
        each.offset for each in scene.world.kafka.records["cfg"] if each.key == b"connector-plain"
    ]
    return scene.run("connectors", "rollback", "plain", "--to", str(written[-2]), "--yes")


OFFSETS = json.dumps({"offsets": [{"partition": {"table": "a"}, "offset": {"lsn": 99}}]})
ON_CONNECTORS: dict[str, Command] = {
    "connectors stop": words("connectors", "stop", "plain"),
    "connectors pause": words("connectors", "pause", "plain"),
    "connectors resume": words("connectors", "resume", "plain"),
    "connectors restart": words("connectors", "restart", "plain"),
    "connectors create": words("connectors", "create", "-f", "{directory}/new.json"),
    "connectors apply": words("connectors", "apply", "-f", "{directory}/plain.json"),
    "connectors edit": words("connectors", "edit", "plain"),
    "connectors patch": words("connectors", "patch", "plain", "batch.size=5"),
    "connectors delete": words("connectors", "delete", "plain"),
    "connectors rollback": _rollback,
    "connectors cure": words("connectors", "cure", "plain"),
    "connectors topics": words("connectors", "topics", "plain", "--reset"),
}
ON_TASKS: dict[str, Command] = {
    "offsets set": words("offsets", "set", "plain", "-f", "-", stdin=OFFSETS),
    "offsets reset": words("offsets", "reset", "plain"),
    "offsets merge": words(
        "offsets", "merge", "plain", "--into", "dedicated", "--topic", "new-offsets"
    ),
    "offsets copy": words("offsets", "copy", "moved", "plain"),
    "offsets restore": words("offsets", "restore", "plain", "-f", "{directory}/backup.jsonl"),
    "fence": words("fence", "plain"),
}
"""Commands that would harm a task that runs."""


def without_waits(directory: Path, patch: pytest.MonkeyPatch) -> None:
    """Let nothing wait for what is at rest in memory."""
    patch.setenv("CONNECTCTL_JOURNAL", str(directory / "journal"))
    patch.setenv("EDITOR", EDITOR)
    for module, name in (
        (cli_session, "REBALANCE_PATIENCE"),
        (cluster_command, "REBALANCE"),
        (observe, "AGREEING"),
        (group_workers, "AGREEING"),
        (fencing_observe, "LISTING"),
        (steps_context, "AGREEING"),
        (target_state_wait, "STEADY"),
    ):
        patch.setattr(module, name, 0.0)
    patch.setattr(fencing_observe.FencingSources, "patience", 0.0)
    patch.setattr(fencing_observe.FencingSources.__init__, "__defaults__", (None, 0.0))
    clock = Clock()
    for where in (sources, flow):
        patch.setattr(where, "context_of", partial(timed_by, clock, where.context_of))


def made(directory: Path) -> Scene:
    """A scene in which ``plain`` runs, with files for the commands."""
    world = World(directory / "journal")
    world.workers.levels = {world.workers.urls[0]: {"root": "INFO"}}
    for name in ("plain", "moved"):
        world.kafka.append("cfg", f"commit-{name}".encode(), b'{"tasks":1}')
    _older_version(world)
    (directory / "new.json").write_text(
        json.dumps({"name": "new", "connector.class": "x.y.Source"})
    )
    (directory / "plain.json").write_text(
        json.dumps({"name": "plain", "connector.class": "x.y.Source", "x": "1"})
    )
    job = {"connector.class": "FileStreamSource", "file": "/in", "topic": "t", "name": "plain"}
    (directory / "job.json").write_text(
        json.dumps({"name": "plain", "config": job, "spark": {"master": "local[1]"}})
    )
    world.workers.active = {"plain": ["t"]}
    open_ = Transaction("app-0", "Ongoing", 8, 3, 60_000, 1, (TopicPartition("t", 0),))
    known = {ID: Transaction(ID, "Empty", 7, 0, 60_000), open_.id: open_}
    places: dict[TopicPartition, Any] = {TopicPartition("t", 0): (), HANGING: (HUNG,)}
    log = FakeTransactionLog()
    log.written += log_of(*COMMITTED).written
    found = Scene(
        world, world.workers, {}, directory, FakeCoordinators(known, partitions=places), log
    )
    backup = found.run("offsets", "backup", "plain", "--out", str(directory / "backup.jsonl"))
    assert backup.exit_code == 0, backup.output
    world.put("off", '["plain",{"table":"a"}]', '{"lsn":2}')
    return found


def _older_version(world: World) -> None:
    config = {"properties": {"connector.class": "x.y.Source", "name": "plain", "batch.size": "9"}}
    now = {"properties": dict(world.workers.connectors["plain"].config)}
    for value in (config, now):
        world.kafka.append("cfg", b"connector-plain", json.dumps(value).encode())
