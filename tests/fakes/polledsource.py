"""A polled source, its broker and its transactions in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.task_runtime.spi.boundaries import Boundaries, End
from connectctl.ops.task_runtime.spi.connector import SourceRecord, SourceTask
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.transaction_batch import TaskResult, TaskStats
from connectctl.ops.task_runtime.task.at_least_once import FlushBoundaries
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from connectctl.ops.task_runtime.task.polled_source import PolledSource
from connectctl.ops.task_runtime.task.transactional_producer import UnknownOutcome
from fakes.snapshots import Snapshots

PARTITION = {"file": "a"}


KEY = b'["c",{"file":"a"}]'


def values(step: Any) -> list[Any]:
    """What a step sends, in order."""
    return [
        json.loads(v)
        for v in [
            *(r.value for r in step.records),
            *(m["value"] for b in step.record_batches for m in b.messages),
        ]
    ]


class Broker(Snapshots):
    """Topics with read_committed eyes, and a trace of what was asked of it and of the task."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Any] = []
        self.offsets: dict[bytes, bytes | None] = {}
        self.trace: list[str] = []
        self.doubt_at: int | None = None
        self.doubt_at_send: int | None = None
        self.commits = 0

    def value(self, key: bytes) -> bytes | None:
        return self.offsets.get(key)

    def known(self) -> frozenset[bytes]:
        return frozenset(k for k, v in self.offsets.items() if v is not None)

    def refresh(self, patience: float) -> None:
        self.trace.append("read")
        self.looked()


class Handle:
    id, timeout_ms, overdue = "g-c-0", 60_000, False

    def __init__(self, broker: Broker):
        self._broker = broker
        self._is_open = False

    def initialise(self, patience: float) -> None:
        self._broker.trace.append("initialise")

    def open_older_transaction(self, topics: Sequence[str]) -> str | None:
        return None

    def begin(self) -> None:
        self._broker.trace.append("begin")
        self._open: list[Any] = []
        self._is_open = True
        self._offsets: dict[bytes, bytes | None] = {}

    def send(self, step: Any) -> None:
        self._open += values(step)

    def send_offsets(self, topic: str, offsets: Any) -> None:
        self._broker.trace.append("offsets")
        self._offsets = dict(offsets)

    def commit(self, patience: float) -> None:
        self._is_open = False
        self._broker.commits += 1
        self._broker.trace.append("commit")
        if self._broker.doubt_at == self._broker.commits:
            raise UnknownOutcome("no answer")
        self._broker.records += self._open
        self._broker.offsets |= self._offsets
        self._broker.wrote(*self._offsets)

    def abort(self, patience: float) -> None:
        self._is_open = False
        self._broker.trace.append("abort")

    def unusable_because(self) -> str | None:
        return None

    def discard(self) -> None:
        if self._is_open:
            self.abort(1)


class Plain(Handle):
    """Without a transactional id: what is sent is there, whatever becomes of the rest."""

    def send(self, step: Any) -> None:
        self._broker.trace.append("records")
        if self._broker.trace.count("records") == self._broker.doubt_at_send:
            self._broker.trace.append("not acknowledged")
            raise UnknownOutcome("no answer")
        self._broker.records += values(step)

    def send_offsets(self, topic: str, offsets: Any) -> None:
        self._broker.trace.append("offsets")
        self._broker.offsets |= offsets
        self._broker.wrote(*offsets)


class Task(SourceTask):
    """Numbers from behind the stored offset up to ``last``; ``script`` may ask for boundaries after
    each record.
    """

    broker: Broker
    last = 9
    batch = 3
    asks: Mapping[int, End]
    asks_batch: Mapping[int, End]
    update: Callable[[Any], Any] | None = None

    def start(self, configs: Mapping[str, str]) -> None:
        stored = self.context.offsets.offset(PARTITION)
        self.next = stored["n"] + 1 if stored else 0
        self.broker.trace.append(f"start at {self.next}")

    def poll(self) -> Sequence[SourceRecord] | None:
        numbers = range(self.next, min(self.next + self.batch, self.last + 1))
        self.next = numbers.stop
        records = [SourceRecord(PARTITION, {"n": n}, "t", n) for n in numbers]
        for record in records:
            self._ask(self.asks.get(record.value), record)
        if numbers:
            self._ask(self.asks_batch.get(numbers[-1]), None)
        return records or None

    def _ask(self, end: End | None, record: SourceRecord | None) -> None:
        requests = self.context.transaction
        if end is not None and requests is not None:
            (requests.commit_transaction if end is End.COMMIT else requests.abort_transaction)(
                record
            )

    def update_offsets(self, offsets: Any) -> Any:
        self.broker.trace.append("update")
        return None if self.update is None else type(self).update(offsets)  # type: ignore[misc]

    def commit_record(self, record: SourceRecord) -> None:
        self.broker.trace.append(f"record {record.value}")

    def commit(self) -> None:
        self.broker.trace.append("committed")

    @property
    def finished(self) -> bool:
        return self.next > self.last

    def stop(self) -> None:
        self.broker.trace.append("stop")


def run(
    broker: Broker,
    boundary: Boundary | None = Boundary.POLL,
    stop_after: int | None = None,
    interval: float = 60.0,
    **task: Any,
) -> TaskResult:
    """Run a task of those attributes to its end. A boundary of None is no exactly-once;
    ``interval`` is in seconds.
    """
    kind = type("Scripted", (Task,), {"broker": broker, "asks": {}, "asks_batch": {}} | task)
    counts, ticks = TaskStats(), iter(range(0, 100_000, 20))
    supply = PolledSource(
        kind,
        "c",
        {},
        lambda: boundaries(boundary, lambda: float(next(ticks)), interval),
        converters({"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}),
        "offsets",
        counts.meter,
    )
    kernel = AttemptLoop(
        lambda: (Handle if boundary else Plain)(broker),  # type: ignore[arg-type,return-value]
        SourceOffsetsLedger("offsets", broker),
        stopped=lambda: stop_after is not None and broker.trace.count("begin") >= stop_after,
        sleep=lambda seconds: None,
        stats=counts,
    )
    ended = kernel.run(supply)
    supply.close()
    return ended


def boundaries(
    boundary: Boundary | None, now: Callable[[], float], interval: float = 60.0
) -> Boundaries:
    return (
        FlushBoundaries(interval, now)
        if boundary is None
        else Boundaries(boundary, interval, now, 60.0)
    )


def offset(broker: Broker) -> Any:
    value = broker.offsets.get(KEY)
    return None if value is None else json.loads(value)["n"]


ALL = list(range(10))
