"""Which consumer groups' offsets an open transaction holds."""

from __future__ import annotations

from connectctl.ops.connect.transactional_ids import TransactionalIdIndex
from connectctl.ops.kafka.error_handling import Code
from connectctl.ops.kafka.partitioner import coordinator_partition
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import PartitionProducer, Transaction
from connectctl.ops.operations.transactions.listing import (
    PendingOffsets,
    owned,
    pending_offsets,
    with_pending,
)
from fakes.coordinators import FakeCoordinators
from fakes.groupoffsets import FakeGroupOffsets

COUNT = 50
PLACES = (TopicPartition("in", 0), TopicPartition("in", 1))


def holds(id_: str, group: str, state: str = "Ongoing") -> Transaction:
    """A transaction to which offsets of ``group`` were added."""
    where = TopicPartition("__consumer_offsets", coordinator_partition(group, COUNT))
    return Transaction(id_, state, 1, 0, started_ms=1, partitions=(TopicPartition("out", 0), where))


def worlds() -> tuple[FakeCoordinators, FakeGroupOffsets]:
    topic: dict[TopicPartition, tuple[PartitionProducer, ...] | Code] = {
        TopicPartition("__consumer_offsets", n): () for n in range(COUNT)
    }
    offsets = {name: dict.fromkeys(PLACES, 5) for name in ("waits", "rests", "hidden")}
    pending = {"waits", "hidden"}
    return FakeCoordinators(partitions=topic), FakeGroupOffsets(
        offsets, hidden={"hidden"}, pending_groups=pending
    )


def test_an_open_transaction_holds_the_pending_offsets_of_the_groups_of_its_offsets_partition() -> (
    None
):
    calls, groups = worlds()
    some = [
        holds("a", "waits"),
        holds("b", "rests"),
        holds("c", "hidden"),
        holds("d", "waits", "CompleteCommit"),
    ]
    assert pending_offsets(calls, groups, some) == {"a": (PendingOffsets("waits", PLACES),)}


def test_where_several_may_hold_them_each_is_named() -> None:
    calls, groups = worlds()
    found = pending_offsets(
        calls, groups, [holds("a", "waits"), holds("b", "waits", "PrepareCommit")]
    )
    assert set(found) == {"a", "b"}
    assert str(found["a"][0]) == "waits: in-0, in-1"


def test_groups_are_not_asked_where_no_transaction_holds_offsets() -> None:
    calls, groups = worlds()
    groups.names = lambda: 1 / 0  # type: ignore[method-assign,assignment,return-value]
    assert (
        pending_offsets(calls, groups, [Transaction("a", "Ongoing", 1, 0, partitions=PLACES)]) == {}
    )


def test_a_listed_transaction_tells_scripts_what_it_holds() -> None:
    calls, groups = worlds()
    (shown,) = with_pending(calls, groups, [owned(holds("a", "waits"), TransactionalIdIndex({}))])
    places = [{"topic": "in", "partition": n} for n in (0, 1)]
    assert shown.as_json(1.0)["pendingOffsets"] == [{"groupId": "waits", "topicPartitions": places}]
