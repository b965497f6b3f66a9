"""Rows as a supply: each is delivered once, whatever was committed before, wherever it is
interrupted.
"""

from __future__ import annotations

from itertools import chain, cycle
from typing import Any

import pyarrow as pa
import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.dataframe import source as rowsmodule
from connectctl.ops.task_runtime.dataframe.partition_slices import FrameColumns
from connectctl.ops.task_runtime.dataframe.source import DataFrameRows
from connectctl.ops.task_runtime.spi.transaction_batch import (
    ColumnBatch,
    EndReason,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from fakes.dataframebroker import Broker
from hypothesis import given
from hypothesis import strategies as st

COLUMNS = FrameColumns(("table",), "id")


def rows(*offsets: int, table: str | None = "a") -> list[dict[str, Any]]:
    return [{"table": table, "id": n, "value": f"{table}{n}"} for n in offsets]


def batches(given_: list[dict[str, Any]], *sizes: int, offset: Any = None) -> list[Any]:
    """The rows as Arrow has them, in batches of ``sizes`` in turn."""
    schema = pa.schema(
        [("table", pa.string()), ("id", offset or pa.int64()), ("value", pa.string())]
    )
    found: list[Any] = []
    left = list(given_)
    for size in cycle(sizes or (len(given_) or 1,)):
        if not left:
            return found
        part, left = left[:size], left[size:]
        found.append(pa.RecordBatch.from_pylist(part, schema=schema))
    return found


def deliver(
    broker: Broker, given_: list[Any], size: int = 3, columns: FrameColumns = COLUMNS, **more: Any
) -> DataFrameRows:
    supply = DataFrameRows(given_, "c", "t", columns, size, **more)
    ledger = SourceOffsetsLedger("offsets", broker)
    kernel = AttemptLoop(lambda: broker, ledger, sleep=lambda seconds: None)  # type: ignore[arg-type,return-value]
    assert kernel.run(supply).reason is EndReason.ENDED
    return supply


def test_rows_are_delivered_in_transactions_of_their_size_with_the_offsets_of_all_partitions() -> (
    None
):
    broker = Broker()
    deliver(broker, batches([*rows(1, 2, 3, 4), *rows(1, 2, table="b")]))
    assert broker.values == [b"a1", b"a2", b"a3", b"a4", b"b1", b"b2"]
    assert broker.sizes == [3, 3]
    assert broker.offsets == {
        b'["c",{"table":"a"}]': b'{"id":4}',
        b'["c",{"table":"b"}]': b'{"id":2}',
    }


def test_what_is_at_or_before_the_committed_offset_is_skipped() -> None:
    broker = Broker()
    deliver(broker, batches(rows(1, 2, 3)))
    supply = deliver(broker, batches(rows(2, 3, 4, 5)))
    assert broker.values == [b"a1", b"a2", b"a3", b"a4", b"a5"]
    assert supply.skipped == 2


def test_rows_with_one_offset_stay_in_one_transaction_over_batches_and_between_other_partitions() -> (
    None
):
    broker = Broker()
    deliver(broker, batches(rows(1, 2, 2, 2, 2, 3)), size=2)
    assert broker.sizes == [5, 1]
    broker = Broker()
    mixed = [
        *rows(1, 7),
        *rows(7, table="b"),
        *rows(7),
        *rows(7, table="b"),
        *rows(7, 8),
        *rows(9, table="b"),
    ]
    deliver(broker, batches(mixed, 2), size=2)
    assert broker.sizes == [4, 2, 2]
    assert broker.values[:4] == [b"a1", b"a7", b"a7", b"a7"]


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 30)), max_size=25),
    st.integers(1, 5),
    st.lists(st.integers(1, 7), min_size=1, max_size=4),
    st.integers(0, 8),
    st.booleans(),
    st.booleans(),
)
def test_a_doubt_at_any_commit_delivers_each_row_once_and_in_order(
    places: list[tuple[str | None, int]],
    size: int,
    sizes: list[int],
    doubt: int,
    anyway: bool,
    by_offset: bool,
) -> None:
    broker = Broker(doubt, anyway=anyway)
    tables: tuple[str | None, ...] = ("a", "b", None)
    ordered = list(
        chain(*(rows(*sorted(n for t, n in places if t == table), table=table) for table in tables))
    )
    if by_offset:
        ordered.sort(key=lambda row: row["id"])
    deliver(broker, batches(ordered, *sizes), size)
    assert sorted(broker.values) == sorted(row["value"].encode() for row in ordered)
    for table in tables:
        there = [v for v in broker.values if v.startswith(str(table).encode())]
        assert there == [row["value"].encode() for row in ordered if row["table"] == table]


class Clock:
    """Each look at it finds so many seconds gone, in turn."""

    def __init__(self, *steps: float):
        self._steps, self._now = cycle(steps), 0.0

    def __call__(self) -> float:
        self._now += next(self._steps)
        return self._now


