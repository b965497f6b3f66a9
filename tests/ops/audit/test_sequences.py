"""Runs of numbers, against a reckoning record by record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

from connectctl.ops.audit.duplicate_ranges import resolve
from connectctl.ops.audit.sequences import (
    Committed,
    Read,
    SequenceCheck,
    SequenceRange,
    SourceTotals,
    order,
)
from connectctl.ops.audit.summary import Summary
from connectctl.ops.audit.violations import Violation
from hypothesis import given
from hypothesis import strategies as st


def runs(numbers: list[int], source: str = "s", partition: int = 0) -> list[SequenceRange]:
    """The runs of a source partition whose records have these numbers, in the order of the log."""
    found: list[SequenceRange] = []
    for offset, number in enumerate(numbers):
        if found and found[-1].last + 1 == number:
            found[-1] = found[-1]._replace(last=number, last_offset=offset)
        else:
            found.append(
                SequenceRange(
                    "t", source, number, "t", partition, offset, number, offset, 1000 + offset
                )
            )
    return found


def swept(found: list[SequenceRange], **more: Any) -> tuple[SourceTotals, list[Violation]]:
    told = list(SequenceCheck(**more).sweep(sorted(found, key=order)))
    (totals,) = [each for each in told if isinstance(each, SourceTotals)]
    return totals, [each for each in told if isinstance(each, Violation)]


def test_what_is_in_order_is_one_run_and_no_offence() -> None:
    totals, violations = swept(runs(list(range(5, 500))))
    assert (totals.records, totals.lowest, totals.highest, totals.offences, violations) == (
        495,
        5,
        499,
        0,
        [],
    )


def test_offences_tell_numbers_and_offsets() -> None:
    _, (copy, gap) = swept(runs([0, 1, 2, 3, 2, 3, 7]))
    assert (copy.kind, copy.first, copy.last, copy.offset, copy.other) == ("duplicate", 2, 3, 4, 2)
    assert (gap.kind, gap.first, gap.last, gap.offset) == ("gap", 4, 6, 6)
    totals, (late,) = swept(runs([0, 2, 1, 3]))
    assert (late.kind, late.first, totals.reordered, totals.duplicates, totals.gaps) == (
        "reordered",
        2,
        1,
        0,
        0,
    )


def test_a_replay_is_duplicates_and_no_disorder() -> None:
    for numbers in ([*range(10), *range(5, 12)], [*range(8), *range(5)], [*range(5), *range(8)]):
        totals, _ = swept(runs(numbers))
        assert totals.reordered == 0
        assert totals.duplicates == len(numbers) - len(set(numbers))


def test_between_kafka_partitions_there_is_no_order() -> None:
    totals, _ = swept(runs([0, 2, 4], partition=0) + runs([1, 3, 5], partition=1))
    assert totals.offences == 0


def test_the_first_number_may_be_known() -> None:
    assert swept(runs([3, 4]), first=0)[0].gaps == 3
    assert swept(runs([3, 4]))[0].gaps == 0
    assert swept(runs([0, 1, 2]), first=2)[0].offences == 0


def test_offsets_are_compared_both_ways() -> None:
    def compared(before: int, after: int) -> tuple[int, int]:
        totals, _ = swept(runs([0, 1, 2, 3]), committed={"s": Committed(before, after)})
        assert totals.tracked
        return totals.torn, totals.lost

    assert [compared(3, 3), compared(1, 1), compared(5, 9), compared(2, 3), compared(3, 7)] == [
        (0, 0),
        (2, 0),
        (0, 2),
        (0, 0),
        (0, 0),
    ]


def test_counts_of_pieces_of_a_partition_add_up() -> None:
    counts = [
        SequenceRange("", None, 10, "t", 0, -1, 2, 30, -1),
        SequenceRange("", None, 5, "t", 0, -1, 0, 12, -1),
    ]
    assert list(SequenceCheck().sweep(counts)) == [Read("t", 0, 15, 2, 42)]


@given(st.lists(st.integers(0, 25), min_size=1, max_size=40))
def test_duplicates_and_gaps_are_what_counting_one_by_one_gives(numbers: list[int]) -> None:
    totals, violations = swept(runs(numbers))
    distinct = set(numbers)
    assert totals.records == len(numbers)
    assert totals.duplicates == len(numbers) - len(distinct)
    assert totals.gaps == max(numbers) - min(numbers) + 1 - len(distinct)
    assert sum(o.records for o in violations if o.kind == "duplicate") == totals.duplicates
    firsts = list(dict.fromkeys(numbers))
    if firsts == sorted(firsts):
        assert totals.reordered == 0
    elif len(firsts) == len(numbers):
        assert totals.reordered > 0


@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from("abx")), min_size=1, max_size=40))
def test_a_duplicate_names_the_first_copy_and_disorder_a_smaller_number_behind_it(
    log: list[tuple[int, str]],
) -> None:
    """Whatever lies between: ``x`` is what takes an offset and is no record, a marker or an aborted
    record.
    """
    found, cut = Summary(100), []
    held: dict[str, SequenceRange] = {}
    for offset, (number, source) in enumerate(log):
        run = held.get(source)
        if source == "x":
            continue
        if run is not None and run.last + 1 == number:
            held[source] = run._replace(last=number, last_offset=offset)
            continue
        if run is not None:
            cut.append(run)
        held[source] = SequenceRange("t", source, number, "t", 0, offset, number, offset, 1)
    cut += held.values()
    for each in SequenceCheck().sweep(sorted(cut, key=order)):
        found.add(each)

    def read(topic: str, partition: int, first: int, end: int) -> Iterator[tuple[str, int, int]]:
        assert (topic, partition) == ("t", 0)
        yield from ((s, n, at) for at, (n, s) in list(enumerate(log))[first:end] if s != "x")

    with mock.patch("connectctl.ops.audit.duplicate_ranges.STRETCH", 3):
        resolve(found, read)
    for violation in found.evidence:
        places = [
            at for at, (n, s) in enumerate(log) if (n, s) == (violation.first, violation.source)
        ]
        if violation.kind == "duplicate":
            assert violation.other == places[0]
            assert violation.offset in places[1:]
        elif violation.kind == "reordered":
            assert violation.offset in places
            assert violation.offset < violation.other
            assert log[violation.other][0] < violation.first


@given(st.lists(st.integers(0, 25), min_size=1, max_size=40), st.integers(1, 39))
def test_pieces_of_a_partition_give_what_the_whole_gives(numbers: list[int], cut: int) -> None:
    cut = min(cut, len(numbers))
    later = [
        r._replace(first_offset=r.first_offset + cut, last_offset=r.last_offset + cut)
        for r in runs(numbers[cut:])
    ]
    whole, pieces = swept(runs(numbers))[0], swept(runs(numbers[:cut]) + later)[0]
    assert (whole.records, whole.duplicates, whole.gaps) == (
        pieces.records,
        pieces.duplicates,
        pieces.gaps,
    )
    assert bool(whole.offences) == bool(pieces.offences)
