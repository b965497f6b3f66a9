"""Which records of an input are processed follows from its group's committed offsets; unknown is
not none.
"""

from __future__ import annotations

from connectctl.ops.audit.input_partitions import InputPartition, as_json, input_partitions
from connectctl.ops.audit.occurrences import MatchTotals, ReadSide
from connectctl.ops.audit.scan import PartitionRange
from connectctl.ops.kafka.group_positions import GroupPositions
from connectctl.ops.kafka.topic_partition import TopicPartition

SPAN = PartitionRange("in", 0, 5, 20, 18, 21, whole=False)
PLACE = TopicPartition("in", 0)


def partition(before: int | None, after: int | None) -> InputPartition:
    positions = [
        GroupPositions({} if offset is None else {PLACE: offset}) for offset in (before, after)
    ]
    (found,) = input_partitions([SPAN], *positions)
    return found


def sides(found: InputPartition) -> list[tuple[ReadSide, int, int]]:
    return [(ReadSide(each.side), each.start, each.until) for each in found.ranges()]


def test_records_are_processed_below_the_offset_before_and_not_from_the_one_after_on() -> None:
    assert sides(partition(8, 12)) == [
        (ReadSide.PROCESSED, 5, 8),
        (ReadSide.PERHAPS, 8, 12),
        (ReadSide.BEYOND, 12, 18),
    ]
    assert sides(partition(12, 12)) == [(ReadSide.PROCESSED, 5, 12), (ReadSide.BEYOND, 12, 18)]
    assert sides(partition(12, 8)) == sides(partition(8, 12))  # a reset


def test_without_a_committed_offset_nothing_is_processed() -> None:
    spans = [SPAN, SPAN._replace(partition=1)]
    positions = GroupPositions({TopicPartition("in", 1): 8})
    found, _ = input_partitions(spans, positions, positions)
    assert (sides(found), found.committed, found.unknown) == (
        [(ReadSide.BEYOND, 5, 18)],
        None,
        None,
    )
    assert sides(partition(None, 12)) == [(ReadSide.PERHAPS, 5, 12), (ReadSide.BEYOND, 12, 18)]


def test_of_a_group_that_committed_nothing_at_all_nothing_is_known() -> None:
    found = partition(None, None)
    assert (sides(found), found.committed, found.unknown) == (
        [(ReadSide.PERHAPS, 5, 18)],
        None,
        None,
    )


def test_with_an_unknown_offset_nothing_is_known_to_be_processed_or_not() -> None:
    unknown = GroupPositions(unknown={PLACE: "why"})
    for positions in ((unknown, GroupPositions({PLACE: 8})), (GroupPositions({PLACE: 8}), unknown)):
        (found,) = input_partitions([SPAN], *positions)
        assert (sides(found), found.committed, found.unknown) == (
            [(ReadSide.PERHAPS, 5, 18)],
            None,
            "why",
        )


def test_an_offset_that_readers_do_not_get_to_is_said() -> None:
    found = partition(20, 20)
    assert sides(found) == [(ReadSide.PROCESSED, 5, 18)]
    assert "beyond the last stable offset 18" in str(found.hidden)
    again = partition(30, 30)
    assert sides(again) == [(ReadSide.PERHAPS, 5, 18)]
    assert "deleted and created again" in str(again.unknown)


def test_removed_records_below_the_offset_are_not_read() -> None:
    assert sides(partition(2, 2)) == [(ReadSide.BEYOND, 5, 18)]


def test_json_tells_unknown_from_none() -> None:
    totals = MatchTotals(
        missing=4, reads={("in", 0, 1): [7, 0], ("in", 0, 2): [1, 0], ("in", 0, 3): [2, 0]}
    )
    unknown = InputPartition(SPAN, 5, 18, unknown="why")
    rows = [partition(12, 12), partition(None, None), unknown]
    data = as_json("g", False, rows, totals)
    assert [(row["state"], row["committedOffset"]) for row in data["partitions"]] == [
        ("committed", 12),
        ("none", None),
        ("unknown", None),
    ]
    assert (data["processed"], data["notYetProcessed"], data["unknown"], data["missing"]) == (
        21,
        6,
        3,
        4,
    )