def test_a_transaction_that_takes_long_ends_early_and_the_next_ones_are_smaller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rowsmodule, "PART_BYTES", 1)
    broker = Broker()
    given_ = [*rows(1, 3), *rows(3, 4, table="b"), *rows(3, 3, 3), *rows(*range(5, 13))]
    deliver(broker, batches(given_, 2), size=12, timeout=30, now=Clock(6))
    # 6 s for each look: the first ends after two parts, with the rows that its last offsets have in
    # common.
    assert broker.sizes[0] == 5
    assert max(broker.sizes[1:]) <= 6
    assert len(broker.values) == 15
    quick = Broker()
    deliver(quick, batches(rows(*range(40)), 5), size=12, timeout=30, now=Clock(0.1))
    assert quick.sizes == [15, 15, 10]  # a batch is not cut without need


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 12)), max_size=40),
    st.integers(1, 12),
    st.lists(st.integers(1, 7), min_size=1, max_size=4),
    st.integers(0, 6),
    st.booleans(),
    st.lists(st.sampled_from([0.0, 1.0, 7.0, 40.0]), min_size=1, max_size=6),
)
def test_however_slow_the_way_each_row_is_there_once_and_no_offset_is_parted_by_the_end_of_a_transaction(
    places: list[tuple[str, int]],
    size: int,
    sizes: list[int],
    doubt: int,
    anyway: bool,
    steps: list[float],
) -> None:
    ordered = sorted(
        (row for t, n in places for row in rows(n, table=t)), key=lambda row: row["id"]
    )
    broker = Broker(doubt, anyway=anyway)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rowsmodule, "PART_BYTES", 1)
        deliver(broker, batches(ordered, *sizes), size, timeout=30, now=Clock(*steps))
    assert sorted(broker.values) == sorted(row["value"].encode() for row in ordered)
    for table in "abc":
        there = [v for v in broker.values if v.startswith(table.encode())]
        assert there == [row["value"].encode() for row in ordered if row["table"] == table]
    at = 0
    for count in broker.sizes[:-1]:
        at += count
        assert not set(broker.values[:at]) & set(broker.values[at:])


def test_large_rows_make_smaller_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowsmodule, "MOST_BYTES", 2500)
    broker = Broker()
    large = [row | {"value": "x" * 1000} for row in rows(1, 2, 3, 4, 5, 6, 7)]
    deliver(broker, batches(large, 1), size=100)
    assert broker.sizes == [3, 3, 1]


def test_text_as_an_offset_is_ordered_as_text_and_compared_with_what_is_committed() -> None:
    broker = Broker()
    broker.offsets[b'["c",{"table":"a"}]'] = b'{"id":"k2"}'
    given_ = [{"table": "a", "id": f"k{n}", "value": f"{n}"} for n in (1, 10, 2, 20, 3)]
    supply = deliver(broker, batches(given_, 2, offset=pa.string()))
    assert (broker.values, supply.skipped) == ([b"20", b"3"], 3)


def test_keys_and_times_travel_with_their_records() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"t": [1, 1], "id": [1, 2], "k": ["x", None], "v": [b"1", None], "at": [5, None]}
    )
    columns = FrameColumns(("t",), "id", "v", "k", "at")
    step = supplied(DataFrameRows([batch], "c", "t", columns, 10))
    assert step.record_batches[0].messages == [
        {"key": b"x", "value": b"1", "timestamp": 5},
        {"key": None, "value": None, "timestamp": 0},
    ]


HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def test_headers_travel_with_their_records_and_each_has_a_key() -> None:
    columns = FrameColumns(("t",), "id", "v", headers="h")

    def batch(*headers: Any) -> pa.RecordBatch:
        count = len(headers)
        names = ["t", "id", "v", "h"]
        lists = pa.array(headers, HEADERS)
        return pa.RecordBatch.from_arrays(
            [pa.array([1] * count), pa.array(range(count)), pa.array([b"v"] * count), lists], names
        )

    good = batch([{"key": "a", "value": b"1"}, {"key": "a", "value": None}], None, [])
    (bulk,) = supplied(DataFrameRows([good], "c", "t", columns, 10)).record_batches
    assert isinstance(bulk, ColumnBatch)
    assert bulk.columns.header_lists() == [[("a", b"1"), ("a", None)], [], []]
    for bad in ([{"key": None, "value": b"1"}], [None]):
        with pytest.raises(ConnectctlError, match="The column h has a header without a key"):
            supplied(DataFrameRows([batch([], bad)], "c", "t", columns, 10))


def supplied(supply: DataFrameRows) -> TransactionBatch:
    supply.resume(Broker())
    step = supply.next()
    assert isinstance(step, TransactionBatch)
    return step


def test_a_task_asks_once_for_each_source_partition_and_before_it_sends_any_of_it() -> None:
    asked: list[Any] = []
    deliver(
        Broker(),
        batches([*rows(1, 2), *rows(1, table="b"), *rows(3)], 2),
        size=1,
        claim=asked.append,
    )
    assert asked == [[("a",)], [("b",)]]

    def refuse(places: Any) -> None:
        raise ConnectctlError("another's")

    broker = Broker()
    with pytest.raises(ConnectctlError, match="another's"):
        deliver(broker, batches(rows(1)), claim=refuse)
    assert not broker.values


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (batches(rows(2, 1)), "is not ordered: 1 comes after 2"),
        (batches(rows(2, 1), 1), "is not ordered: 1 comes after 2"),
        (batches([*rows(2), *rows(1, table="b"), *rows(1)]), "is not ordered: 1 comes after 2"),
        (
            batches([{"table": "a", "id": None, "value": ""}]),
            r'contains a null, which is not a valid source offset: The row of \{"table":"a"\} at \{"id":null\}',
        ),
        (
            batches([{"table": "a", "id": 1.5, "value": ""}], offset=pa.float64()),
            "a double, which is not a valid source offset",
        ),
    ],
)
def test_a_column_that_is_no_ordered_offset_is_one_line(bad: list[Any], said: str) -> None:
    with pytest.raises(ConnectctlError, match=said):
        deliver(Broker(), bad)


def test_a_committed_offset_of_another_type_is_refused() -> None:
    broker = Broker()
    broker.offsets[b'["c",{"table":"a"}]'] = b'{"id":"7"}'
    with pytest.raises(ConnectctlError, match="Cannot compare the committed offset"):
        deliver(broker, batches(rows(8)))
