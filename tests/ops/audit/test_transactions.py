"""Parts of transactions in several partitions: which belong together, and whether they ended
alike.
"""

from __future__ import annotations

from typing import Any

import pytest
from connectctl.ops.audit.scan import OPEN, TransactionPart
from connectctl.ops.audit.transactions import TransactionJoin, TransactionTotals, order
from connectctl.ops.kafka.batch_headers import ABORT, COMMIT
from hypothesis import given
from hypothesis import strategies as st


def part(
    partition: int,
    outcome: int,
    begin: int,
    end: int,
    *,
    epoch: int = 0,
    moved: bool = False,
    **more: Any,
) -> TransactionPart:
    known: dict[str, Any] = {
        "producer_id": 1,
        "records": 1,
        "readable": 1,
        "append_time": False,
        "topic": "t",
    } | more
    return TransactionPart(
        epoch=epoch,
        marker_ts=end,
        partition=partition,
        outcome=outcome,
        marker_epoch=epoch + moved,
        first=begin,
        last=begin,
        marker=end,
        first_ts=begin,
        last_ts=begin,
        **known,
    )


def judged(*parts: TransactionPart) -> tuple[dict[str, int], list[str]]:
    joining = TransactionJoin()
    kinds = [violation.kind for violation in joining.join(sorted(parts, key=order))]
    return joining.totals.transactions, kinds


def counts(committed: int = 0, aborted: int = 0, open: int = 0) -> dict[str, int]:
    return {"committed": committed, "aborted": aborted, "open": open}


def test_with_an_epoch_for_every_transaction_the_epoch_tells() -> None:
    parts = [part(p, COMMIT, 0, 100 + p, epoch=e, moved=True) for e in range(3) for p in range(4)]
    assert judged(*parts) == (counts(committed=3), [])


def test_with_it_parts_that_end_differently_are_torn_whatever_the_clocks_say() -> None:
    torn = part(0, COMMIT, 0, 100, moved=True), part(1, ABORT, 5000, 9000)
    assert judged(*torn) == (counts(committed=1), ["torn-transaction"])
    assert judged(part(0, COMMIT, 0, 100, moved=True), part(1, ABORT, 0, 90, moved=True))[1] == [
        "torn-transaction"
    ]


def test_without_it_parts_that_were_open_together_are_one() -> None:
    assert judged(part(0, COMMIT, 0, 100), part(1, COMMIT, 20, 101)) == (counts(committed=1), [])
    assert judged(part(0, COMMIT, 0, 100), part(1, COMMIT, 104, 200)) == (counts(committed=2), [])
    assert judged(part(0, COMMIT, 0, 100), part(1, COMMIT, 95, 200)) == (counts(committed=2), [])
    assert judged(part(0, COMMIT, 0, 100), part(0, COMMIT, 101, 200)) == (counts(committed=2), [])


def test_without_it_an_abort_after_a_commit_is_another_transaction() -> None:
    assert judged(part(0, COMMIT, 0, 100), part(1, ABORT, 100, 200)) == (
        counts(committed=1, aborted=1),
        [],
    )
    assert judged(part(0, COMMIT, 0, 100), part(1, ABORT, 97, 200)) == (
        counts(committed=1, aborted=1),
        [],
    )


def test_without_it_an_overlap_in_time_is_doubt_and_with_the_brokers_clock_proof() -> None:
    both = part(0, COMMIT, 0, 100), part(1, ABORT, 10, 101)
    assert judged(*both) == (counts(committed=1, aborted=1), ["unclear-transaction"])
    certain = [p._replace(append_time=True) for p in both]
    assert judged(*certain) == (counts(committed=1), ["torn-transaction"])


def test_timestamps_of_the_source_are_no_evidence() -> None:
    copied = [
        part(0, COMMIT, 0, 100),
        part(0, COMMIT, 0, 200),
        part(0, COMMIT, 0, 300),
        part(1, ABORT, 0, 350),
    ]
    assert judged(*copied) == (counts(committed=3, aborted=1), [])


def test_an_open_transaction_is_one_in_however_many_partitions() -> None:
    parts = [part(p, OPEN, 10, -1) for p in range(3)]
    assert judged(*parts) == (counts(open=1), ["open-transaction"] * 3)


@pytest.mark.parametrize("moved", [False, True])
def test_producers_are_kept_apart(moved: bool) -> None:
    parts = [
        part(p, COMMIT, 0, 100, moved=moved, producer_id=n) for n in range(3) for p in range(2)
    ]
    assert judged(*parts)[0] == counts(committed=3)


histories = st.lists(
    st.tuples(
        st.sets(st.integers(0, 3), min_size=1),
        st.sampled_from([ABORT, COMMIT]),
        st.integers(5, 500),
    ),
    max_size=12,
)


@given(histories, st.booleans())
def test_transactions_that_follow_each_other_are_counted_and_none_is_torn(
    history: list[Any], moved: bool
) -> None:
    parts, now = [], 0
    for epoch, (partitions, outcome, long) in enumerate(history):
        for p in partitions:
            parts.append(
                part(p, outcome, now, now + long, epoch=epoch if moved else 0, moved=moved)
            )
        now += long + 3
    transactions, kinds = judged(*parts)
    assert kinds == []
    aborted = sum(outcome == ABORT for _, outcome, _ in history)
    assert transactions == counts(committed=len(history) - aborted, aborted=aborted)


def test_totals_of_several_tasks_add_up() -> None:
    one = TransactionJoin()
    list(one.join([part(0, COMMIT, 1000, 2000)]))
    whole = TransactionTotals()
    whole.merge(one.totals.as_row())
    whole.merge(one.totals.as_row())
    assert whole.transactions == counts(committed=2)
    assert dict(whole.sizes.counts) == {0: 2}
    assert whole.timeline.slots == {2: {"committed": 2}}
