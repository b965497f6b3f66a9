"""One partition's log, as headers tell it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from connectctl.ops.audit.scan import OPEN, PartitionRange, Scan, TransactionPart
from connectctl.ops.audit.violations import Violation
from connectctl.ops.kafka.batch_headers import ABORT, COMMIT, Batch, Marker
from hypothesis import given
from hypothesis import strategies as st

END = 1 << 40


@dataclass
class Log:
    """A log that is written as brokers write it: offsets, sequences and timestamps follow by
    themselves.
    """

    items: list[Any] = field(default_factory=list)
    end: int = 0
    sequences: dict[tuple[int, int], int] = field(default_factory=dict)

    def data(
        self, producer: int, records: int, epoch: int = 0, transactional: bool = True, skip: int = 0
    ) -> Log:
        sequence = self.sequences.get((producer, epoch), 0) + skip
        self.sequences[producer, epoch] = sequence + records
        last = self.end + records - 1
        self.items.append(
            Batch(self.end, last, records, producer, epoch, sequence, self.end, last, transactional)
        )
        self.end += records
        return self

    def plain(self, records: int) -> Log:
        last = self.end + records - 1
        self.items.append(
            Batch(self.end, last, records, -1, -1, -1, self.end, last, transactional=False)
        )
        self.end += records
        return self

    def marker(self, producer: int, outcome: int, epoch: int = 0) -> Log:
        self.items.append(Marker(self.end, producer, epoch, self.end, outcome, 0))
        self.end += 1
        return self


def walked(log: Log, **bounds: Any) -> tuple[list[TransactionPart], list[Violation], Scan]:
    span = PartitionRange(
        "t",
        0,
        **({"start": 0, "until": END, "stable": END, "horizon": END, "whole": True} | bounds),
    )
    scan = Scan(span)
    found = list(scan.walk(log.items))
    return (
        [f for f in found if isinstance(f, TransactionPart)],
        [f for f in found if isinstance(f, Violation)],
        scan,
    )


def test_transactions_are_told_with_their_records_and_outcomes() -> None:
    log = (
        Log()
        .data(1, 5)
        .data(2, 3)
        .data(1, 5)
        .marker(1, COMMIT)
        .plain(4)
        .marker(2, ABORT)
        .data(1, 2)
    )
    parts, violations, scan = walked(log)
    assert [(p.producer_id, p.outcome, p.records) for p in parts] == [
        (1, COMMIT, 10),
        (2, ABORT, 3),
        (1, OPEN, 2),
    ]
    assert violations == []
    assert (scan.totals.plain, scan.totals.markers, scan.totals.producers) == (4, 2, 2)


def test_markers_are_looked_for_behind_the_end_and_records_are_not() -> None:
    log = (
        Log().data(1, 5).data(2, 3).marker(1, COMMIT).data(3, 7).marker(3, COMMIT).marker(2, COMMIT)
    )
    parts, _, _ = walked(log, until=8, stable=8)
    assert [(p.producer_id, p.outcome, p.records) for p in parts] == [
        (1, COMMIT, 5),
        (2, COMMIT, 3),
    ]


def test_a_batch_that_a_bound_cuts_counts_by_what_is_inside() -> None:
    log = Log().data(1, 10).data(1, 10).marker(1, COMMIT)
    (part,), _, _ = walked(log, start=4, until=13, stable=12, whole=False)
    assert (part.records, part.readable) == (9, 8)


@pytest.mark.parametrize("epoch", [0, 1], ids=["as it was", "moved on"])
def test_a_commit_that_finds_its_transaction_aborted_is_a_torn_one(epoch: int) -> None:
    _, violations, _ = walked(Log().data(1, 5).marker(1, ABORT).marker(1, COMMIT, epoch))
    assert [(o.kind, o.offset, o.records) for o in violations] == [("torn-transaction", 0, 5)]


def test_a_commit_of_what_began_after_an_abort_is_not() -> None:
    assert walked(Log().data(1, 5).marker(1, ABORT).data(1, 2).marker(1, COMMIT))[1] == []
    assert (
        walked(Log().data(1, 5).marker(1, ABORT, 1).data(1, 5, epoch=2).marker(1, COMMIT, 2))[1]
        == []
    )
    assert walked(Log().data(1, 5).marker(1, ABORT, 1).marker(1, COMMIT, 7))[1] == []


def test_missing_and_repeated_batches_are_told() -> None:
    _, violations, _ = walked(
        Log().data(1, 5, transactional=False).data(1, 5, transactional=False, skip=3)
    )
    assert [(o.kind, o.first, o.last, o.records) for o in violations] == [
        ("missing-batches", 5, 7, 3)
    ]
    _, violations, _ = walked(
        Log().data(1, 5, transactional=False).data(1, 5, transactional=False, skip=-5)
    )
    assert [(o.kind, o.first, o.records) for o in violations] == [("stale-batch", 0, 5)]
    _, violations, _ = walked(Log().data(1, 5, epoch=3).data(1, 5, epoch=2))
    assert [o.kind for o in violations] == ["stale-batch"]


def test_where_the_beginning_is_gone_or_compacted_sequences_are_not_judged() -> None:
    assert walked(Log().data(1, 5, skip=9), whole=False)[1] == []
    assert walked(Log().data(1, 5).data(1, 5, skip=9), compacted=True)[1] == []
    assert [o.kind for o in walked(Log().data(1, 5, skip=9))[1]] == ["missing-batches"]


def test_sequences_go_on_at_nought_after_the_largest() -> None:
    log = Log()
    log.sequences[1, 0] = (1 << 31) - 3
    log.data(1, 3).sequences[1, 0] = 0
    assert walked(log.data(1, 3), whole=False)[1] == []


writes = st.lists(
    st.one_of(
        st.tuples(st.just("data"), st.integers(1, 3), st.integers(1, 5)),
        st.tuples(st.just("end"), st.integers(1, 3), st.sampled_from([ABORT, COMMIT])),
        st.tuples(st.just("plain"), st.just(0), st.integers(1, 5)),
    )
)


@given(writes, st.integers(0, 60))
def test_every_record_is_counted_once_with_the_outcome_that_came_next(
    steps: list[Any], stable: int
) -> None:
    log, open_, expected = Log(), dict[int, int](), {ABORT: 0, COMMIT: 0, OPEN: 0, "plain": 0}
    for what, producer, number in steps:
        if what == "data":
            log.data(producer, number)
            open_[producer] = open_.get(producer, 0) + number
        elif what == "plain":
            log.plain(number)
            expected["plain"] += number
        elif producer in open_:
            log.marker(producer, number)
            expected[number] += open_.pop(producer)
    expected[OPEN] = sum(open_.values())
    parts, violations, scan = walked(log, stable=stable)
    assert {o: sum(p.records for p in parts if p.outcome == o) for o in (ABORT, COMMIT, OPEN)} | {
        "plain": scan.totals.plain
    } == expected
    assert violations == []
    below = sum(p.readable for p in parts) + scan.totals.readable
    data = [item for item in log.items if isinstance(item, Batch)]
    assert below == sum(max(0, min(b.last_offset + 1, stable) - b.offset) for b in data)
