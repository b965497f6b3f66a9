"""Records of inputs and output are taken by key or by sequence, and compared on Spark as in this
process.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from connectctl.ops.audit.field_extractor import BY_PARTITION, by_spec, sequence_spec
from connectctl.ops.audit.occurrences import KEYED, Occurrence, ReadSide, order
from connectctl.ops.audit.scan import PartitionRange
from connectctl.ops.jobs import audit, audit_inputs
from connectctl.ops.jobs.audit_inputs import Comparison, Keys
from connectctl.ops.jobs.audit_sequences import Wanted
from connectctl.ops.kafka.topic_partition import TopicPartition
from fakes.auditrows import Message, as_rows, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# PySpark leaves the socket open over which a frame comes in parts.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"
)
PLACE = TopicPartition("t", 0)


def counted(keys: Keys, *messages: Message) -> list[tuple[Any, ...]]:
    """Source, times, first and last offset of every row; records and those without a key at the
    end.
    """
    found = [*keys.take(PLACE, messages), *keys.rest()]
    return [
        (r.source, r.times, r.first_offset, r.last_offset) if r.source else (r.first, r.last)
        for r in found
    ]


def test_keys_are_counted_with_their_first_and_their_last_offset() -> None:
    messages = [Message(n, b"v", key) for n, key in enumerate((b"a", b"b", b"a", None, b"\xff"))]
    keys = Keys(by_spec("key"), ReadSide.OUTPUT)
    assert counted(keys, *messages) == [("a", 2, 0, 2), ("b", 1, 1, 1), ("0xff", 1, 4, 4), (5, 1)]


def test_whatever_names_a_record_may_stand_elsewhere() -> None:
    messages = [Message(n, json.dumps({"id": n // 2}).encode(), b"k") for n in range(3)]
    assert counted(Keys(by_spec("$.id"), ReadSide.OUTPUT), *messages) == [
        ("0", 2, 0, 1),
        ("1", 1, 2, 2),
        (3, 0),
    ]
    assert counted(Keys(BY_PARTITION, ReadSide.OUTPUT), *messages) == [("0", 3, 0, 2), (3, 0)]


def test_too_many_keys_are_handed_on_and_counted_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_inputs, "HELD", 1)
    keys = Keys(by_spec("key"), ReadSide.PROCESSED)
    first = list(keys.take(PLACE, [Message(0, b"", b"a"), Message(1, b"", b"b")]))
    second = [*keys.take(PLACE, [Message(2, b"", b"a")]), *keys.rest()]
    assert [(r.source, r.first_offset, r.side) for r in first] == [("a", 0, 1), ("b", 1, 1)]
    assert [(r.source, r.first_offset) for r in second] == [("a", 2), (None, -1)]
    assert second[-1].first == 3


def test_no_reader_has_two_ranges_of_one_partition() -> None:
    ranges = [PartitionRange("t", 0, n, n + 1, 9, 9, side=side) for n, side in enumerate((1, 1, 3))]
    ranges.append(PartitionRange("t", 1, 0, 9, 9, 9, side=1))
    found = [
        (side, [(each.partition, each.start) for each in some])
        for side, some in audit_inputs._rounds(ranges)
    ]
    assert found == [(1, [(0, 0), (1, 0)]), (1, [(0, 1)]), (3, [(0, 2)])]


def some_rows() -> list[Occurrence]:
    found = []
    for side, topic, numbers in (
        (0, "out", range(2, 45)),
        (1, "in", range(40)),
        (3, "in", range(40, 70)),
    ):
        found += [
            Occurrence(
                f"k{n % 50}", KEYED, side, topic, n % 2, n, KEYED, n, 1 + (n == 7 * side), 1000
            )
            for n in numbers
        ]
        found.append(Occurrence(None, 40, side, topic, 0, -1, 1, -1, 0, -1))
        if side in (0, 1):
            found.append(Occurrence("twice", KEYED, side, topic, 0, 90, KEYED, 92, 2 - side, 1000))
        found.append(Occurrence("s", 10 * side, side, topic, 0, 0, 25, 25 - 10 * side, 1, 1000))
    return found


@pytest.mark.parametrize("subset", [True, False])
def test_rows_are_compared_on_spark_as_here(
    spark: SparkSession, subset: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = Comparison(
        tuple(PartitionRange("t", n, 0, 9, 9, 9) for n in range(3)),
        Wanted(None, by_spec("key")),
        subset=subset,
    )
    frame = spark.createDataFrame([tuple(row) for row in some_rows()], audit_inputs.OCCURRENCES)
    monkeypatch.setattr(audit_inputs, "of_shares", lambda *args: frame.repartition(3))
    here = as_rows(comparison.matched(sorted(some_rows(), key=order)))
    there = rows(audit_inputs.compare_frame(spark, audit.Cluster({}, 1.0), comparison, 2, 1))
    assert there == here
    assert {row[3] for row in here if row[0] == "violation"} >= {"duplicate", "torn"} | (
        set() if subset else {"lost"}
    )


def test_a_comparison_reads_what_all_of_its_ranges_have() -> None:
    ranges = (PartitionRange("t", 0, 2, 9, 9, 9), PartitionRange("u", 0, 0, 3, 3, 3, side=1))
    assert Comparison(ranges, Wanted(sequence_spec("$.seq"))).size == 10
