"""Coordinators leave the partitions out that a principal may not see: an open transaction has one
at least.
"""

from __future__ import annotations

from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.kafka.transactions import Transaction
from connectctl.ops.operations.transactions.listing import hidden_topics


def test_an_open_transaction_without_partitions_has_some_that_may_not_be_seen() -> None:
    (gap,) = hidden_topics(Transaction("id", "Ongoing", 1, 0))
    assert (gap.subject, str(gap.right)) == ("partitions of id", "Describe on Topic *")


def test_nothing_is_hidden_of_one_that_shows_its_partitions_or_is_being_ended() -> None:
    assert (
        hidden_topics(Transaction("id", "Ongoing", 1, 0, partitions=(TopicPartition("t", 0),)))
        == ()
    )
    assert hidden_topics(Transaction("id", "PrepareCommit", 1, 0)) == ()
    assert hidden_topics(Transaction("id", "Empty", 1, 0)) == ()
