"""A source of numbers, and the offsets topic and target of one task of it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.kafka.record_batch_encoder import RecordColumns
from connectctl.ops.task_runtime.spi.transaction_batch import (
    END,
    ColumnBatch,
    Event,
    ProducerRecord,
    RecordLists,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.committed_offsets import CommittedOffsets, OffsetStore
from connectctl.ops.task_runtime.task.global_offsets_writer import GlobalOffsetsWriter
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from live.real import create_topic

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox
    from connectctl.ops.task_runtime.spi.transaction_batch import StoredOffsets


class Numbers:
    """The numbers below ``end`` for a topic, ``size`` in a transaction, behind the stored
    offset.
    """

    def __init__(
        self, place: Place, end: int, size: int = 10, each: Callable[[int], None] = lambda n: None
    ):
        self._place, self._end, self._size, self._each = place, end, size, each
        self._next = 0

    def resume(self, stored: StoredOffsets) -> None:
        value = stored.value(self._place.key)
        self._next = json.loads(value)["next"] if value else 0

    def next(self) -> Event:
        return self.batch() or END

    def batch(self) -> TransactionBatch | None:
        """The next numbers; None at the end."""
        numbers = range(self._next, min(self._next + self._size, self._end))
        if not numbers:
            return None
        self._each(self._next)
        self._next = numbers.stop
        offsets = {
            self._place.key: json.dumps({"next": numbers.stop}, separators=(",", ":")).encode()
        }
        if self._next % 3 == 0:
            values = pa.array([b"%d" % n for n in numbers])
            return TransactionBatch(
                record_batches=[ColumnBatch(self._place.topic, RecordColumns(values))],
                offsets=offsets,
            )
        if self._next % 20:
            return TransactionBatch(
                record_batches=[RecordLists(self._place.topic, [b"%d" % n for n in numbers])],
                offsets=offsets,
            )
        return TransactionBatch(
            records=[ProducerRecord(self._place.topic, None, b"%d" % n) for n in numbers],
            offsets=offsets,
        )

    def final_batch(self) -> TransactionBatch | None:
        return None

    def committed(self, step: TransactionBatch) -> None:
        pass


class Place:
    """A connector's id, topic and offsets topics, new for each test."""

    def __init__(self, cluster: Sandbox):
        self.connector = f"kernel-{secrets.token_hex(4)}"
        self.key = f'["{self.connector}",{{"file":1}}]'.encode()
        self.kafka = Kafka({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
        self.topic = create_topic(cluster.bootstrap_servers, f"{self.connector}-data", 3, "delete")
        self.offsets = create_topic(cluster.bootstrap_servers, f"{self.connector}-offsets")
        self.global_ = create_topic(cluster.bootstrap_servers, f"{self.connector}-global-offsets")

    def handle(self, timeout_ms: int = 15_000) -> TaskProducer:
        return TaskProducer(self.kafka, f"g-{self.connector}-0", timeout_ms=timeout_ms)

    def store(self, *, secondary: bool = False) -> OffsetStore:
        behind = CommittedOffsets(self.kafka, self.global_, self.connector) if secondary else None
        return OffsetStore(CommittedOffsets(self.kafka, self.offsets, self.connector), behind)

    def ledger(self, global_offsets: GlobalOffsetsWriter | None = None) -> SourceOffsetsLedger:
        return SourceOffsetsLedger(
            self.offsets, self.store(secondary=global_offsets is not None), global_offsets
        )

    def kernel(self, **more: Any) -> AttemptLoop:
        made: dict[str, Any] = {"open_producer": self.handle, "ledger": self.ledger()}
        return AttemptLoop(**made | more)

    def seen(self) -> list[int]:
        """What a reader with read_committed sees, in the order of the numbers."""
        image = self.kafka.image([self.topic], patience=30, superseded=True)[self.topic]
        assert not image.held_back
        return sorted(int(r.value or b"") for r in (*image.latest, *image.superseded))

    def stored(self) -> Any:
        store = self.store()
        store.refresh(30)
        value = store.value(self.key)
        return json.loads(value) if value else None
