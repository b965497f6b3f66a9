"""Micro-batches as a supply: whatever is killed and repeated, each row is there once, or is refused
by its name.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from connectctl.ops.connect.source_keys import parse_key
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.task_runtime.dataframe.micro_batch import (
    HASH,
    ONE_PARTITION,
    BatchProgress,
    Late,
    MicroBatch,
)
from connectctl.ops.task_runtime.dataframe.partition_slices import FrameColumns
from connectctl.ops.task_runtime.dataframe.stream_source import StreamRows
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason
from connectctl.ops.task_runtime.task.attempt_loop import AttemptLoop
from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger
from fakes.dataframebroker import Broker
from hypothesis import given
from hypothesis import strategies as st

COLUMNS = FrameColumns(("table",), "id")
UNORDERED = FrameColumns((ONE_PARTITION,), HASH)
KEY = b'["c",{"connectctl.stream":"q","task":0}]'
Row = tuple[str, int, str]


class Crash(Exception):
    """The process is gone."""


class Crashing(Broker):
    """The attempt dies at the commit with the number ``at``, which has happened if ``anyway``."""

    at, anyway_then = 0, False

    def commit(self, patience: float) -> None:
        self.at -= 1
        if self.at == 0 and not self.anyway_then:
            raise Crash
        super().commit(patience)
        if self.at == 0:
            raise Crash


def batches(rows: list[Row], size: int, *, ordered: bool = True) -> list[Any]:
    """The rows as Spark gives them: by offset, or by hash."""
    hashed = [
        (*row, int.from_bytes(hashlib.sha256(repr(row).encode()).digest()[:8], "big", signed=True))
        for row in rows
    ]
    hashed.sort(key=lambda row: row[1] if ordered else row[3])
    table, id_, value, hashes = (
        (list(each) for each in zip(*hashed, strict=True)) if rows else ([], [], [], [])
    )
    columns = {
        "table": pa.array(table, pa.string()),
        "id": pa.array(id_, pa.int64()),
        "value": pa.array(value, pa.string()),
    }
    columns |= {
        HASH: pa.array(hashes, pa.int64()),
        ONE_PARTITION: pa.array([""] * len(rows), pa.string()),
    }
    whole = pa.RecordBatch.from_pydict(columns)
    return [whole.slice(start, size) for start in range(0, len(rows), size)]


def write(
    broker: Broker,
    number: int,
    rows: list[Row],
    late: Late = Late.REFUSE,
    size: int = 3,
    tasks: int = 1,
    ordered: bool = True,
    batch: MicroBatch | None = None,
) -> StreamRows:
    batch = batch or MicroBatch("q", number, tasks, late, ordered)
    given_ = batches(rows, 2, ordered=batch.ordered)
    columns = COLUMNS if batch.ordered else UNORDERED
    supply = StreamRows(given_, "c", "t", columns, size, batch=batch, task=0)
    ledger = SourceOffsetsLedger("offsets", broker)
    kernel = AttemptLoop(lambda: broker, ledger, sleep=lambda seconds: None)  # type: ignore[arg-type,return-value]
    assert kernel.run(supply).reason is EndReason.ENDED
    return supply


def rows(*offsets: int, table: str = "a") -> list[Row]:
    return [(table, n, f"{table}{n}") for n in offsets]


def progress(broker: Broker) -> BatchProgress:
    return BatchProgress.parse(broker.offsets[KEY] or b"")


def test_a_batch_that_is_through_is_skipped_whole_when_it_comes_again() -> None:
    broker = Broker()
    write(broker, 7, rows(1, 2, 3, 4))
    assert (progress(broker).batch, progress(broker).through, progress(broker).digest.rows) == (
        7,
        True,
        4,
    )
    there = dict(broker.offsets)
    again = write(broker, 7, rows(1, 2, 3, 4))
    assert (again.skipped, broker.values, broker.offsets) == (
        4,
        [b"a1", b"a2", b"a3", b"a4"],
        there,
    )


def test_an_empty_batch_is_through_as_well() -> None:
    broker = Broker()
    write(broker, 0, [])
    assert (progress(broker).through, broker.sizes) == (True, [0])


def test_new_rows_behind_the_committed_offset_are_refused_by_name_and_nothing_of_their_partition_is_written() -> (
    None
):
    """An id that was assigned early and committed late, and a tie of time stamps between two
    batches.
    """
    broker = Broker()
    write(broker, 0, rows(1, 3, 5))
    with pytest.raises(
        ConnectctlError, match="2 rows of micro-batch 1 are behind the committed offset"
    ) as caught:
        write(broker, 1, [*rows(4, 6), ("a", 5, "another 5"), *rows(1, table="b")])
    assert 'The row of {"table":"a"} at {"id":4}, The row of {"table":"a"} at {"id":5}' in str(
        caught.value
    )
    assert caught.value.code == "late-rows"
    assert b"a6" not in broker.values
    with pytest.raises(ConnectctlError, match=r"9 rows of micro-batch 2 .* and 6 more"):
        write(broker, 2, rows(*range(-4, 5)))


def test_late_rows_are_dropped_and_counted() -> None:
    broker = Broker()
    write(broker, 0, rows(1, 3, 5), Late.DROP)
    assert write(broker, 1, [*rows(4, 6), *rows(4), *rows(4)], Late.DROP).late == 3
    write(broker, 2, rows(4, 5, 7), Late.DROP)
    assert broker.offsets[b'["c",{"table":"a"}]'] == b'{"id":7}'
    assert broker.values == [b"a1", b"a3", b"a5", b"a6", b"a7"]


def test_after_a_lost_checkpoint_a_query_that_drops_writes_each_row_once() -> None:
    """300 rows that were written come again in batches of another query id, with 300 that are
    new.
    """
    broker = Broker()
    write(broker, 0, rows(*range(300)), Late.DROP)
    again = MicroBatch("a new query", 0, 1, Late.DROP)
    supply = write(broker, 0, rows(*range(600)), Late.DROP, batch=again)
    assert (supply.late, sorted(broker.values)) == (
        300,
        sorted(f"a{n}".encode() for n in range(600)),
    )
    refusing = MicroBatch("a third query", 0, 1)
    with pytest.raises(ConnectctlError, match="600 rows of micro-batch 0 are behind") as caught:
        write(broker, 0, rows(*range(600)), batch=refusing)
    said = str(caught.value.next_step)
    assert "a new checkpoint and reads written rows again, set late=drop" in said
    assert "If they are new, late=drop would lose them" in said


def test_a_batch_that_comes_again_with_other_rows_is_refused() -> None:
    broker = Broker()
    write(broker, 0, rows(1, 2, 3))
    for other in (rows(1, 2), rows(1, 2, 4), [*rows(1, 2), ("a", 3, "other")]):
        with pytest.raises(ConnectctlError, match="was replayed with different rows"):
            write(broker, 0, other)
    begun = Crashing()
    begun.at = 2
    with pytest.raises(Crash):
        write(begun, 0, rows(1, 2, 3, 4, 5))
    assert not progress(begun).through
    with pytest.raises(ConnectctlError, match="was replayed with different rows"):
        write(begun, 0, rows(0, 1, 2, 3, 4, 5))


def test_late_rows_count_once_where_the_answer_to_a_commit_was_lost() -> None:
    broker = Broker(2, anyway=True)
    write(broker, 0, rows(1, 3, 5))
    for _ in range(2):
        write(broker, 1, rows(4, 6, 7, 8, 9, 10), Late.DROP, size=2)
    assert broker.values == [b"a1", b"a3", b"a5", b"a6", b"a7", b"a8", b"a9", b"a10"]
    assert progress(broker).digest.rows == 6


def test_a_checkpoint_that_was_set_back_and_another_number_of_tasks_are_refused() -> None:
    broker = Broker()
    write(broker, 5, rows(1))
    with pytest.raises(ConnectctlError, match="Micro-batch 4 is outdated: batch 5"):
        write(broker, 4, rows(2))
    with pytest.raises(
        ConnectctlError,
        match=r"was started with 1 tasks, but 2 are configured now\. Finish it with 1",
    ):
        write(broker, 5, rows(1), tasks=2)
    write(broker, 6, rows(2), tasks=2)
    assert broker.values == [b"a1", b"a2"]


def test_rows_without_an_order_are_written_once_by_query_and_batch() -> None:
    broker = Crashing()
    for at, anyway in ((2, True), (1, True), (1, False), (0, False), (0, False)):
        broker.at, broker.anyway_then = at, anyway
        try:
            write(broker, 3, [*rows(*range(10)), *rows(4)], ordered=False)
        except Crash:
            continue
    assert Counter(broker.values) == Counter([f"a{n}".encode() for n in range(10)] + [b"a4"])
    write(broker, 4, rows(*range(10)), ordered=False)
    assert len(broker.values) == 21
    keys: Any = [parse_key(key) for key in broker.offsets]
    assert [key for key in keys if not key.partition["connectctl.stream"]] == []


BATCHES = st.lists(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.sampled_from("xyz")),
        max_size=12,
        unique=True,
    ),
    min_size=1,
    max_size=4,
)


@given(
    BATCHES,
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=8),
    st.sampled_from(Late),
    st.integers(0, 5),
    st.booleans(),
)
def test_whatever_dies_and_is_repeated_each_row_is_there_once_or_refused_or_dropped_by_name(
    given_: list[list[Row]],
    size: int,
    crashes: list[tuple[int, bool]],
    late: Late,
    doubt: int,
    lost: bool,
) -> None:
    broker = Crashing(doubt, anyway=lost)
    expected: Counter[Row] = Counter()
    top: dict[str, int] = {}
    left = list(crashes)
    refused = False
    for number, micro in enumerate(given_):
        behind = [row for row in micro if row[1] <= top.get(row[0], -1)]
        error = _until_over(broker, number, micro, late, size, left)
        refused = bool(behind) and late is Late.REFUSE
        assert (error is not None) is refused
        if refused:
            assert str(error).startswith(f"{len(behind)} rows of micro-batch {number} are behind")
            break
        before = list(broker.values)
        assert _until_over(broker, number, micro, late, size, []) is None
        assert broker.values == before  # it is through, and skipped
        for row in micro:
            if row not in behind:
                expected[row] += 1
            top[row[0]] = max(row[1], top.get(row[0], -1))
    there = Counter(broker.values)
    assert max(there.values(), default=1) == 1
    if not refused:
        assert there == Counter(
            {f"{t}:{n}:{v}".encode(): count for (t, n, v), count in expected.items() if count}
        )


def _until_over(
    broker: Crashing,
    number: int,
    micro: list[Row],
    late: Late,
    size: int,
    left: list[tuple[int, bool]],
) -> ConnectctlError | None:
    """Write a batch again until no process dies; what refused it."""
    named = [(t, n, f"{t}:{n}:{v}") for t, n, v in micro]
    while True:
        broker.at, broker.anyway_then = left.pop(0) if left else (0, False)
        try:
            write(broker, number, named, late, size)
            return None
        except Crash:
            continue
        except ConnectctlError as e:
            return e
