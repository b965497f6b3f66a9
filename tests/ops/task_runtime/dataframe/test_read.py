"""What a frame has to be before a row of it is written, and what Spark's complaints come to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from connectctl.ops.core.errors import BadInput, ConnectctlError, Refused
from connectctl.ops.task_runtime.attempt.control_channel import DriverAddress
from connectctl.ops.task_runtime.connectors.dataframe import (
    DataFrameSource,
    columns_of,
    micro_batch,
)
from connectctl.ops.task_runtime.dataframe.batch_round import rejection
from connectctl.ops.task_runtime.dataframe.micro_batch import Late, MicroBatch
from connectctl.ops.task_runtime.dataframe.partition_registry import (
    PartitionRegistry,
    PartitionRegistryClient,
)
from connectctl.ops.task_runtime.dataframe.partition_slices import FrameColumns
from connectctl.ops.task_runtime.dataframe.task import FrameReport, joined
from connectctl.ops.task_runtime.dataframe.validate import (
    check_columns,
    check_committed,
    check_names,
)

COLUMNS = FrameColumns(("shop",), "id", "value", "key", "at", "with")
TYPES = {
    "shop": "string",
    "id": "bigint",
    "value": "binary",
    "key": "string",
    "at": "bigint",
    "more": "map<int,int>",
}
TYPES["with"] = "array<struct<key:string,value:binary>>"


@pytest.mark.parametrize(
    ("column", "kind", "said"),
    [
        ("id", "double", "cannot be a source offset"),
        ("id", "boolean", "cannot be a source offset"),
        ("shop", "timestamp", "cannot be part of the source partition"),
        ("value", "int", "expected string or binary"),
        ("key", "struct<a:int>", "expected string or binary"),
        ("at", "timestamp", "expected bigint"),
        ("with", "array<string>", "expected array<struct<key:string,value:binary>>"),
    ],
)
def test_a_column_of_a_type_that_does_not_fit_is_named_with_its_type(
    column: str, kind: str, said: str
) -> None:
    check_columns(TYPES.items(), COLUMNS)
    with pytest.raises(BadInput, match=f"The column {column} (is a|of type) {kind}.*{said}"):
        check_columns((TYPES | {column: kind}).items(), COLUMNS)


@pytest.mark.parametrize("missing", ["shop", "id", "value", "key", "at", "with"])
def test_a_missing_column_is_named_beside_those_that_are_there(missing: str) -> None:
    with pytest.raises(BadInput, match=f"no column {missing}. Columns: .*more"):
        check_columns([(name, kind) for name, kind in TYPES.items() if name != missing], COLUMNS)


class Stored(dict[bytes, bytes]):
    """Offsets of a connector."""

    def value(self, key: bytes) -> bytes | None:
        return self.get(key)

    def known(self) -> frozenset[bytes]:
        return frozenset(self)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'["c",{"store":"a"}]', b'{"id":1}'),
        (b'["c",{"shop":"a","day":1}]', b'{"id":1}'),
        (b'["c",{"shop":"a"}]', b'{"seq":1}'),
        (b'["c",{"shop":"a"}]', b'{"id":"1"}'),
        (b'["c",{"shop":"a"}]', b'{"id":true}'),
    ],
)
def test_offsets_that_were_committed_with_other_columns_are_refused(
    key: bytes, value: bytes
) -> None:
    check_committed("c", Stored({b'["c",{"shop":"a"}]': b'{"id":1}'}), TYPES.items(), COLUMNS)
    with pytest.raises(
        Refused, match=r"there is .* of .*; the source partition is now made of shop"
    ) as e:
        check_committed("c", Stored({key: value}), TYPES.items(), COLUMNS)
    assert value.decode() in str(e.value)


@pytest.fixture
def claims() -> Iterator[PartitionRegistry]:
    made = PartitionRegistry("127.0.0.1")
    yield made
    made.close()


def test_a_source_partition_is_one_tasks_for_good_and_every_attempt_of_it_may_have_it(
    claims: PartitionRegistry,
) -> None:
    PartitionRegistryClient(claims.address, 0)([("a", 1), ("b", None)])
    PartitionRegistryClient(claims.address, 0)([("a", 1)])
    PartitionRegistryClient(claims.address, 1)([("c", 1)])
    with pytest.raises(
        ConnectctlError, match=r'\["b",null\] is in two partitions of the DataFrame.*tasks 0 and 1'
    ):
        PartitionRegistryClient(claims.address, 1)([("d", 1), ("b", None)])
    PartitionRegistryClient(claims.address, 2)([("d", 1)])  # of what is refused nothing is given


def test_who_does_not_know_the_word_or_reaches_nobody_gets_nothing(
    claims: PartitionRegistry,
) -> None:
    stranger = DriverAddress("127.0.0.1", claims.address.port, "guessed")
    with pytest.raises(ConnectctlError, match="Lost connection to the Spark driver"):
        PartitionRegistryClient(stranger, 0)([("a",)])
    claims.close()
    with pytest.raises(ConnectctlError, match="Lost connection to the Spark driver"):
        PartitionRegistryClient(claims.address, 0)([("a",)])


GOOD = {
    "name": "c",
    "topic": "t",
    "format": "json",
    "load": "/in",
    "partition.columns": "shop, day",
    "offset.column": "id",
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": ""}, "Missing source"),
        ({"streaming": "yes"}, "must be true or false"),
        ({"streaming": "true", "partitioned": "true"}, "cannot be used with"),
        ({"format": "", "query": "select 1", "streaming": "true"}, "streaming requires format"),
        ({"checkpoint": "/c"}, "checkpoint requires streaming"),
        ({"late": "drop"}, "late requires streaming"),
        (
            {"streaming": "true", "late": "skip"},
            "Invalid value skip for configuration late: must be one of refuse, drop",
        ),
        ({"streaming": "true", "late": "keep"}, "Invalid value keep for configuration late"),
        ({"records.per.transaction": "0"}, "Invalid value 0"),
        ({"transaction.boundary": "interval"}, "not by interval"),
        ({"offset.column": ""}, "Missing required configuration"),
    ],
)
def test_a_configuration_that_does_not_fit_is_told_by_its_property(
    change: dict[str, str], said: str
) -> None:
    source = DataFrameSource()
    assert not source.validate(GOOD)
    assert said in str(source.validate(GOOD | change))


def test_a_stream_refuses_late_rows_unless_its_configuration_says_otherwise() -> None:
    assert micro_batch(GOOD, "q", 3, 2) == MicroBatch("q", 3, 2)
    assert micro_batch(GOOD | {"late": "drop"}, "q", 3, 2) == MicroBatch("q", 3, 2, Late.DROP)
    with pytest.raises(BadInput, match=r"The DataFrame has no column nr. Columns: shop, id"):
        check_names(TYPES, ["id", "nr"])


def test_the_tasks_know_which_columns_their_offsets_are_made_of() -> None:
    source = DataFrameSource()
    source.start(GOOD)
    tasks = source.task_configs(2)
    assert [task["task.id"] for task in tasks] == ["0", "1"]
    assert all(
        (task["partition.columns"], task["offset.column"]) == ("shop, day", "id") for task in tasks
    )
    assert columns_of(GOOD) == FrameColumns(("shop", "day"), "id", "value")


CLASH = """An error occurred while calling o121.collectToPython.
: org.apache.spark.SparkException: [FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH] Encountered error while reading \
file f. Data type mismatches when reading Parquet column [id]. Expected Spark type bigint. SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.parquetColumnDataTypeMismatchError(x.scala:840)
"""
NO_HINT = """An error occurred while calling o1.collectToPython.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file f.  SQLSTATE: KD001
Caused by: org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed. SQLSTATE: 22023
Caused by: java.lang.RuntimeException: Cannot parse field: id
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            CLASH,
            "Encountered error while reading file f. Data type mismatches when reading Parquet "
            "column [id]. Expected Spark type bigint.",
        ),
        (NO_HINT, "Encountered error while reading file f: Cannot parse field: id"),
        ("Job aborted due to stage failure: ExecutorLostFailure (executor 1 exited)", None),
        ("[SPARK_JOB_CANCELLED] Job 3 cancelled part of cancelled job tags", None),
        (
            "[PATH_NOT_FOUND] Path does not exist: file:/in. SQLSTATE: 42K03",
            "Path does not exist: file:/in.",
        ),
    ],
)
def test_what_spark_says_of_the_data_is_one_line_and_what_it_says_of_itself_is_none(
    text: str, line: str | None
) -> None:
    assert rejection(Exception(text)) == line


def test_reports_of_micro_batches_add_up_and_the_last_one_tells_how_it_ended() -> None:
    first: dict[str, Any] = {
        "records": 5,
        "transactions": 2,
        "smallest": 1,
        "largest": 4,
        "skipped": 3,
        "late": 2,
    }
    one = FrameReport(0, "ended", **first, meter={"polled": 5, "largest_batch": 4})
    other = FrameReport(
        0, "stopped", records=2, transactions=1, smallest=2, largest=2, meter={"largest_batch": 2}
    )
    both = joined(one, other)
    assert (both.reason, both.records, both.transactions, both.skipped, both.late) == (
        "stopped",
        7,
        3,
        3,
        2,
    )
    assert (both.smallest, both.largest, both.meter["polled"], both.meter["largest_batch"]) == (
        1,
        4,
        5,
        4,
    )
