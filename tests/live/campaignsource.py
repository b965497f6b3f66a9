"""A source task of a campaign: it counts, and its kernel writes that with its offsets."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence

from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.task_runtime.spi.boundaries import Boundaries
from connectctl.ops.task_runtime.spi.connector import SourceRecord, SourceTask
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.transaction_batch import TaskResult, TaskStats
from connectctl.ops.task_runtime.task import committed_offsets
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.committed_offsets import CommittedOffsets, OffsetStore
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from connectctl.ops.task_runtime.task.polled_source import PolledSource
from fakes import silentadmin
from live.campaignattempt import SOCKET_TIMEOUT_MS, Attempt, Telling, Told, report


class Counting(SourceTask):
    """0, 1, 2 … of each of its sources, with the source as the key; a few of one source at a
    time.
    """

    def start(self, configs: Mapping[str, str]) -> None:
        self._topic = configs["topic"]
        self._chance = random.Random(int(configs["seed"]))
        self._next = {n: self._stored(n) for n in json.loads(configs["sources"])}

    def _stored(self, source: int) -> int:
        return int((self.context.offsets.offset({"source": source}) or {"next": 0})["next"])

    def poll(self) -> Sequence[SourceRecord] | None:
        time.sleep(self._chance.uniform(0.0, 0.03))
        records: list[SourceRecord] = []
        for source in self._chance.sample(
            sorted(self._next), self._chance.randint(0, len(self._next))
        ):
            start = self._next[source]
            self._next[source] = start + self._chance.randint(1, 40)
            records += [
                SourceRecord({"source": source}, {"next": n + 1}, self._topic, n, key=str(source))
                for n in range(start, self._next[source])
            ]
        return records or None


class Reported(CommittedOffsets):
    """Tells how far it has read, and what it found."""

    def refresh(self, patience: float) -> None:
        super().refresh(patience)
        known = {key.decode(): (self.value(key) or b"").decode() for key in sorted(self.known())}
        report("reads", to={str(p): n for p, n in self._positions.items()}, known=known)


def run(attempt: Attempt, stopped: Callable[[], bool]) -> TaskResult:
    """The attempt, to its end, or until it is ``stopped``."""
    chance = random.Random(attempt.seed)
    if attempt.silent:
        silentadmin.install()
    if attempt.believes:
        vars(committed_offsets)["end_offsets"] = silentadmin.believed
    kafka = Kafka({"bootstrap.servers": attempt.bootstrap}, timeout=30)

    def open_producer() -> Told:
        properties = {"socket.timeout.ms": SOCKET_TIMEOUT_MS}
        id_ = task_id(attempt.group, attempt.connector, attempt.task)
        handle = Told(kafka, id_, timeout_ms=attempt.timeout_ms, properties=properties)
        handle.hesitate = lambda: time.sleep(chance.uniform(0, attempt.hesitation))
        return handle

    configs = {
        "topic": attempt.topic,
        "seed": str(attempt.seed),
        "sources": json.dumps(attempt.sources),
    }
    supply = PolledSource(
        Counting,
        attempt.connector,
        configs,
        lambda: Boundaries(Boundary(attempt.boundary), interval=0.2),
        converters({}),
        attempt.offsets,
    )
    kernel = AttemptLoop(
        open_producer,
        SourceOffsetsLedger(
            attempt.offsets, OffsetStore(Reported(kafka, attempt.offsets, attempt.connector))
        ),
        stale_because=attempt.stale_because,
        stopped=stopped,
        patience=120.0,
        strict=attempt.strict,
        stats=TaskStats(doubts=Telling()),
    )
    return kernel.run(supply)
