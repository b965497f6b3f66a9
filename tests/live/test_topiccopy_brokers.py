"""Three brokers of which any one dies or hands its leaders over: what is copied meanwhile is there
once, in order.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from connectctl.ops.task_runtime.spi.metrics import copy_metrics
from depth import deep
from live.campaignbroker import Broker, own_broker
from live.copying import Copy
from live.real import create_topic, eventually
from live.threebrokers import dying

pytestmark = pytest.mark.live
LEAST_KILLS, LEAST_RECORDS, PARTITIONS = deep(3, 2), deep(5_000, 2_000), 4


@pytest.fixture(scope="module")
def three() -> Iterator[Broker]:
    with own_broker(3) as broker:
        yield broker


def copy_of(three: Broker) -> tuple[Copy, str]:
    """A copy of a topic with three replicas, and its offsets topic."""
    copy = Copy(
        three.sandbox, 1, {"copy.batches": "unopened", "replication.factor": "3", "tasks.max": "2"}
    )
    copy.topic = create_topic(
        three.bootstrap, f"{copy.name}-three", PARTITIONS, "delete", replicas=3
    )
    copy.remote = f"east.{copy.topic}"
    copy.config["topics"] = copy.topic
    return copy, create_topic(three.bootstrap, f"{copy.name}-offsets", 3, replicas=3)


class Writing:
    """Writes to all partitions until it is to end."""

    def __init__(self, bootstrap: str, topic: str):
        often = {"linger.ms": 10, "topic.metadata.refresh.interval.ms": 500}
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True} | often
        )
        self._topic, self._over = topic, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.partitions, self.written = PARTITIONS, 0

    def _run(self) -> None:
        while not self._over.wait(0.1):
            for _ in range(50):
                self._write()
            self._producer.poll(0)
        assert self._producer.flush(300) == 0

    def _write(self) -> None:
        number = self.written
        while True:
            try:
                self._producer.produce(
                    self._topic, b"%d" % number, b"key", number % self.partitions
                )
                break
            except (
                BufferError,
                KafkaException,
            ) as e:  # its queue is full, or it does not know a new partition yet
                if isinstance(e, KafkaException) and e.args[0].name() != "_UNKNOWN_PARTITION":
                    raise
                self._producer.poll(0.1)
        self.written += 1

    def __enter__(self) -> Writing:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        self._thread.join()


def test_whatever_broker_dies_each_record_is_copied_once_and_in_order(three: Broker) -> None:
    copy, offsets = copy_of(three)
    tasks = copy.start()
    doubts = unopened = 0
    with (
        Writing(three.bootstrap, copy.topic) as writing,
        dying(three, secrets.randbits(32), 2.0) as killed,
    ):
        while (kills := killed()) < LEAST_KILLS or writing.written < LEAST_RECORDS:
            for ended in copy.run_here(offsets, tasks):
                doubts += len(ended.stats.doubts)
                unopened += int(copy_metrics(ended.stats.meter)["copy-batch-unopened-total"] or 0)
    copy.run_here(offsets, tasks)
    found = copy.seen(copy.remote)
    print(f"{writing.written} records, {kills} kills, {doubts} doubts, {unopened} batches unopened")
    assert unopened > 0
    assert sum(map(len, found)) == writing.written
    assert found == copy.seen(copy.topic)


def test_leaders_that_move_and_partitions_that_are_added_lose_nothing(three: Broker) -> None:
    copy, offsets = copy_of(three)
    admin, more = AdminClient({"bootstrap.servers": three.bootstrap}), PARTITIONS + 3
    with Writing(three.bootstrap, copy.topic) as writing:
        for number in range(1, three.count + 1):
            copy.run_here(offsets, copy.start())
            three.restart(number)  # which hands its leaders over first
            if number == 1:
                admin.create_partitions([NewPartitions(copy.topic, more)])[copy.topic].result()
                eventually(
                    lambda: (
                        len(admin.list_topics(copy.topic, 30).topics[copy.topic].partitions) == more
                    )
                )
                writing.partitions = more
    copy.run_here(offsets, copy.start())
    found = copy.seen(copy.remote)
    assert [bool(each) for each in found] == [True] * more
    assert sum(map(len, found)) == writing.written
    assert found == copy.seen(copy.topic)
