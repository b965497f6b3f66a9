"""A source of sequence numbers whose transactions the kernel or the task itself begins."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connectctl.ops.connect.source_keys import SourceKey, decode_json, parse_key
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.task_runtime.spi.boundaries import Boundaries
from connectctl.ops.task_runtime.spi.connector import SourceRecord, SourceTask
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.transaction_batch import TaskResult
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.global_offsets_writer import GlobalOffsetsWriter
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from connectctl.ops.task_runtime.task.polled_source import PolledSource
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from live.numbersource import Place
from live.oracle import in_order, judge

BATCH = 7


class Sequenced(SourceTask):
    """Each of its sources counts from 0 to below ``last``, in batches of 7. The stored offset is
    the next number.
    """

    def start(self, configs: Mapping[str, str]) -> None:
        self.topic, self.last = configs["topic"], int(configs["last"])
        self.next = {name: self._stored(name) for name in configs["sources"].split(",") if name}

    def _stored(self, name: str) -> int:
        return int((self.context.offsets.offset({"source": name}) or {"next": 0})["next"])

    def poll(self) -> Sequence[SourceRecord] | None:
        records: list[SourceRecord] = []
        for name, start in self.next.items():
            self.next[name] = min(start + BATCH, self.last)
            records += [self.record(name, n) for n in range(start, self.next[name])]
        return records or None

    def record(self, name: str, n: int) -> SourceRecord:
        return SourceRecord({"source": name}, {"next": n + 1}, self.topic, n, key=name)

    @property
    def finished(self) -> bool:
        return all(n >= self.last for n in self.next.values())


class Own(Sequenced):
    """Writes to the offsets topic of its own connector."""

    def record(self, name: str, n: int) -> SourceRecord:
        return SourceRecord(
            {"source": name}, {"next": n + 1}, self.context.configs["own"], n, key=name
        )


@dataclass
class Connector:
    """A connector of such tasks, with a place of its own."""

    place: Place
    kind: type[Sequenced] = Sequenced
    boundary: Boundary = Boundary.POLL

    def handle(self, task: int) -> TaskProducer:
        return TaskProducer(
            self.place.kafka, task_id("g", self.place.connector, task), timeout_ms=30_000
        )

    def run(
        self,
        last: int,
        task: int = 0,
        sources: str = "a",
        secondary: GlobalOffsetsWriter | None = None,
        stale: Callable[[], str | None] = lambda: None,
    ) -> TaskResult:
        place, ticks = self.place, itertools.count(0, 20)
        configs = {
            "topic": place.topic,
            "last": str(last),
            "sources": sources,
            "own": place.offsets,
        }
        supply = PolledSource(
            self.kind,
            place.connector,
            configs,
            lambda: Boundaries(self.boundary, interval=60, now=lambda: float(next(ticks))),
            converters({}),
            place.offsets,
        )
        store = place.store(secondary=secondary is not None)
        ledger = SourceOffsetsLedger(place.offsets, store, secondary)
        kernel = AttemptLoop(lambda: self.handle(task), ledger, stale, patience=60)
        try:
            return kernel.run(supply)
        finally:
            supply.close()

    def numbers(self) -> list[int]:
        image = self.place.kafka.image([self.place.topic], patience=30, superseded=True)[
            self.place.topic
        ]
        assert not image.held_back
        return [int(record.value or b"") for record in in_order(image)]

    def findings(self) -> tuple[str, ...]:
        place = self.place

        def whose(partition: dict[str, Any]) -> bytes:
            return str(partition["source"]).encode()

        return judge(place.kafka, place.topic, place.offsets, place.connector, whose).findings

    def history(self, topic: str) -> list[int]:
        """Every offset that was committed, in its order; there is one source."""
        image = self.place.kafka.image([topic], patience=30, superseded=True)[topic]
        keys = {record.key: parse_key(record.key) for record in in_order(image)}
        assert all(
            isinstance(k, SourceKey) and k.connector == self.place.connector for k in keys.values()
        )
        assert len({record.partition for record in in_order(image)}) <= 1
        return [
            decode_json((record.value or b"").decode())[0]["next"] for record in in_order(image)
        ]
