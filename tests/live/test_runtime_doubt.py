"""A commit that the network held back: what it does to a task that goes on, and that the kernel
does not.

Under transaction version 1 it may arrive in the middle of the next transaction of the same epoch,
and commits what is there of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from connectctl.ops.clients.kafka_protocol import batch_producer
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import Unreachable
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason, TransactionBatch
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer, UnknownOutcome
from fakes.faultproxy import ADD_PARTITIONS, END_TXN, PRODUCE, Fault, FaultProxy
from live.numbersource import Numbers, Place
from live.real import eventually
from otherbrokers import VERSION_2

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live

QUICK = {"socket.timeout.ms": 1500}


@pytest.fixture
def proxy(cluster: Sandbox) -> Iterator[FaultProxy]:
    proxy = FaultProxy(cluster.bootstrap_servers)
    yield proxy
    proxy.close()


class Careless(TaskProducer):
    """Goes on with the same epoch after a commit that nobody answered, lets that commit arrive in
    the middle of the next transaction, and is killed a moment later.
    """

    fault: Fault
    is_committed: Callable[[], bool]

    def send(self, batch: TransactionBatch) -> None:
        if not self.fault.caught.is_set() or self.fault.delivered.is_set():
            return super().send(batch)
        super().send(TransactionBatch(records=batch.records[: len(batch.records) // 2]))
        self._send(everything=True)
        self._producer.flush()
        self.fault.release()
        eventually(self.is_committed)
        self._is_open = False  # who is killed aborts nothing
        raise KeyboardInterrupt

    def commit(self, patience: float) -> None:
        with suppress(UnknownOutcome, Unreachable):
            super().commit(patience)


class EvenNumbers(Numbers):
    """With records one by one, so that a step can be cut in two."""

    def batch(self) -> TransactionBatch | None:
        step = super().batch()
        if step is None or step.records:
            return step
        from connectctl.ops.task_runtime.spi.transaction_batch import ProducerRecord

        records = [
            ProducerRecord(bulk.topic, None, m["value"])
            for bulk in step.record_batches
            for m in bulk.messages
        ]
        return TransactionBatch(records=records, offsets=step.offsets)


def test_a_producer_that_is_used_on_after_a_late_commit_tears_a_transaction(
    cluster: Sandbox, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_producer, "has_version_2", lambda wire: False)
    place = Place(cluster)
    fault = proxy.hold(END_TXN)
    kafka = Kafka({"bootstrap.servers": proxy.bootstrap}, timeout=30)

    def is_committed() -> bool:
        return not place.kafka.image([place.topic], patience=1)[place.topic].held_back

    def open_producer() -> Careless:
        handle = Careless(kafka, f"g-{place.connector}-0", timeout_ms=30_000, properties=QUICK)
        handle.fault, handle.is_committed = fault, is_committed
        return handle

    with pytest.raises(KeyboardInterrupt):
        place.kernel(open_producer=open_producer).run(EvenNumbers(place, 40))
    place.kernel().run(EvenNumbers(place, 40))
    twice = [n for n in set(place.seen()) if place.seen().count(n) > 1]
    assert twice, "the torn half of a transaction should be visible"


@pytest.mark.parametrize(
    ("api", "new", "doubts"),
    [
        (PRODUCE, True, 1),
        (PRODUCE, False, 1),
        (ADD_PARTITIONS, False, 1),
        (END_TXN, True, 0),
        (END_TXN, False, 1),
    ],
)
def test_a_producer_of_batches_loses_and_repeats_nothing_whatever_was_held_back_and_what_comes_late_finds_nothing(
    cluster: Sandbox,
    proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
    api: int,
    new: bool,
    doubts: int,
) -> None:
    """Under transaction version 2 (``new``) a commit is repeated, and answered; else what was held
    back is a doubt.
    """
    if new and not VERSION_2:
        pytest.skip("the brokers of this run do not have transaction version 2")
    if not new:
        monkeypatch.setattr(batch_producer, "has_version_2", lambda wire: False)
    place = Place(cluster)
    fault = proxy.hold(api)

    class Late(TaskProducer):
        """The held request arrives behind the first commit of the next instance."""

        def commit(self, patience: float) -> None:
            super().commit(patience)
            if fault.caught.is_set() and not fault.delivered.is_set():
                fault.release()

    kafka = Kafka({"bootstrap.servers": proxy.bootstrap}, timeout=30)

    def open_producer() -> TaskProducer:
        return Late(kafka, f"g-{place.connector}-0", timeout_ms=30_000, properties=QUICK)

    ended = place.kernel(open_producer=open_producer).run(Numbers(place, 60))
    assert (ended.reason, fault.delivered.is_set()) == (EndReason.ENDED, True)
    assert len(ended.stats.doubts) == doubts
    assert place.seen() == list(range(60))
    assert place.stored() == {"next": 60}
