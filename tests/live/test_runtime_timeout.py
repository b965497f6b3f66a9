"""A transaction that is open for longer than its time-out, on a real broker: sent again, or told
with what can be done.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from connectctl.ops.clients.kafka_protocol import batch_sender
from connectctl.ops.clients.kafka_protocol.transactions import TransactionClient
from connectctl.ops.clients.librdkafka.client import Kafka
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.task_runtime.dataframe.partition_slices import FrameColumns
from connectctl.ops.task_runtime.dataframe.source import DataFrameRows
from connectctl.ops.task_runtime.spi.transaction_batch import (
    EndReason,
    RecordLists,
    TaskStats,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task import transactional_producer
from connectctl.ops.task_runtime.task.progress import TaskProgress
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer
from fakes.faultproxy import FaultProxy
from live.numbersource import Numbers, Place
from live.real import eventually

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live


@pytest.fixture
def place(cluster: Sandbox) -> Place:
    return Place(cluster)


@pytest.fixture(autouse=True)
def begins_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer of batches keeps small transactions to itself until their commit: then they have
    no time to run out.
    """
    monkeypatch.setattr(transactional_producer, "BUFFER_BYTES", 0)
    monkeypatch.setattr(batch_sender, "OPENING_BYTES", 0)


@pytest.fixture
def calls(cluster: Sandbox) -> Iterator[TransactionClient]:
    made = TransactionClient({"bootstrap.servers": cluster.bootstrap_servers}, timeout=120)
    yield made
    made.close()


@pytest.mark.parametrize(("more", "most"), [(False, 2), (True, 3)])
def test_the_coordinator_ends_it_and_the_task_sends_it_again_or_says_what_can_be_done(
    place: Place, calls: TransactionClient, monkeypatch: pytest.MonkeyPatch, more: bool, most: int
) -> None:
    monkeypatch.setattr("connectctl.ops.task_runtime.task.attempt_loop.MOST_EXPIRED", most)
    slow, later = [True], [0.0]
    id_ = f"g-{place.connector}-0"

    def over() -> bool:
        found = calls.describe([id_])[id_]
        return isinstance(found, Transaction) and found.state == "CompleteAbort"

    class Slow(Numbers):
        """Its second batch comes when the transaction of the first is over, ``more`` or only its
        end.
        """

        def batch(self) -> TransactionBatch | None:
            step = super().batch()
            if step is None or not slow or self._next != 20:
                return (
                    step
                    if step is None or not slow
                    else TransactionBatch(
                        record_batches=[RecordLists(place.topic, [b"0"])], more=True
                    )
                )
            eventually(over)
            later.append(1000.0)  # than a task waits for brokers that are in its way for a while
            if more:
                slow.clear()
            return step if more else TransactionBatch(offsets=step.offsets)

    progress = TaskProgress(now=lambda: time.monotonic() + sum(later))
    kernel = place.kernel(
        open_producer=lambda: TaskProducer(place.kafka, id_, timeout_ms=1000),
        stats=TaskStats(progress=progress),
    )
    if more:
        ended = kernel.run(Slow(place, 20))
        assert (ended.reason, ended.stats.instances, place.seen()) == (
            EndReason.ENDED,
            2,
            list(range(20)),
        )
        return
    with pytest.raises(
        ConnectctlError, match=r"longer than transaction\.timeout\.ms of 1 s"
    ) as caught:
        kernel.run(Slow(place, 20))
    for remedy in (
        "transaction.timeout.ms",
        "fewer records",
        "transaction.boundary=poll",
        "interval.ms",
    ):
        assert remedy in str(caught.value)
    assert place.seen() == []
    assert place.stored() is None


def test_on_a_slow_way_to_the_brokers_transactions_are_cut_before_their_time_is_up(
    cluster: Sandbox,
) -> None:
    """20 MB at 4 MB/s as one transaction would take 5 s of the 3 s that it has."""
    place = Place(cluster)
    proxy = FaultProxy(cluster.bootstrap_servers)
    proxy.rate = 4e6
    slow = Kafka({"bootstrap.servers": proxy.bootstrap}, timeout=30)
    count = 20_000
    rows = pa.RecordBatch.from_pydict(
        {
            "file": [1] * count,
            "id": range(count),
            "value": [f"{n}".ljust(1000) for n in range(count)],
        }
    )
    supply = DataFrameRows(
        [rows], place.connector, place.topic, FrameColumns(("file",), "id"), count, timeout=3
    )
    ended = place.kernel(
        open_producer=lambda: TaskProducer(slow, f"g-{place.connector}-0", timeout_ms=3000)
    ).run(supply)
    proxy.close()
    assert (ended.reason, ended.stats.records) == (EndReason.ENDED, count)
    assert ended.stats.largest < count * 0.7
    assert place.seen() == list(range(count))
    assert place.stored() == {"id": count - 1}
