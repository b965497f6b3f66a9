"""The records of a connector in one topic: which of them counts, and what an open transaction
hides.
"""

from __future__ import annotations

from connectctl.ops.connect.last_commit import Side
from connectctl.ops.kafka.partitioner import java_partition
from connectctl.ops.kafka.records import UnreadTail
from connectctl.ops.operations.offsets.topic_state import topic_state
from fakes.offsettopics import NOW, PARTITIONS, places, raw, record, topic

A, OLD = ["c", {"t": "a"}], {"lsn": 1}


def test_what_an_open_transaction_hides_is_a_problem_and_not_nothing() -> None:
    found = topic_state(topic("global", "global", held=(UnreadTail(3, 5, 9),)), "c")
    assert found.problem == "an open transaction blocks reading global-3 to its end"


def test_the_record_that_counts_is_the_one_on_its_own_partition_else_the_newest() -> None:
    home = java_partition(raw(A) or b"", PARTITIONS)
    strays = [record(A, OLD, partition=(home + n) % PARTITIONS, at=NOW - n) for n in (1, 2)]
    (at,) = places(strays)
    assert at.record(raw(A) or b"") == strays[0]
    (at,) = places([*strays, record(A, None, at=0)])
    assert at.value(raw(A) or b"") is None
    assert at.live(raw(A) or b"")
    assert at.side is Side.GLOBAL
