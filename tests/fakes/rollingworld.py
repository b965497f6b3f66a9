"""A Connect cluster whose workers can be changed and restarted, in memory, with a clock that only
sleeping moves.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from connectctl.cli import flow
from connectctl.migrations.access import UpgradeAccess
from connectctl.ops.clients.protocols import ConfiguredValue, RestartMode
from connectctl.ops.connect.connect_protocol import Assignment, ConnectGroup, Member
from connectctl.ops.connect.worker import NOT_ENABLED
from connectctl.ops.core.errors import ConnectctlError, Unreachable
from connectctl.ops.core.journal import Journal
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.kafka.visibility import Complete
from connectctl.ops.operations.upgrade.mode import PROPERTY
from fakes.kafkareads import FakeKafka, records
from fakes.locks import FakeLock
from fakes.runner import invoke
from fakes.session import FakeSession
from typer.testing import Result

START = 2.0
"""Seconds that a worker needs to come back."""
FENCED = (
    "org.apache.kafka.connect.errors.ConnectException: Failed to perform round of zombie "
    "fencing\n\tat X\n"
)
TAKEN_OVER = (
    "org.apache.kafka.common.errors.InvalidTxnStateException: The producer attempted a "
    "transactional operation in an invalid state.\n"
)
"""What a task leaves whose producer was fenced between its last acknowledgement and its commit."""


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Faults:
    """Strikes at call number ``at`` of any edge: killed, or broken for this one call; ``after`` its
    effect or before it.
    """

    at: int = 0
    kills: bool = True
    after: bool = False
    calls: list[str] = field(default_factory=list)

    def around(self, name: str, call: Any, args: Any, kwargs: Any) -> Any:
        """Make a call, or not."""
        self.calls.append(name)
        if len(self.calls) != self.at:
            return call(*args, **kwargs)
        if self.after:
            call(*args, **kwargs)
        raise Killed if self.kills else Unreachable(f"broken at call {self.at}, {name}")


class Breaking:
    """An edge, every call of which goes through the world's faults."""

    def __init__(self, inner: Any, world: RollingWorld):
        self._inner, self._world = inner, world

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found
        return lambda *args, **kwargs: self._world.faults.around(name, found, args, kwargs)


@dataclass
class FakeWorker:
    """A worker. ``file`` is its property, ``mode`` what it runs with, None while it is down.

    ``joins_as``: the mode in which it comes back whatever its file says. ``stays_away``,
    ``ignores_restarts``, ``mute``: how it misbehaves.
    """

    file: str | None = "disabled"
    mode: str | None = "disabled"
    version: str = "4.3.1"
    member: str | None = None
    back_at: float | None = None
    joins_as: str | None = None
    stays_away: bool = False
    ignores_restarts: bool = False
    mute: bool = False
    obstacle: str | None = None


