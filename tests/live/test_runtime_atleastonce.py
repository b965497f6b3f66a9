"""A task without exactly-once on a real broker: nothing is lost, and offsets never run ahead of
records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.transaction_batch import (
    EndReason,
    ProducerRecord,
    RecordLists,
    TaskResult,
    TaskStats,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.at_least_once import FlushBoundaries, IdempotentProducer
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from connectctl.ops.task_runtime.task.polled_source import PolledSource
from live.numbersource import Place
from live.sequenced import Connector, Own, Sequenced

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox

pytestmark = pytest.mark.live


@pytest.fixture
def place(cluster: Sandbox) -> Place:
    return Place(cluster)


def handle(place: Place) -> IdempotentProducer:
    return IdempotentProducer(place.kafka, f"g-{place.connector}-0", timeout_ms=15_000)


def run(
    place: Place, last: int, interval: float = 60.0, kind: type[Sequenced] = Sequenced
) -> TaskResult:
    """A task that counts to ``last`` from where it is stored to be; what is stored are flushes,
    ``interval`` s apart.
    """
    configs = {"topic": place.topic, "last": str(last), "sources": "a", "own": place.offsets}
    counts = TaskStats()
    flushes = lambda: FlushBoundaries(interval)  # noqa: E731  # as a supply takes it
    supply = PolledSource(kind, place.connector, configs, flushes, converters({}), "", counts.meter)
    try:
        return AttemptLoop(
            lambda: handle(place),
            SourceOffsetsLedger(place.offsets, place.store()),
            patience=60,
            stats=counts,
        ).run(supply)
    finally:
        supply.close()


def test_every_record_is_there_and_offsets_are_flushed_once_at_the_end(place: Place) -> None:
    connector = Connector(place)
    ended = run(place, 100)
    assert (ended.reason, ended.stats.records) == (EndReason.ENDED, 100)
    assert connector.numbers() == list(range(100))
    assert connector.history(place.offsets) == [100]


def test_with_a_short_interval_there_is_a_flush_behind_every_batch_and_the_next_run_goes_on(
    place: Place,
) -> None:
    connector = Connector(place)
    run(place, 50, interval=0.0)
    assert connector.history(place.offsets) == [*range(7, 50, 7), 50]
    run(place, 60)
    assert connector.numbers() == list(range(60))


def test_an_exactly_once_run_goes_on_from_its_offsets_and_the_other_way_round(place: Place) -> None:
    connector = Connector(place)
    connector.run(30)
    run(place, 60)
    connector.run(90)
    assert connector.numbers() == list(range(90))


def test_a_task_may_write_to_its_own_offsets_topic(place: Place) -> None:
    assert run(place, 7, kind=Own).reason is EndReason.ENDED


@pytest.mark.parametrize("bulk", [False, True])
def test_a_record_that_no_broker_takes_ends_it_before_any_offset_is_written(
    place: Place, bulk: bool
) -> None:
    made = handle(place)
    large = bytes(3_000_000)
    step = (
        TransactionBatch(record_batches=[RecordLists(place.topic, [large])])
        if bulk
        else TransactionBatch([ProducerRecord(place.topic, None, large)])
    )
    made.begin()
    with pytest.raises(ConnectctlError, match="write its records"):
        made.send(step)
    made.discard()
