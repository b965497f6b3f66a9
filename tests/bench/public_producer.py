"""``connectctl.producer`` beside confluent-kafka's ``Producer``: transactions of a second each, on
the same broker.

    python tests/bench/public_producer.py [--seconds 4] [--runs 5] [--size 100] [--partitions 3]

One broker, one topic, records of 100 bytes without keys, produced by one thread as fast as it can,
a transaction for each second. The sides take turns, each in a process of its own, after a turn of
each that is not counted:

- confluent-kafka: its transactional producer, with ``linger.ms`` 20 and a queue of a million;
  ``poll(0.01)`` where it is full
- ours: ``connectctl.producer``
- ours, callbacks: the same with ``on_delivery`` for each record

Records/s of a turn are those that it committed, by the time from its first ``produce`` to the end
of its last commit. The topic's committed records are counted behind each turn, and are exactly
those. Prints medians and their ratio.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from benchbroker import broker, committed, create_topic, delete_topic, in_turns, medians  # type: ignore[import-not-found]
from confluent_kafka import Producer
from connectctl.producer import TransactionalProducer

if TYPE_CHECKING:
    from connectctl.ops.sandbox import cluster

NAME = "public-producer"
CONFLUENT, OURS, CALLBACKS = SIDES = ("confluent-kafka", "ours", "ours, callbacks")
TRANSACTION = 1.0
LOOK = 256
"""Records between two looks at the clock."""


@dataclass(frozen=True)
class Turn:
    """What a side committed, in how many seconds, and the CPU time of its process."""

    records: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        return self.records / self.seconds

    def __str__(self) -> str:
        return (
            f"{self.rate:9,.0f} records/s, {self.records:,} records, "
            f"{self.cpu / self.seconds:.2f} CPUs"
        )


def produced(side: str, bootstrap: str, topic: str, seconds: float, size: int, answer: Any) -> None:
    """Produce for so many seconds; gives a ``Turn``."""
    value, reports = b"x" * size, [0]
    given = {"bootstrap.servers": bootstrap, "transactional.id": topic}

    def told(error: Any, _: Any) -> None:
        assert error is None, error
        reports[0] += 1

    if side == CONFLUENT:
        made: Any = Producer(given | {"linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
        one: Callable[[], None] = _patient(made, topic, value)
    else:
        made = TransactionalProducer(given)
        more = {"on_delivery": told} if side == CALLBACKS else {}
        produce = made.produce

        def one() -> None:
            produce(topic, value, **more)

    made.init_transactions(60)
    records, began, cpu = 0, time.monotonic(), time.process_time()
    while (start := time.monotonic()) < began + seconds:
        made.begin_transaction()
        while time.monotonic() - start < TRANSACTION:
            for _ in range(LOOK):
                one()
            records += LOOK
        made.commit_transaction()
    answer.put(Turn(records, time.monotonic() - began, time.process_time() - cpu))
    assert reports[0] == (records if side == CALLBACKS else 0)


def _patient(made: Any, topic: str, value: bytes) -> Callable[[], None]:
    produce = made.produce

    def one() -> None:
        while True:
            try:
                produce(topic, value)
                return
            except BufferError:
                made.poll(0.01)

    return one


def measured(sandbox: cluster.Sandbox, side: str, turn: int, given: argparse.Namespace) -> Turn:
    """One turn of a side, whose records are counted."""
    bootstrap, topic = sandbox.bootstrap_servers, f"public-{SIDES.index(side)}-{turn}"
    create_topic(bootstrap, topic, given.partitions)
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    seconds = given.seconds if turn else 2 * TRANSACTION
    process = context.Process(
        target=produced, args=(side, bootstrap, topic, seconds, given.size, answer)
    )
    process.start()
    found: Turn = answer.get(timeout=120)
    process.join(60)
    assert process.exitcode == 0, f"{side} ended with {process.exitcode}"
    there = sum(1 for _ in committed(bootstrap, topic, given.partitions))
    assert there == found.records, f"{topic} has {there} records of {found.records}"
    delete_topic(bootstrap, topic)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=3)
    given = parser.parse_args()
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs, {given.size} bytes, "
        f"{given.partitions} partitions",
        flush=True,
    )
    with broker(NAME) as sandbox:
        found = in_turns(
            SIDES, given.runs, lambda side, turn: measured(sandbox, side, turn, given), str
        )
    rates = medians({side: [each.rate for each in turns] for side, turns in found.items()})
    for side, rate in rates.items():
        print(f"{side:16} {rate:9,.0f} records/s, {rate / rates[CONFLUENT]:.2f} x {CONFLUENT}")


if __name__ == "__main__":
    main()