@dataclass
class RollingWorld:
    """``workers`` by name (``a`` is at ``a:8083``); ``tasks`` are states by connector and task.

    ``who`` is the leader's transactional id, ``written`` whether something was written with it
    since it was initialised. ``dead``: Kafka knows no such group, only ``others``; ``blind``: the
    brokers do not answer. ``configured``: the connectors in the config topic, ``stopping`` those
    that it has as STOPPED without tasks; ``unlisted``: the workers that list none; ``strangers``:
    servers that answer, and are workers of another group. ``history`` tells what happened to the
    workers; ``violations`` which promise was broken.
    """

    journal: Path
    workers: dict[str, FakeWorker] = field(default_factory=dict)
    tasks: dict[tuple[str, int], str] = field(
        default_factory=lambda: {("orders", 0): "RUNNING", ("orders", 1): "RUNNING"}
    )
    traces: dict[tuple[str, int], str] = field(default_factory=dict)
    leads: str = ""
    who: tuple[int, int] | None = None
    written: bool = False
    delay_ms: int = 0
    faults: Faults = field(default_factory=Faults)
    clock: float = 0.0
    tells: bool = True
    by_hand: bool = False
    together: str | None = None
    fences_badly: int = 0
    fenced_trace: str = FENCED
    on_restart: Any = None
    dead: bool = False
    blind: bool = False
    others: frozenset[str] = frozenset()
    told: dict[str, Any] = field(default_factory=lambda: {"timeout": 10, "topics.config": "cfg"})
    configured: tuple[str, ...] = ("orders",)
    stopping: tuple[str, ...] = ()
    unlisted: frozenset[str] = frozenset()
    strangers: frozenset[str] = frozenset()
    lock: FakeLock = field(default_factory=FakeLock)
    history: list[tuple[str, str | None]] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    restarted_tasks: list[str] = field(default_factory=list)
    told_person: list[str] = field(default_factory=list)
    _ids: Any = field(default_factory=lambda: itertools.count(1))

    @classmethod
    def of(cls, journal: Path, *modes: str, leads: str = "b", **more: Any) -> RollingWorld:
        """Workers a, b, c … in these modes."""
        world = cls(
            journal, {chr(97 + n): FakeWorker(mode, mode) for n, mode in enumerate(modes)}, **more
        )
        for worker in world.workers.values():
            worker.member = f"m{next(world._ids)}"
        world.leads = leads
        world.who = (1, 0) if world.workers[leads].mode != "disabled" else None
        return world

    # --------------------------------------------------------------------------------- what happens

    def sleep(self, seconds: float) -> None:
        self.clock += seconds
        for name, worker in self.workers.items():
            if worker.back_at is not None and self.clock >= worker.back_at:
                worker.back_at, worker.member = None, f"m{next(self._ids)}"
                worker.mode = worker.joins_as or worker.file or "disabled"
                self._check(name, worker.mode)
                if self.leads == name:
                    self._take_over()

    def _take_over(self) -> None:
        """What a new leader does that is at least preparing."""
        if self.workers[self.leads].mode in ("preparing", "enabled"):
            self.who = (1, 0) if self.who is None else (self.who[0], self.who[1] + 1)

    def _check(self, name: str, mode: str) -> None:
        modes = {other.mode for other in self.workers.values() if other.mode}
        self.history.append((name, mode))
        if (
            mode == "enabled"
            and "disabled" in modes
            and "3.2" not in {w.version[:3] for w in self.workers.values()}
        ):
            self.violations.append(f"{name} was enabled while others were disabled")

    def up(self) -> list[str]:
        return [name for name, worker in sorted(self.workers.items()) if worker.member]

    def restart(self, name: str) -> None:
        worker = self.workers[name]
        if worker.ignores_restarts:
            return
        ours = self.workers.keys() - self.strangers - {name}
        others = [other for other in sorted(ours) if not self.workers[other].member]
        if others and not self.together:
            self.violations.append(f"{name} was restarted while {others} was away")
        worker.member, worker.mode = None, None
        worker.back_at = None if worker.stays_away else self.clock + START
        if self.leads == name and self.up():
            self.leads = self.up()[0]
            self._take_over()
        for part in list(self.tasks)[: self.fences_badly]:
            self.tasks[part], self.traces[part] = "FAILED", self.fenced_trace
        self.fences_badly = 0
        if self.on_restart:
            self.on_restart(self, name)

    def modes(self) -> dict[str, str | None]:
        return {name: worker.mode for name, worker in self.workers.items()}

    # ------------------------------------------------------------------------------------ the edges

    def cluster_id(self) -> str:
        return "fake-cluster"

    def existing(self, names: Sequence[str]) -> Any:
        return self._topics.existing(names)

    def image(self, topics: Sequence[str], **more: Any) -> Any:
        return self._topics.image(topics, **more)

    @property
    def _topics(self) -> FakeKafka:
        known = [
            (f"connector-{name}", {"properties": {"connector.class": "x.Source"}})
            for name in self.configured
        ]
        commits = [
            (f"commit-{name}", {"tasks": 0 if name in self.stopping else len(self.tasks)})
            for name in self.configured
        ]
        targets = [(f"target-state-{name}", {"state.v2": "STOPPED"}) for name in self.stopping]
        return FakeKafka({"cfg": records(*known, *commits, *targets)})

    def connect_groups(self) -> Complete[frozenset[str]]:
        return Complete(self.others)

    def group(self, group_id: str) -> ConnectGroup:
        if self.blind:
            raise Unreachable("Kafka does not answer")
        if self.dead:
            return ConnectGroup(group_id, "Dead", "", ())
        up = self.up()
        if self.leads not in up and up:
            self.leads = up[0]
        owners = (
            {part: up[n % len(up)] for n, part in enumerate([("orders", -1), *self.tasks])}
            if up
            else {}
        )
        members = tuple(
            self._member(name, [p for p, owner in owners.items() if owner == name]) for name in up
        )
        return ConnectGroup(group_id, "Stable" if up else "Empty", "sessioned", members)

    def _member(self, name: str, parts: list[tuple[str, int]]) -> Member:
        leader = self.workers[self.leads].member or ""
        assignment = Assignment(
            leader,
            f"http://{self.leads}:8083/",
            1,
            False,
            tuple(c for c, task in parts if task == -1),
            tuple(p for p in parts if p[1] != -1),
            self.delay_ms,
        )
        member = self.workers[name].member or ""
        return Member(member, name, f"/{name}", f"http://{name}:8083/", 1, assignment)

    def describe(self, ids: Sequence[str]) -> dict[str, Any]:
        if self.who is None:
            return dict.fromkeys(ids, Code.TRANSACTIONAL_ID_NOT_FOUND)
        state = "CompleteCommit" if self.written else "Empty"
        return {id_: Transaction(id_, state, *self.who) for id_ in ids}

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(f"http://{name}:8083" for name in self.up())

    def _answering(self, url: str | None) -> FakeWorker:
        names = [_name(url)] if url else self.up()
        worker = self.workers.get(names[0]) if names else None
        if worker is None or worker.member is None or worker.mute:
            raise Unreachable(f"The worker at {url} cannot be reached", why="Connection refused")
        return worker

    def get(self, path: str, *, url: str | None = None, timeout: float | None = None) -> Any:
        if url and _name(url) in self.strangers:
            return {"kafka_cluster_id": "fake-cluster"} if path == "/" else {}
        worker = self._answering(url)
        if path == "/":
            return {"version": worker.version, "kafka_cluster_id": "fake-cluster"}
        if path == "/connector-plugins":
            return [{"class": "x.Source", "type": "source"}]
        if _name(url or self.urls[0]) in self.unlisted:
            return {}
        return {"orders": {"status": self._status(), "info": self._info()}}

    def _status(self) -> dict[str, Any]:
        owners = {
            part: m.url
            for m in self.group("g").members
            if m.assignment
            for part in _parts(m.assignment)
        }

        def of(part: tuple[str, int], state: str) -> dict[str, Any]:
            status = {"state": state, "worker_id": owners.get(part, "")[7:-1]}
            return status | (
                {"trace": self.traces.get(part, "java.io.IOException: boom\n")}
                if state == "FAILED"
                else {}
            )

        tasks = [
            {"id": task} | of((name, task), state) for (name, task), state in self.tasks.items()
        ]
        return {"connector": of(("orders", -1), "RUNNING"), "tasks": tasks, "type": "source"}

    def _info(self) -> dict[str, Any]:
        tasks = [{"connector": name, "task": task} for name, task in self.tasks]
        return {
            "name": "orders",
            "type": "source",
            "config": {"connector.class": "x.Source"},
            "tasks": tasks,
        }

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        url: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        worker = self._answering(url)
        if path.endswith("/validate"):
            if worker.version.startswith("3.2"):
                return {"configs": []}
            errors = [] if worker.mode == "enabled" else [NOT_ENABLED]
            return {"configs": [{"value": {"name": "exactly.once.support", "errors": errors}}]}
        self.restarted_tasks.append(unquote(path))
        task = int(path.split("/")[-2])
        self.tasks["orders", task] = "RUNNING"
        return None

    @property
    def driver(self) -> FakeDriver:
        return FakeDriver(self)

    # ------------------------------------------------------------------------------------- commands

    def session(self) -> RollingSession:
        """A session in this world."""
        return RollingSession(world=self, told=self.told, lock=self.lock)

    def run(self, *args: str) -> Result:
        """Run connectctl in this world."""
        session = self.session()
        original = flow.context_of

        def context_of(*given: Any) -> Any:
            context: Any = original(*given)
            context.now = context.wall = lambda: self.clock
            context.sleep = self.sleep
            return context

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CONNECTCTL_JOURNAL", str(self.journal))
            patch.setattr(flow, "context_of", context_of)
            patch.setattr(UpgradeAccess, "findings", lambda access, goal: ())
            return invoke(list(args), obj=session)

    def notes(self) -> Journal:
        return Journal(self.journal)


