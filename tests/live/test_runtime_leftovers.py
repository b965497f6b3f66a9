"""A transaction that a broker has forgotten (KAFKA-20734), in a partition to which the same task is
about to write.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from connectctl.ops.core.errors import TimedOut
from connectctl.ops.operations.transactions.hanging import search
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from live.campaignbroker import Broker, own_broker
from live.numbersource import Numbers, Place
from live.oracle import in_order
from live.rawproducer import RawProducers
from live.real import eventually

pytestmark = pytest.mark.live


class Blind(AttemptLoop):
    """Writes wherever its records go."""

    def check_topics(self, producer: object, topics: set[str]) -> None:
        pass


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with own_broker() as broker:
        yield broker


@pytest.fixture
def place(broker: Broker) -> Iterator[Place]:
    """A place whose task has left something open, in every partition of its topic."""
    place = Place(broker.sandbox)
    raw = RawProducers(broker.bootstrap)
    id_ = f"g-{place.connector}-0"
    try:
        raw.init([id_])
        verify_transactions(broker, False)
        for partition in range(3):
            eventually(lambda partition=partition: written_behind(raw, id_, place.topic, partition))  # type: ignore[misc]
        verify_transactions(broker, True)
        yield place
    finally:
        raw.close()


def written_behind(raw: RawProducers, id_: str, topic: str, partition: int) -> bool:
    """Whether the broker took a record of a transaction of which no coordinator knows: a setting
    takes a moment.
    """
    with suppress(AssertionError):
        raw.write_behind(id_, topic, partition)
        return True
    return False


def verify_transactions(broker: Broker, wanted: bool) -> None:
    """Whether the broker asks coordinators before it takes records of a transaction; else any can
    be made to hang.
    """
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    name = "transaction.partition.verification.enable"
    entry = ConfigEntry(name, str(wanted).lower(), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result()


def visible(place: Place) -> list[bytes]:
    """What a reader with read_committed gets to see, whatever holds it back."""
    image = place.kafka.image([place.topic], patience=0, superseded=True)[place.topic]
    return [record.value or b"" for record in in_order(image)]


def test_a_task_that_wrote_there_would_commit_what_was_never_committed(place: Place) -> None:
    ledger = SourceOffsetsLedger(place.offsets, place.store())
    assert Blind(place.handle, ledger).run(Numbers(place, 40)).reason is EndReason.ENDED
    assert b"ghost" in visible(place), (
        "should a commit leave alone what older epochs left? Then the look is needless"
    )


def test_a_task_writes_nothing_there_says_what_is_in_its_way_and_goes_on_when_that_has_ended(
    place: Place,
) -> None:
    with pytest.raises(TimedOut) as told:
        place.kernel(patience=2.0).run(Numbers(place, 40))
    assert f"is open on {place.topic}-0 from offset 0" in str(told.value.why)
    assert "connectctl transactions hanging" in str(told.value.why)
    assert visible(place) == []
    raw = RawProducers(place.kafka.bootstrap)
    try:
        for found in search(raw.calls, [place.topic], {}).found:
            raw.calls.mark(found.topic_partition, found.producer, commit=False)
    finally:
        raw.close()
    assert place.kernel().run(Numbers(place, 40)).stats.records == 40
    assert place.seen() == list(range(40))
