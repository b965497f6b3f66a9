"""A connector’s generations on a driver without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from connectctl.ops.core.errors import Unreachable
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.fence_attempt import InitProducerIdResponse
from connectctl.ops.kafka.records import ConsumerRecord, TopicImage, UnreadTail
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.task_runtime.job.generation import Leader
from connectctl.ops.task_runtime.task.retries import RetryPolicy
from connectctl.ops.task_runtime.task.transactional_producer import Fenced

CONFIG = {"connector.class": "x", "name": "c"}


def tasks(count: int) -> list[dict[str, str]]:
    return [{"n": str(n)} for n in range(count)]


@dataclass
class World:
    """A config topic, the coordinator of the leader's id, and those of the tasks' ids; ``trace`` is
    what was asked.
    """

    log: list[ConsumerRecord] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    epoch: int = 0
    known: set[str] = field(default_factory=set)
    refuses: bool = False
    held_back: bool = False
    breaks: list[Exception | None] = field(default_factory=list)
    between: Callable[[World, str], None] = lambda world, step: None
    fail_at: int = 0
    answers_lost: bool = False
    requests: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def request(self, what: str) -> None:
        """Kafka is asked; the request number ``fail_at`` is not answered."""
        self.requests.append(what)
        if len(self.requests) == self.fail_at:
            raise Unreachable("Kafka at h:1 does not answer", why=what)

    def append(self, records: Any) -> None:
        self.log += [ConsumerRecord(k, v, 0, len(self.log) + n) for n, (k, v) in enumerate(records)]
        self.log.append(ConsumerRecord(b"session-key", b"{}", 0, len(self.log)))

    def partitions(self, topic: str) -> list[int]:
        self.request("partitions")
        return [0]

    def image(self, topics: Sequence[str], *, patience: float) -> dict[str, TopicImage]:
        self.request("read")
        newest = {r.key: r for r in self.log}
        held = (UnreadTail(0, 0, 1),) if self.held_back else ()
        return {
            "configs": TopicImage(
                "configs", len(self.log), tuple(newest.values()), {0: len(self.log)}, held
            )
        }

    def describe(self, ids: Sequence[str]) -> dict[str, Transaction | Code]:
        self.request("describe")
        return {
            id_: Transaction(id_, "Empty", 1, 1)
            if id_ in self.known
            else Code.TRANSACTIONAL_ID_NOT_FOUND
            for id_ in ids
        }

    def fence(
        self,
        timeouts: Mapping[str, int],
        patience: float,
        told: Callable[[str, InitProducerIdResponse], None],
    ) -> None:
        self.request("fence")
        for id_ in timeouts:
            self.trace.append(f"fence {id_}")
            code = Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if self.refuses else Code.NONE
            told(id_, InitProducerIdResponse(code, 1, 2))

    def leader(self, **more: Any) -> Leader:
        kafka: Any = self
        return Leader(
            kafka,
            kafka,
            "g",
            "configs",
            5.0,
            RetryPolicy(more.get("patience", 5.0), self.told.append),
        )


class Handle:
    """A producer of the leader's id, over the world."""

    world: World

    def __init__(self, kafka: World, id_: str, *, timeout_ms: int):
        self.world, self.id = kafka, id_

    def initialise(self, patience: float) -> None:
        self.world.request("initialise")
        self.world.epoch += 1
        self.epoch = self.world.epoch
        self.world.trace.append(f"initialise {self.id}")

    def begin(self) -> None:
        self.sent: list[tuple[bytes, bytes]] = []

    def send(self, step: Any) -> None:
        self.sent += [(r.key, r.value) for r in step.records]
        assert {r.partition for r in step.records} == {0}

    def commit(self, patience: float) -> None:
        if not self.world.answers_lost:
            self.world.request("EndTxn")
        if self.world.breaks and (error := self.world.breaks.pop(0)):
            raise error
        if self.epoch < self.world.epoch:
            raise Fenced("a newer producer")
        what = "count" if self.sent[0][0].startswith(b"tasks-fencing") else "set"
        self.world.append(self.sent)
        self.world.trace.append(f"write {what}")
        self.world.between(self.world, what)
        if self.world.answers_lost:
            self.world.request("EndTxn")

    def unusable_because(self) -> str | None:
        return None

    def discard(self) -> None:
        pass