def _parts(assignment: Assignment) -> list[tuple[str, int]]:
    return [(name, -1) for name in assignment.connectors] + list(assignment.tasks)


def _name(worker: str) -> str:
    return worker.removeprefix("http://").partition(":")[0]


@dataclass
class FakeDriver:
    """Keeps ``WorkerDriver``."""

    world: RollingWorld
    name: str = "fake"

    def restart_mode(self, worker: str) -> RestartMode:
        return RestartMode(self.world.together, self.world.by_hand)

    def describe(self, worker: str, name: str, value: str) -> str:
        return f"set {name}={value} on {worker} and restart it"

    def check(self, worker: str) -> str | None:
        return self.world.workers[_name(worker)].obstacle

    def configured(self, worker: str, name: str) -> ConfiguredValue | None:
        if not self.world.tells or name != PROPERTY:
            return None
        return ConfiguredValue(self.world.workers[_name(worker)].file, f"file {worker}.properties")

    def change(self, worker: str, name: str, value: str) -> str | None:
        if obstacle := self.world.workers[_name(worker)].obstacle:
            raise ConnectctlError(obstacle)
        self.world.workers[_name(worker)].file = value
        return None

    def restart(self, worker: str) -> str | None:
        if self.world.by_hand:
            self.world.told_person.append(f"restart {worker}")
        else:
            self.world.restart(_name(worker))
        return None


@dataclass
class RollingSession(FakeSession):
    """A session in a rolling world."""

    world: RollingWorld = field(default=None)  # type: ignore[assignment]

    @property
    def kafka(self) -> Any:
        return Breaking(self.world, self.world)

    @property
    def transactions(self) -> Any:
        return Breaking(self.world, self.world)

    def connect(self, urls: tuple[str, ...]) -> Any:
        return Breaking(self.world, self.world)

    def driver(self, tell: Any = None) -> Any:
        return Breaking(self.world.driver, self.world)
