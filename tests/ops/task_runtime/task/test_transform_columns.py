"""What a transform of columns gives, as whole record batches: the same records as one by one."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.spi.transform import Records
from connectctl.ops.task_runtime.task.transform_columns import column_batches
from connectctl.ops.task_runtime.task.transform_output import OutputSettings
from fakes.consumergroup import Message

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def one_by_one(batches: list[Any]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for batch in batches:
        keys = [None] * len(batch) if batch.columns.keys is None else batch.columns.keys.to_pylist()
        times = [None if when == -1 else when for when in batch.columns.timestamps.tolist()]
        rows += zip(
            batch.columns.values.to_pylist(), keys, times, batch.columns.header_lists(), strict=True
        )
    return rows


def test_columns_hold_what_single_records_would() -> None:
    table = pa.table(
        {
            "topic": ["in", "in", "in"],
            "value": pa.array([b"a", None, b"c"]),
            "key": pa.array(["k", None, "m"], pa.large_string()),
            "timestamp": pa.array([5, None, 7], pa.int64()),
            "headers": pa.array([[{"key": "h", "value": b"1"}], None, []], HEADERS),
        }
    )
    made = [table, table.to_pandas(), table.slice(1, 2), None]
    single = OutputSettings("out").records([table, table.to_pandas(), table.slice(1, 2)])
    (batch,) = found = column_batches("out", made)
    assert one_by_one(found) == [(r.value, r.key, r.timestamp, list(r.headers)) for r in single]
    assert batch.topic == "out"
    assert batch.describe_row is not None
    assert batch.describe_row(3) == "Row 3 of the result of the transform for a poll"


def test_frames_of_what_was_read_are_written_as_they_are() -> None:
    records = Records([Message(TopicPartition("in", 0), n, b"%d" % n) for n in range(3)])
    (batch,) = column_batches("out", [records.pandas, records.arrow])
    assert (batch.columns.keys, batch.columns.headers) == (None, None)
    assert batch.columns.values.to_pylist() == [b"0", b"1", b"2"] * 2


def test_a_table_without_rows_is_nothing() -> None:
    assert (
        column_batches(
            "out", [pd.DataFrame({"value": []}), pa.table({"value": pa.array([], pa.binary())})]
        )
        == []
    )
    assert column_batches("out", None) == []


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (7, "which has no columns"),
        (pa.table({"v": [b"1"]}), "no column value"),
        (pa.table({"value": [b"1"], "x": [2]}), "unknown column x"),
        (pa.table({"value": [1]}), "The value of a record is int64"),
        (pa.table({"value": [b"1"], "key": [1.5]}), "The key of a record is double"),
    ],
)
def test_what_cannot_be_written_is_refused_in_one_line(made: Any, why: str) -> None:
    with pytest.raises(ConnectctlError, match=why) as told:
        column_batches("out", made)
    assert "\n" not in str(told.value)


def test_a_transform_of_columns_makes_column_batches_only_for_the_jobs_topic() -> None:
    table = pa.table({"value": [b"1"], "topic": ["elsewhere"]})
    assert OutputSettings("out", columnar=True).batch(table).record_batches
    assert OutputSettings("out").batch(table).records
    assert OutputSettings(None, columnar=True).batch(table).records[0].topic == "elsewhere"
