"""Single records of a polled source, from ``poll`` to the bytes of their batches: the processor
time of each, without a broker.

    python tests/bench/single_records.py [--records 400000] [--poll 2000] [--runs 5]

Records of 100 bytes with a key, each with a source partition and an offset of its own objects, as
most connectors return them; a transaction for each poll, three partitions. What ``poll`` itself
takes is printed beside it, and is in the other figure. Processor time hardly depends on what else
the machine does, so that two versions can be compared.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

from connectctl.ops.clients.kafka_protocol.batch_producer import BatchProducer
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.connect.source_transactions import Boundary
from connectctl.ops.kafka.record_batch_encoder import ProducerState
from connectctl.ops.task_runtime.spi.boundaries import Boundaries
from connectctl.ops.task_runtime.spi.connector import SourceRecord, SourceTask
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.transaction_batch import END, TransactionBatch
from connectctl.ops.task_runtime.task.polled_source import PolledSource
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


class Broker:
    """Takes batches, and answers at once."""

    bumps_epoch = True
    taken = 0

    def partitions(self, topic: str, patience: float) -> int:
        return 3

    def led(self, topic: str) -> range:
        return range(3)

    def add(self, partitions: Any) -> None: ...
    def flush(self) -> None: ...
    def end(self, *, commit: bool, patience: float) -> None: ...

    def send(
        self,
        place: Any,
        records: int,
        made: Callable[[ProducerState], Sequence[bytes]],
        *more: Any,
    ) -> None:
        self.taken += sum(map(len, made(ProducerState(1, 0, 0))))


class Producer(TaskProducer):
    def _open(self, *_: object) -> BatchProducer:
        return cast("BatchProducer", Broker())


class Nothing:
    """No offsets are stored."""

    def value(self, key: bytes) -> bytes | None:
        return None

    def known(self) -> frozenset[bytes]:
        return frozenset()


def task_of(count: int, poll: int) -> type[SourceTask]:
    class Task(SourceTask):
        def start(self, configs: Any) -> None:
            self.given = 0

        def poll(self) -> list[SourceRecord]:
            numbers = range(self.given, self.given + poll)
            self.given = numbers.stop
            return [
                SourceRecord({"file": 1}, {"line": n}, "t", b"x" * 100, key=b"key-%d" % (n % 1000))
                for n in numbers
            ]

        @property
        def finished(self) -> bool:
            return self.given >= count

    return Task


def written(kind: type[SourceTask]) -> float:
    """Seconds of processor time for all records of a task of ``kind``."""
    both = {"key.converter": BYTES, "value.converter": BYTES}
    source = PolledSource(
        kind, "c", {}, lambda: Boundaries(Boundary.POLL, 60.0), converters(both), "offsets"
    )
    source.resume(Nothing())
    producer = Producer(Kafka({"bootstrap.servers": "nowhere:1"}, timeout=1), "id", timeout_ms=1000)
    began = time.process_time()
    while (batch := source.next()) is not END:
        if isinstance(batch, TransactionBatch):
            producer.begin()
            producer.send(batch)
            producer.send_offsets("offsets", batch.offsets)
            producer.commit(1)
            source.committed(batch)
    return time.process_time() - began


def polled(kind: type[SourceTask]) -> float:
    """The same for ``poll`` alone."""
    task: Any = kind()
    task.start({})
    began = time.process_time()
    while not task.finished:
        task.poll()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--poll", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    kind = task_of(given.records, given.poll)
    for name, side in (("poll to bytes", written), ("poll alone", polled)):
        side(kind)
        found = [1e6 * side(kind) / given.records for _ in range(given.runs)]
        print(
            f"{name:14} {statistics.median(found):5.2f} µs a record ({min(found):.2f} to {max(found):.2f})"
        )


if __name__ == "__main__":
    main()
