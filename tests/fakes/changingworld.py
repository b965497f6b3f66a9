"""A Connect cluster and a journal, in which the process may be killed at any call: for commands that change something."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.cli.main import app
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Transaction
from fakes.coordinators import FakeCoordinators
from fakes.kafkareads import FakeKafka, FakeLeader, connect_group, records
from fakes.session import FakeSession
from fakes.workers import FakeConnector, FakeWorkers
from typer.testing import CliRunner, Result

if TYPE_CHECKING:
    from connectctl.ops.operations.connectors.steps import StepContext

IDS = ("app-0", "app-1", "app-2")
COMMANDS: dict[str, list[str]] = {
    "connectors stop": ["orders", "users", "--wait"],
    "connectors pause": ["orders", "users", "--wait"],
    "connectors resume": ["off", "--wait"],
    "connectors restart": ["users", "--only-failed", "--wait"],
    "connectors cure": ["users"],
    "connectors create": ["-f", "{directory}/new.json", "--wait"],
    "connectors apply": ["-f", "{directory}/all", "--wait"],
    "connectors patch": ["*s", "batch.size=5"],
    "connectors delete": ["orders", "users", "--with-offsets", "--wait"],
    "fence": [word for id_ in IDS for word in ("--transactional-id", id_)],
    "transactions abort": ["app-0"],
}


CONFIG = {"connector.class": "x.y.Source"}


class Killed(BaseException):
    """The process ends here."""


class Clock:
    """Time that passes only where somebody sleeps, so that the waits of the product take none of ours."""

    seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def timed_by(clock: Clock, real: Callable[..., StepContext], *args: Any) -> StepContext:
    """The context that ``real`` makes, on a clock of ours."""
    context = real(*args)
    context.now, context.sleep = clock.now, clock.sleep
    return context


@dataclass
class World:
    """A cluster, and a journal; every call of the workers, the coordinators and the journal is counted."""

    directory: Path
    kafka: FakeKafka = field(init=False)
    workers: FakeWorkers = field(init=False)
    coordinators: FakeCoordinators = field(init=False)
    session: FakeSession = field(init=False)
    left: int = -1

    def __post_init__(self) -> None:
        owners = [("orders", -1), ("orders", 0), ("users", -1), ("users", 0), ("users", 1), ("off", -1)]
        plain = {"properties": {"connector.class": "x.y.Source"}}
        topics = {
            "cfg": records(
                *((f"connector-{name}", plain) for name in ("orders", "users", "off")),
                ("task-orders-0", {"properties": {}}),
                ("commit-orders", {"tasks": 1}),
                *((f"task-users-{n}", {"properties": {}}) for n in range(2)),
                ("commit-users", {"tasks": 2}),
                ("target-state-off", {"state.v2": "STOPPED"}),
                ("commit-off", {"tasks": 0}),
            ),
            "off": [],
            "sta": [],
        }
        self.kafka = FakeKafka(topics, groups={"connect": connect_group("connect", one=owners)})
        connectors = {"orders": FakeConnector(), "users": FakeConnector(tasks=["RUNNING", "FAILED"])}
        self.workers = FakeWorkers(connectors | {"off": FakeConnector(own="STOPPED", tasks=[])})
        leader = FakeLeader(self.kafka)
        self.workers.commanded, self.workers.configured = leader.command, leader.configure
        (self.directory / "new.json").write_text(json.dumps(CONFIG | {"name": "new", "db.password": "${file:a:b}"}))
        (self.directory / "all").mkdir(exist_ok=True)
        (self.directory / "all" / "a.yaml").write_text("connector.class: x.y.Source\nname: a\n")
        (self.directory / "all" / "orders.properties").write_text("connector.class=x.y.Source\nname=orders\nx=1\n")
        open_ = Transaction(IDS[0], "Ongoing", 7, 3, 60_000, 1, (TopicPartition("t", 0),))
        others = {id_: Transaction(id_, "Empty", 8 + n, 0) for n, id_ in enumerate(IDS[1:])}
        self.coordinators = FakeCoordinators({open_.id: open_} | others, partitions={TopicPartition("t", 0): ()})
        self._count(self.workers, "send")
        self._count(self.coordinators, "fence")
        self.new_session()

    def new_session(self) -> None:
        """What another process opens."""
        topics = {"topics.config": "cfg", "topics.offsets": "off", "topics.status": "sta"}
        self.session = FakeSession(told=topics, reads=self.kafka, calls=self.workers)
        self.session.__dict__["transactions"] = self.coordinators

    def _count(self, owner: Any, name: str) -> None:
        setattr(owner, name, self.counted(getattr(owner, name)))

    def counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """``real``, before and after which the process may be killed."""

        def call(*args: Any, **more: Any) -> Any:
            self._maybe_die()
            answer = real(*args, **more)
            self._maybe_die()
            return answer

        return call

    def _maybe_die(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed

    def run(self, *args: str) -> Result:
        return CliRunner().invoke(app, list(args), obj=self.session)

    def change(self, operation: str, *more: str) -> Result:
        given = [word.format(directory=self.directory) for word in COMMANDS[operation]]
        return self.run(*operation.split(), *given, *more)

    def runs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.run("runs", "list", "-o", "json").stdout)["runs"]
        return found

    @property
    def changed(self) -> list[str]:
        """What was sent to anybody."""
        return self.workers.sent + self.coordinators.asked

    def state(self) -> Any:
        """How everything is."""
        known = self.coordinators.known.values()
        fakes = self.workers.connectors.items()
        connectors = {name: (fake.own, "FAILED" in fake.tasks, sorted(fake.config.items())) for name, fake in fakes}
        return connectors, {t.id: t.is_open for t in known}
