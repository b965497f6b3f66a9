"""The rounds of a DataFrame: a batch is read, shared out by source partition and written by the
tasks, each its part.

Spark may run any part again, or twice at once: the attempts of a task have one transactional id,
and skip what is committed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.spark.arrow_map import map_in_arrow
from connectctl.ops.clients.spark.executors import spare_archives
from connectctl.ops.clients.spark.session import first_line
from connectctl.ops.clients.spark.task_input import proven
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.attempt.task_attempt import FAILED, TaskLimits
from connectctl.ops.task_runtime.dataframe import task as dataframe_task
from connectctl.ops.task_runtime.dataframe.micro_batch import HASH, ONE_PARTITION
from connectctl.ops.task_runtime.dataframe.task import TO_THE_END, FrameReport, Writing
from connectctl.ops.task_runtime.job.spark_round import SCHEMA, SparkRound

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.attempt.control_channel import DriverAddress
    from pyspark.sql import DataFrame, SparkSession

QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
"""The local properties that Spark sets on the thread of a query."""
_ROWS, _BYTES = (
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.execution.arrow.maxBytesPerBatch",
)
LARGE = {_ROWS: "50000", _BYTES: str(16 << 20)}
"""A quarter less time than with Spark's 10,000 rows of 100 bytes, and never more bytes than 16 MB
and a row.
"""
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\] ([^\n]*)")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*")
_NOT_THE_DATA = (
    "SPARK_JOB_CANCELLED",
    "INTERNAL_ERROR",
    "STREAM_FAILED",
    "FOREACH_BATCH_USER_FUNCTION_ERROR",
)


def written_by(
    df: DataFrame,
    writing: Writing,
    tasks: int,
    active: Collection[int] | None = None,
    terms: TaskLimits = TO_THE_END,
    address: DriverAddress | None = None,
) -> list[FrameReport]:
    """Write ``df`` with ``tasks`` tasks, of which only those in ``active`` are run; None means
    all.
    """

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        task = context.partitionId() if context is not None else 0
        if active is not None and task not in active:
            return
        attempt = context.taskAttemptId() if context is not None else 0
        report = dataframe_task.run(writing, task, proven(batches), terms, address, attempt).json
        spare_archives()
        yield pa.RecordBatch.from_arrays(
            [pa.array([task], pa.int32()), pa.array([report])], names=["task", "report"]
        )

    with large_batches(df.sparkSession):
        rows = map_in_arrow(shared(df, writing, tasks), run, SCHEMA).collect()
    return [FrameReport.parse(row.report) for row in rows]


@contextmanager
def large_batches(spark: SparkSession) -> Iterator[None]:
    """Let queries that begin meanwhile have large Arrow batches, unless the session configures
    their size.
    """
    conf: Any = spark.conf
    # With a default, get returns only what the session configures: Spark's own defaults differ
    # from release to release.
    changed = {name: value for name, value in LARGE.items() if conf.get(name, None) is None}
    for name, value in changed.items():
        conf.set(name, value)
    try:
        yield
    finally:
        for name in changed:
            conf.unset(name)


def shared(df: DataFrame, writing: Writing, tasks: int) -> DataFrame:
    """Return the rows as tasks get them: those of a source partition in one of them, ordered by
    their offset.

    The number of partitions is given, so that no adaptive plan of Spark's makes others of them. The
    order is one of the offset alone, over all source partitions of a task: Spark sorts by one
    number many times as fast as by several columns.
    """
    columns = writing.columns
    wanted = (
        df.select(*(f"`{name}`" for name in columns.names))
        if writing.batch is None
        else hashed(df, writing)
    )
    if writing.registry is not None:
        # A frame that is coalesced has no order that Spark knew; one that has it is not sorted
        # again.
        parted = wanted if 0 < partitions_of(wanted) <= tasks else wanted.coalesce(tasks)
    else:
        by = (
            columns.partition
            if writing.batch is None or writing.batch.ordered
            else (columns.offset,)
        )
        parted = wanted.repartition(tasks, *(f"`{name}`" for name in by))
    return parted.sortWithinPartitions(f"`{columns.offset}`")


def hashed(df: DataFrame, writing: Writing) -> DataFrame:
    """Return the required columns of a micro-batch, with those that distinguish its rows."""
    from pyspark.sql import functions as f

    batch = writing.batch
    assert batch is not None
    added = {HASH, ONE_PARTITION}
    names = [name for name in writing.columns.names if name not in added]
    columns = [f.col(f"`{name}`") for name in names]
    types = {field.name: field.dataType for field in df.schema.fields}
    # Spark has no hash of maps.
    hashed_columns = [
        f.to_json(column) if "map<" in types[name].simpleString() else column
        for name, column in zip(names, columns, strict=True)
    ]
    more = [f.xxhash64(*hashed_columns).alias(HASH)]
    if not batch.ordered:
        more.append(f.lit("").alias(ONE_PARTITION))
    return df.select(*columns, *more)


def query_of(df: DataFrame) -> str | None:
    """Return the id of the query whose micro-batch ``df`` is; None on a thread that is not the
    query's.
    """
    return local_property(df, QUERY)


def local_property(df: DataFrame, name: str) -> str | None:
    """Return the local property that Spark has set on this thread."""
    session: Any = df.sparkSession
    found = session.sparkContext.getLocalProperty(name)
    return None if found is None else str(found)


def partitions_of(df: DataFrame) -> int:
    """Return the number of partitions of ``df`` by its plan; 0 if Spark determines it at run time."""
    plan: Any = df._jdf.queryExecution().executedPlan()
    return int(plan.outputPartitioning().numPartitions())


# -------------------------------------------------------------------------- what Spark complains of


def rejection(error: BaseException) -> str | None:
    """Return Spark's message about the data or the query, in one line; None for other errors, such
    as those of an executor.
    """
    text = str(error)
    for name, message in _CONDITION.findall(text):
        if name in _NOT_THE_DATA:
            continue
        line = _STATE.sub("", message).strip()
        causes = [
            c
            for c in re.findall(r"^Caused by: [\w.$]+: ([^\n]+)", text, re.MULTILINE)
            if c.strip() != message.strip()
        ]
        if name.endswith("NO_HINT") and causes:
            line = (
                f"{line.rstrip('.')}: "
                f"{_STATE.sub('', _CONDITION.sub(lambda m: m[2], causes[-1])).strip()}"
            )
        return line.rstrip(" ;:")
    return None


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn Spark's errors about a frame that cannot be read into ``BadInput`` with one line."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger

    # PySpark writes every error of a query to standard error, as JSON with the whole of its stack.
    log = PySparkLogger.getLogger("SQLQueryContextLogger")
    log.disabled = True
    try:
        yield
    except (PySparkException, Py4JError) as e:
        raise BadInput(
            f"Cannot read the DataFrame of {name}",
            why=rejection(e) or first_line(e),
            code="bad-frame",
        ) from e
    finally:
        log.disabled = False


# ------------------------------------------------------------------------------------------- rounds


@dataclass
class DataFrameRound(SparkRound):
    """A round of a batch: it reads all rows of the batch, and ends when the last one is written or
    its tasks have to stop.
    """

    writing: Writing | None = None
    frame: DataFrame | None = None
    count: int = 0
    """The number of tasks that share the source partitions, also those that are not run any more.
    """

    def _run(self) -> None:
        assert self.writing is not None
        assert self.frame is not None
        try:
            self.spark.sparkContext.addJobTag(self.tag)
            terms = replace(self.terms, idle=None)  # it has an end of its own
            self.reports = written_by(
                self.frame, self.writing, self.count, set(self.tasks), terms, self.address
            )
        except Exception as e:  # noqa: BLE001  # Spark raises its own, Py4J's and the network's errors
            why = rejection(e)
            if why is None:
                self.lost = first_line(e)
            else:
                # The data will be the same in another round.
                self.reports = [FrameReport(task, FAILED, why, why) for task in self.tasks]
