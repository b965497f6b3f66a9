"""Records of inputs and output are compared by how often each occurs, with keys and with numbers of
a sequence.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from connectctl.ops.audit.occurrences import (
    KEYED,
    Matching,
    MatchTotals,
    Occurrence,
    ReadSide,
    order,
)
from connectctl.ops.audit.sequences import Read, SourceTotals
from connectctl.ops.audit.violations import Violation
from connectctl.ops.kafka.topic_partition import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

TOPICS = {ReadSide.OUTPUT: "out"}


def row(
    source: str, side: ReadSide, offset: int, first: int = KEYED, last: int = KEYED, times: int = 1
) -> Occurrence:
    end = offset + (times - 1 if first == KEYED else last - first)
    return Occurrence(
        source, first, side, TOPICS.get(side, "in"), 0, offset, last, end, times, 1000
    )


def swept(*rows: Occurrence, **how: bool) -> list[Any]:
    return list(Matching(**how).sweep(sorted(rows, key=order)))


def wrong(*rows: Occurrence, **how: bool) -> list[tuple[Any, ...]]:
    """Kind, source, topic, offset, counterpart's offset, first and last number and records of what
    is wrong.
    """
    found = [each for each in swept(*rows, **how) if isinstance(each, Violation)]
    return [
        (v.kind, v.source, v.topic, v.offset, v.other, v.first, v.last, v.records) for v in found
    ]


def test_keys_that_occur_as_often_are_right_and_only_counted() -> None:
    found = swept(
        row("a", ReadSide.PROCESSED, 3, times=2),
        row("a", ReadSide.OUTPUT, 5, times=2),
        row("b", ReadSide.PROCESSED, 7),
        row("b", ReadSide.OUTPUT, 9),
    )
    assert found == [MatchTotals(clean=2)]


def test_a_missing_and_a_duplicate_key_are_named_by_where_they_are() -> None:
    rows = [
        row("gone", ReadSide.PROCESSED, 3),
        row("twice", ReadSide.PROCESSED, 4),
        row("twice", ReadSide.OUTPUT, 8),
        row("twice", ReadSide.OUTPUT, 11),
    ]
    lost = ("lost", "gone", "in", 3, -1, KEYED, KEYED, 1)
    duplicate = ("duplicate", "twice", "out", 11, 8, KEYED, KEYED, 1)
    assert wrong(*rows) == [lost, duplicate]
    assert wrong(*rows, subset=True) == [duplicate]


def test_both_copies_in_one_row_are_its_first_and_its_last_record() -> None:
    rows = [row("a", ReadSide.PROCESSED, 4), row("a", ReadSide.OUTPUT, 8, times=3)]
    assert wrong(*rows) == [("duplicate", "a", "out", 10, 8, KEYED, KEYED, 2)]


def test_what_the_group_has_not_processed_is_not_missing_and_its_output_is_ahead_of_the_group() -> (
    None
):
    assert wrong(row("later", ReadSide.BEYOND, 3)) == []
    rows = [row("later", ReadSide.BEYOND, 3), row("later", ReadSide.OUTPUT, 5)]
    assert wrong(*rows) == [("torn", "later", "out", 5, 3, KEYED, KEYED, 1)]


@pytest.mark.parametrize("times", [0, 1])
def test_what_was_processed_during_the_audit_may_be_in_the_output_or_not(times: int) -> None:
    outputs = [row("a", ReadSide.OUTPUT, 5)] * times
    assert wrong(row("a", ReadSide.PERHAPS, 3), *outputs) == []


def test_what_was_processed_during_the_audit_is_not_in_the_output_twice() -> None:
    rows = [row("a", ReadSide.PERHAPS, 3), row("a", ReadSide.OUTPUT, 5, times=2)]
    assert [found[0] for found in wrong(*rows)] == ["duplicate"]


def test_an_output_without_an_input_proves_nothing() -> None:
    assert wrong(row("x", ReadSide.OUTPUT, 5)) == [
        ("unmatched", "x", "out", 5, -1, KEYED, KEYED, 1)
    ]


def test_where_records_were_removed_a_difference_proves_nothing() -> None:
    more = [row("a", ReadSide.PROCESSED, 3), row("a", ReadSide.OUTPUT, 5, times=2)]
    assert [found[0] for found in wrong(*more, inputs_whole=False)] == ["unmatched"]
    fewer = [row("a", ReadSide.PROCESSED, 3)]
    assert [found[0] for found in wrong(*fewer, output_whole=False)] == ["unmatched"]
    assert [found[0] for found in wrong(*fewer, inputs_whole=False)] == ["lost"]


def test_numbers_are_compared_where_runs_overlap() -> None:
    found = wrong(
        row("s", ReadSide.PROCESSED, 100, 0, 19),
        row("s", ReadSide.BEYOND, 120, 20, 29),
        row("s", ReadSide.OUTPUT, 0, 0, 9),
        row("s", ReadSide.OUTPUT, 10, 8, 12),
        row("s", ReadSide.OUTPUT, 15, 15, 21),
    )
    assert found == [
        ("duplicate", "s", "out", 10, 8, 8, 9, 2),
        ("lost", "s", "in", 113, -1, 13, 14, 2),
        ("torn", "s", "out", 20, 120, 20, 21, 2),
    ]


def test_a_sequence_has_its_totals_and_places_have_theirs() -> None:
    def counted(side: ReadSide, records: int, without: int) -> Occurrence:
        return Occurrence(None, records, side, TOPICS.get(side, "in"), 0, -1, without, -1, 0, -1)

    found = swept(
        counted(ReadSide.OUTPUT, 3, 1),
        counted(ReadSide.PROCESSED, 4, 2),
        counted(ReadSide.BEYOND, 5, 0),
        row("s", ReadSide.PROCESSED, 0, 1, 2),
        row("s", ReadSide.OUTPUT, 0, 1, 2),
    )
    totals = MatchTotals(reads={("in", 0, 1): [4, 2], ("in", 0, 3): [5, 0]})
    assert found == [SourceTotals("", "s", 2, lowest=1, highest=2), Read("out", 0, 3, 1), totals]
    assert (
        totals.unidentified,
        totals.processed,
        totals.read(TopicPartition("in", 0), ReadSide.BEYOND),
    ) == (2, 4, 5)
    twice = MatchTotals(clean=1)
    for _ in range(2):
        twice.merge(totals.as_row())
    assert twice == MatchTotals(1, 0, {("in", 0, 1): [8, 4], ("in", 0, 3): [10, 0]})


numbers = st.lists(st.integers(0, 12), max_size=12)


@given(numbers, numbers, numbers, numbers)
def test_runs_are_compared_as_their_numbers_one_by_one_would_be(
    output: list[int], processed: list[int], perhaps: list[int], beyond: list[int]
) -> None:
    rows: list[Occurrence] = []
    counts = []
    for side, some in zip(ReadSide, (output, processed, perhaps, beyond), strict=True):
        counts.append(Counter(some))
        at = 0
        while at < len(some):
            end = at
            while end + 1 < len(some) and some[end + 1] == some[end] + 1:
                end += 1
            rows.append(row("s", side, at, some[at], some[end]))
            at = end + 1
    expected = Counter[tuple[str, int]]()
    for number in range(13):
        out, must, may, rest = (count[number] for count in counts)
        may += must
        if out < must:
            expected["lost", number] = must - out
        if out > may:
            ahead = min(out, rest) if not may else 0
            expected["torn", number] = ahead
            expected["duplicate" if may + rest else "unmatched", number] = out - may - ahead
    found = Counter[tuple[str, int]]()
    for kind, _, _, _, _, first, last, records in wrong(*rows):
        for number in range(first, last + 1):
            found[kind, number] += records // (last - first + 1)
    assert found == +expected
