"""A Connect cluster and a journal, in which the process may be killed at any call: for commands
that change something.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.cli.main import app
from connectctl.ops.config import paths
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.journal import Journal, RunState
from connectctl.ops.core.plan import Plan
from connectctl.ops.kafka.records import ConsumerRecord
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transaction_log import LogEntry
from connectctl.ops.kafka.transactions import PartitionProducer, Transaction
from connectctl.ops.operations.connectors.config.steps import ChangeConnector
from connectctl.ops.operations.connectors.config.values import digest, store_configs
from connectctl.ops.task_runtime.job.run_request import RunRequest
from connectctl.ops.task_runtime.job.steps import HandBack, RunTasks, StopOnWorkers
from fakes.coordinators import FakeCoordinators
from fakes.kafkareads import FakeKafka, FakeLeader, connect_group, records
from fakes.session import FakeSession
from fakes.transactionlog import FakeTransactionLog, log_of
from fakes.workers import FakeConnector, FakeWorkers
from typer.testing import CliRunner, Result

if TYPE_CHECKING:
    from connectctl.ops.core.context import RunContext
    from connectctl.ops.operations.connectors.steps import ConnectorStep

IDS = ("app-0", "app-1", "app-2")
COMMANDS: dict[str, list[str]] = {
    "connectors stop": ["orders", "users", "--wait"],
    "connectors pause": ["orders", "users", "--wait"],
    "connectors resume": ["off", "--wait"],
    "connectors restart": ["users", "--only-failed", "--wait"],
    "connectors cure": ["users"],
    "doctor --heal": ["users"],
    "connectors create": ["-f", "{directory}/new.json", "--wait"],
    "connectors apply": ["-f", "{directory}/all", "--wait"],
    "connectors patch": ["*s", "batch.size=5"],
    "connectors edit": ["orders"],
    "connectors rollback": ["orders", "--to", "0"],
    "connectors topics": ["orders", "--reset"],
    "connectors delete": ["orders", "users", "--with-offsets", "--wait"],
    "fence": [word for id_ in IDS for word in ("--transactional-id", id_)],
    "transactions abort": ["app-0"],
    "transactions commit": ["--topic", "h", "--partition", "0"],
    "loggers set": ["root", "DEBUG"],
}
"""Commands that are the operation of their run, with arguments."""
UNDO = "connectors undo"
"""The operation of ``runs undo``."""
HAND_BACK = "run hand-back"
"""The operation of ``runs undo`` for a run that was killed while it had a connector."""
UNDOING = (UNDO, HAND_BACK)
RUN = "run"
"""The operation of a run that takes a connector over, for worlds without Spark."""
OPERATIONS = (*COMMANDS, RUN, *UNDOING)
JOB = """\
name: orders
config: {connector.class: FileStreamSource, file: /in, topic: t}
spark: {master: "local[1]"}
until: {idle: 1s}
"""
TAKE_OVER = Plan(
    "run",
    "fake-cluster",
    (
        StopOnWorkers("off", "stop off on its workers", now="STARTED"),
        RunTasks("off", "run off on Spark", request=RunRequest("job.yaml"), made_from={}),
        HandBack("off", "resume off on its workers", verb="resume"),
    ),
    group_id="connect",
)
"""The plan of a run that took over the stopped connector."""
EDITOR = "sed -i s/Source/Other/"
HANGING, HUNG = TopicPartition("h", 0), PartitionProducer(9, 0, 0, 1_000, 40)
STATES = {"Empty": 0, "Ongoing": 1_000, "PrepareCommit": 1_100, "CompleteCommit": 1_110}
COMMITTED = [
    LogEntry(
        "h-0",
        9,
        0,
        60_000,
        state,
        frozenset({HANGING} if at in (1_000, 1_100) else ()),
        at,
        1_000 if at else -1,
    )
    for state, at in STATES.items()
]
"""What the coordinator wrote of the transaction that hangs: its commit was decided."""

CONFIG = {"connector.class": "x.y.Source"}
PASSING = "org.apache.kafka.common.errors.TimeoutException: Timed out\n\tat a.B.c(B.java:1)"


class Killed(BaseException):
    """The process ends here."""


class Clock:
    """Time that passes only where somebody sleeps, so that the waits of the product take none of
    ours.
    """

    seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def timed_by(clock: Clock, real: Callable[..., RunContext], *args: Any) -> RunContext:
    """The context that ``real`` makes, on a clock of ours."""
    context = real(*args)
    context.now, context.sleep = clock.now, clock.sleep
    return context


@dataclass
class World:
    """A cluster, and a journal; every call of the workers, the coordinators and the journal is
    counted.
    """

    directory: Path
    kafka: FakeKafka = field(init=False)
    workers: FakeWorkers = field(init=False)
    coordinators: FakeCoordinators = field(init=False)
    session: FakeSession = field(init=False)
    left: int = -1
    log: FakeTransactionLog = field(default_factory=FakeTransactionLog)
    former: str | None = None
    """The run that is undone: no part of ``runs``."""

    def __post_init__(self) -> None:
        owners = [
            ("orders", -1),
            ("orders", 0),
            ("users", -1),
            ("users", 0),
            ("users", 1),
            ("off", -1),
        ]
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
        connectors = {
            "orders": FakeConnector(),
            "users": FakeConnector(tasks=["RUNNING", "FAILED"]),
        }
        self.workers = FakeWorkers(connectors | {"off": FakeConnector(own="STOPPED", tasks=[])})
        self.workers.levels = {self.workers.urls[0]: {"root": "INFO"}}
        leader = FakeLeader(self.kafka)
        self.workers.commanded, self.workers.configured = leader.command, leader.configure
        (self.directory / "new.json").write_text(
            json.dumps(CONFIG | {"name": "new", "db.password": "${file:a:b}"})
        )
        (self.directory / "all").mkdir(exist_ok=True)
        (self.directory / "all" / "a.yaml").write_text("connector.class: x.y.Source\nname: a\n")
        (self.directory / "all" / "orders.properties").write_text(
            "connector.class=x.y.Source\nname=orders\nx=1\n"
        )
        open_ = Transaction(IDS[0], "Ongoing", 7, 3, 60_000, 1, (TopicPartition("t", 0),))
        others = {id_: Transaction(id_, "Empty", 8 + n, 0) for n, id_ in enumerate(IDS[1:])}
        self.coordinators = FakeCoordinators(
            {open_.id: open_} | others, partitions={TopicPartition("t", 0): ()}
        )
        self._count(self.workers, "send")
        self._count(self.coordinators, "fence")
        self._count(self.coordinators, "mark")
        self.new_session()

    def new_session(self) -> None:
        """What another process opens."""
        topics = {"topics.config": "cfg", "topics.offsets": "off", "topics.status": "sta"}
        self.session = FakeSession(told=topics, reads=self.kafka, calls=self.workers)
        self.session.__dict__ |= {"transactions": self.coordinators, "transaction_log": self.log}

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
        self.prepare(operation)
        if operation in UNDOING:
            return self.run("runs", "undo", str(self.former), *more)
        if operation == RUN:
            job = str(self.directory / "job.yaml")
            return self.run("run", job, "--take-over", *more)
        given = [word.format(directory=self.directory) for word in COMMANDS[operation]]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("EDITOR", EDITOR)
            return self.run(*operation.split(), *given, *more)

    def prepare(self, operation: str) -> None:
        """What ``operation`` needs and others do not have: something that hangs, an older version,
        a run to undo.
        """
        if operation == "transactions commit" and HANGING not in self.coordinators.partitions:
            self.coordinators.partitions[HANGING] = (HUNG,)
            self.log.written += log_of(*COMMITTED).written
        if operation == "doctor --heal":
            self.workers.connectors["users"].trace = PASSING
        if operation == "connectors topics" and self.workers.active is None:
            self.workers.active = {"orders": ["t"]}
        config = self.kafka.records["cfg"]
        older = json.dumps({"properties": CONFIG | {"batch.size": "9"}}).encode()
        if operation == "connectors rollback" and config[0].value != older:
            later = [record._replace(offset=record.offset + 1) for record in config]
            config[:] = [ConsumerRecord(b"connector-orders", older, 0, 0), *later]
        if operation == RUN:
            (self.directory / "job.yaml").write_text(JOB)
            self.kafka.records |= {"t": [], "connect-run-status": []}
        if operation in UNDOING and self.former is None:
            self.former = "none"
            with suppress(ConnectctlError):
                self.former = self._patched() if operation == UNDO else self.taken_over(0, 1)

    def _patched(self) -> str:
        """A run that set a property of two connectors, written to the journal as it would have
        been.
        """
        left, self.left = self.left, -1
        journal = Journal(paths.journal_directory())
        steps: list[ConnectorStep] = []
        for name in ("orders", "users"):
            former = {**self.workers.connectors[name].config, "name": name}
            now = former | {"x": "1"}
            store_configs((former, now), journal)
            self.workers.connectors[name].config = now
            steps.append(
                ChangeConnector(name, {"x": "1"}, {"x": None}, digest(former), digest(now))
            )
        run = journal.begin_plan(
            Plan("connectors patch", "fake-cluster", tuple(steps), group_id="connect")
        )
        for number in range(len(steps)):
            journal.mark(run.id, number, "begun")
            journal.mark(run.id, number, "done")
        journal.end(run.id, RunState.DONE)
        self.left = left
        return run.id

    def taken_over(self, *begun: int) -> str:
        """A run that took a connector over and was killed, in which these steps had begun."""
        left, self.left = self.left, -1
        journal = Journal(paths.journal_directory())
        run = journal.begin_plan(TAKE_OVER, ["off"])
        for step in begun:
            journal.mark(run.id, step, "begun")
        self.left = left
        return run.id

    def runs(self) -> list[dict[str, Any]]:
        """The runs, without the one that was there before."""
        found: list[dict[str, Any]] = json.loads(self.run("runs", "list", "-o", "json").stdout)[
            "runs"
        ]
        return [run for run in found if run["id"] != self.former]

    @property
    def changed(self) -> list[str]:
        """What was sent to anybody."""
        return (
            self.workers.sent
            + self.coordinators.asked
            + [str(each) for each in self.coordinators.marked]
        )

    def state(self) -> Any:
        """How everything is."""
        known = self.coordinators.known.values()
        fakes = self.workers.connectors.items()
        connectors = {
            name: (fake.own, "FAILED" in fake.tasks, sorted(fake.config.items()))
            for name, fake in fakes
        }
        there = self.workers.levels, self.workers.active, self.coordinators.partitions
        return connectors, {t.id: t.is_open for t in known}, there
