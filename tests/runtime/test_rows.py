"""Rows as a supply: each is delivered once, whatever was committed before, wherever it is interrupted."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from connectctl.ops.errors import ConnectctlError
from connectctl.ops.runtime.handle import Doubt
from connectctl.ops.runtime.kernel import Kernel
from connectctl.ops.runtime.rows import Columns, Row, Rows
from connectctl.ops.runtime.step import How
from hypothesis import given
from hypothesis import strategies as st

COLUMNS = Columns(("table",), "id")


class Broker:
    """Topic and offsets of one id; the commit with the number ``doubt`` fails, and has happened if ``anyway``."""

    def __init__(self, doubt: int = 0, *, anyway: bool = False):
        self.values: list[bytes] = []
        self.offsets: dict[bytes, bytes | None] = {}
        self.sizes: list[int] = []
        self._doubt, self._anyway, self._commits = doubt, anyway, 0

    id, timeout_ms, overdue = "g-c-0", 60_000, False

    def initialise(self, patience: float) -> None: ...
    def refresh(self, patience: float) -> None: ...
    def drop(self) -> None: ...
    def doubt(self) -> str | None:
        return None

    def begin(self) -> None:
        self._open: list[bytes] = []

    def send(self, step: Any) -> None:
        self._open += [m["value"] for bulk in step.bulks for m in bulk.messages]

    def send_offsets(self, topic: str, offsets: Any) -> None:
        self._new = dict(offsets)

    def commit(self, patience: float) -> None:
        self._commits += 1
        if self._commits != self._doubt or self._anyway:
            self.values += self._open
            self.offsets |= self._new
            self.sizes.append(len(self._open))
        if self._commits == self._doubt:
            raise Doubt("no answer")

    def abort(self, patience: float) -> None: ...

    def value(self, key: bytes) -> bytes | None:
        return self.offsets.get(key)

    def known(self) -> frozenset[bytes]:
        return frozenset(self.offsets)


def rows(*offsets: int, table: str = "a") -> list[Row]:
    return [Row((table,), n, None, f"{table}{n}".encode()) for n in offsets]


def deliver(broker: Broker, given_: list[Row], size: int = 3) -> Rows:
    supply = Rows(given_, "c", "t", COLUMNS, size)
    kernel = Kernel(lambda: broker, "offsets", broker, sleep=lambda seconds: None)  # type: ignore[arg-type,return-value]
    assert kernel.run(supply).how is How.ENDED
    return supply


def test_rows_are_delivered_in_transactions_of_their_size_with_the_offsets_of_all_partitions() -> None:
    broker = Broker()
    deliver(broker, [*rows(1, 2, 3, 4), *rows(1, 2, table="b")])
    assert broker.values == [b"a1", b"a2", b"a3", b"a4", b"b1", b"b2"]
    assert broker.sizes == [3, 3]
    assert broker.offsets == {b'["c",{"table":"a"}]': b'{"id":4}', b'["c",{"table":"b"}]': b'{"id":2}'}


def test_what_is_at_or_before_the_committed_offset_is_skipped() -> None:
    broker = Broker()
    deliver(broker, rows(1, 2, 3))
    supply = deliver(broker, rows(2, 3, 4, 5))
    assert broker.values == [b"a1", b"a2", b"a3", b"a4", b"a5"]
    assert supply.skipped == 2


def test_rows_with_one_offset_stay_in_one_transaction() -> None:
    broker = Broker()
    deliver(broker, rows(1, 2, 2, 2, 2, 3), size=2)
    assert broker.sizes == [5, 1]


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30)), max_size=25),
    st.integers(1, 5),
    st.integers(0, 8),
    st.booleans(),
)
def test_a_doubt_at_any_commit_delivers_each_row_once(
    places: list[tuple[str, int]], size: int, doubt: int, anyway: bool
) -> None:
    broker = Broker(doubt, anyway=anyway)
    ordered = list(chain(*(rows(*sorted({n for t, n in places if t == table}), table=table) for table in "ab")))
    deliver(broker, ordered, size)
    assert broker.values == [row.value for row in ordered]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (rows(2, 1), "is not ordered: 1 comes after 2"),
        ([Row(("a",), None, None, b"")], "None, which is no source offset"),
        ([Row(("a",), 1.5, None, b"")], "1.5, which is no source offset"),
        ([*rows(1), Row(("a",), "2", None, b"")], "is not ordered"),
    ],
)
def test_a_column_that_is_no_ordered_offset_is_one_line(bad: list[Row], said: str) -> None:
    with pytest.raises(ConnectctlError, match=said):
        deliver(Broker(), bad)


def test_a_committed_offset_of_another_type_is_refused() -> None:
    broker = Broker()
    broker.offsets[b'["c",{"table":"a"}]'] = b'{"id":"7"}'
    with pytest.raises(ConnectctlError, match="cannot be compared"):
        deliver(broker, rows(8))
