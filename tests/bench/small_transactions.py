"""Small transactions of a task's producer: the processor time of each, and how long it takes.

    python tests/bench/small_transactions.py [--transactions 2000] [--records 10] [--runs 3] [--profile]

One broker, a topic of three partitions, transactions of ten records of 100 bytes whose keys are in
all of them: through a task's producer, and through a bare transactional producer of confluent-kafka,
in turns, after a turn of each that is not counted. The processor time is the process's, with that
of all its threads; ``--profile`` prints where that of the task's producer goes.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

# beside this file
from benchbroker import broker, create_topic, in_turns  # type: ignore[import-not-found]
from confluent_kafka import Producer
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord, TransactionBatch
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer

NAME, PARTITIONS = "small-transactions", 3
PATIENCE = 30.0
SIDES = ("batches", "librdkafka")


@dataclass(frozen=True)
class Cost:
    """Of one transaction, in milliseconds."""

    processor: float
    elapsed: float

    def __str__(self) -> str:
        return f"{self.processor:6.2f} ms of processor time, {self.elapsed:6.2f} ms elapsed"


def measure(
    bootstrap: str, side: str, turn: int, transactions: int, records: int, profile: Any
) -> Cost:
    """The mean of so many transactions of one producer, behind some that are not counted."""
    ours = side == "batches"
    each, end = (_ours if ours else _librdkafka)(bootstrap, f"{NAME}-{side}-{turn}", records)
    each(100)
    processor, elapsed = time.process_time(), time.perf_counter()
    with profile if ours else nullcontext():
        each(transactions)
    found = Cost(
        1000 * (time.process_time() - processor) / transactions,
        1000 * (time.perf_counter() - elapsed) / transactions,
    )
    end()
    return found


def _ours(
    bootstrap: str, id_: str, records: int
) -> tuple[Callable[[int], None], Callable[[], None]]:
    """Return the call that makes so many transactions of a task's producer, and the one that ends
    it.
    """
    producer = TaskProducer(
        Kafka({"bootstrap.servers": bootstrap}, timeout=PATIENCE), id_, timeout_ms=60_000
    )
    producer.initialise(PATIENCE)
    batch = TransactionBatch([ProducerRecord(NAME, *each) for each in _records(records)])

    def each(count: int) -> None:
        for _ in range(count):
            producer.begin()
            producer.send(batch)
            producer.commit(PATIENCE)

    return each, producer.discard


def _librdkafka(
    bootstrap: str, id_: str, records: int
) -> tuple[Callable[[int], None], Callable[[], None]]:
    """The same of confluent-kafka's producer."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": id_, "linger.ms": 0})
    producer.init_transactions(PATIENCE)

    def each(count: int) -> None:
        for _ in range(count):
            producer.begin_transaction()
            for key, value in _records(records):
                producer.produce(NAME, value, key)
            producer.commit_transaction(PATIENCE)

    return each, producer.purge


def _records(count: int) -> list[tuple[bytes, bytes]]:
    return [(b"key-%d" % n, b"x" * 100) for n in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--transactions", type=int, default=2000)
    parser.add_argument("--records", type=int, default=10)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    profile = cProfile.Profile() if given.profile else nullcontext()
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs, {given.records} records in "
        f"{PARTITIONS} partitions",
        flush=True,
    )
    with broker(NAME) as sandbox:
        create_topic(sandbox.bootstrap_servers, NAME, PARTITIONS)

        def one(side: str, turn: int) -> Cost:
            return measure(
                sandbox.bootstrap_servers, side, turn, given.transactions, given.records, profile
            )

        found = in_turns(given.sides.split(","), given.runs, one, str)
    for side, those in found.items():
        median = Cost(
            *(
                statistics.median(getattr(each, of) for each in those)
                for of in ("processor", "elapsed")
            )
        )
        print(f"{side:12} {median}")
    if isinstance(profile, cProfile.Profile):
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    main()
