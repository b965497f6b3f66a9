"""A DataFrame as a source: whatever Spark can read, in batch or as a stream, each row once.

The driver reads the frame; its tasks write the rows. Its own properties:

==========================  ==========================================================================================
``format``, ``load``        of Spark's ``read.format(…).load(…)``; ``schema`` is a DDL text, ``option.NAME`` an option
``query``                   Spark SQL instead; with ``format``, the loaded frame is the view ``source``
``streaming``               true for Spark's ``readStream``; ``checkpoint`` is a directory that spares reading all again,
                            ``trigger.interval`` the time between two micro-batches, such as ``5 seconds``
``late``                    a stream's new rows at or before the committed offset of their source partition:
                            ``refuse`` (the default) or ``drop``, as in ``StreamWriter``
``topic``                   topic of the records
``partition.columns``       columns of a source partition, separated by commas
``offset.column``           column that only grows within a source partition: whole numbers or text
``value.column``            text or bytes; a null is a tombstone; default ``value``. With ``value.converter``, such as
                            JsonConverter or AvroConverter, of any type; so ``key.column`` with ``key.converter``
``key.column``              text or bytes; ``timestamp.column``: milliseconds since the epoch; ``headers.column``: as Spark's
                            own Kafka sink takes them, ``array<struct<key:string,value:binary>>``
``records.per.transaction`` default 200000
``partitioned``             true if each source partition is in one partition of the frame: then nothing is shuffled
==========================  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from connectctl.ops.connect.source_transactions import BOUNDARY, LATENCY
from connectctl.ops.core.errors import BadInput, ConnectctlError
from connectctl.ops.task_runtime.dataframe.micro_batch import Late, MicroBatch
from connectctl.ops.task_runtime.dataframe.partition_slices import FrameColumns
from connectctl.ops.task_runtime.spi.connector import (
    ExactlyOnceSupport,
    Setting,
    SourceConnector,
    SourceRecord,
    SourceTask,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SIZE = 200_000
VIEW = "source"
OPTION = "option."
_FLAGS = ("streaming", "partitioned")
_OF_A_STREAM = ("checkpoint", "trigger.interval", "late")
_NUMBERS = ("records.per.transaction",)
_NAMED = (
    "topic",
    "partition.columns",
    "offset.column",
    "value.column",
    "key.column",
    "timestamp.column",
    "headers.column",
)
_STRICT = {"json", "csv", "xml"}
"""Formats that read invalid rows as nulls, unless they are configured to fail."""
_CONVERTERS = ("key.converter", "value.converter")


class DataFrameTask(SourceTask):
    """The task class of a frame. Spark sends its rows; it is not polled."""

    def start(self, configs: Mapping[str, str]) -> None:
        raise ConnectctlError(
            "A task of DataFrameSource receives its rows from Spark and cannot be polled"
        )

    def poll(self) -> Sequence[SourceRecord] | None:
        raise ConnectctlError(
            "A task of DataFrameSource receives its rows from Spark and cannot be polled"
        )


class DataFrameSource(SourceConnector):
    """``connector.class=DataFrameSource``."""

    task = DataFrameTask
    settings = (
        Setting("topic", "Topic to write to.", required=True),
        Setting(
            "partition.columns",
            "Columns that identify a source partition, separated by commas.",
            required=True,
        ),
        Setting(
            "offset.column",
            "Column of the source offset; must be increasing within a source partition.",
            required=True,
        ),
        Setting(
            "value.column",
            "Column of the record value: string or binary, or of any type with value.converter.",
            default="value",
        ),
        Setting(
            "key.column",
            "Column of the record key: string or binary, or of any type with key.converter.",
        ),
        Setting(
            "timestamp.column", "Column of the record timestamp (milliseconds since the epoch)."
        ),
        Setting(
            "headers.column",
            "Column of the record headers (array of structs: key string, value binary).",
        ),
        Setting("format", "Format of Spark's reader: parquet, json, jdbc, kafka …"),
        Setting("load", "Path to load."),
        Setting("schema", "Schema as DDL; required for a stream of files."),
        Setting("query", f"Spark SQL query; the loaded data is the view {VIEW}."),
        Setting("streaming", "Read as a stream.", default="false"),
        Setting(
            "checkpoint",
            "Checkpoint directory of the stream; without it, a restart reads the source from its "
            "start.",
        ),
        Setting(
            "late",
            "Rows behind the committed offset of a stream: refuse or drop.",
            default=Late.REFUSE.value,
        ),
        Setting("trigger.interval", "Interval between micro-batches, for example 5 seconds."),
        Setting(
            "records.per.transaction", "Maximum number of rows per transaction.", default=str(SIZE)
        ),
        Setting(
            "partitioned",
            "Each source partition is in a single partition of the DataFrame (no shuffle).",
            default="false",
        ),
    )

    def validate(self, configs: Mapping[str, str]) -> dict[str, list[str]]:
        found = super().validate(configs)
        for name, message in _problems(configs):
            found.setdefault(name, []).append(message)
        return found

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return the maximum number of tasks: Spark's hash assigns the source partitions."""
        named = {name: self.configs[name] for name in _NAMED if self.configs.get(name)}
        return [{**named, "task.id": str(n)} for n in range(max_tasks)]

    def exactly_once_support(self, configs: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED


def _problems(configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if not configs.get("format") and not configs.get("query"):
        yield "format", "Missing source: set format or query."
    for name in _FLAGS:
        if configs.get(name, "false").lower() not in ("true", "false"):
            yield (
                name,
                f"Invalid value {configs[name]} for configuration {name}: must be true or false",
            )
    yield from _stream_problems(configs)
    for name in _NUMBERS:
        size = configs.get(name, "1")
        if not size.isdigit() or not int(size):
            yield name, f"Invalid value {size} for configuration {name}"
    if configs.get(BOUNDARY, "poll").lower() == "interval":
        yield (
            BOUNDARY,
            "DataFrameSource commits a transaction after records.per.transaction rows, not by "
            "interval.",
        )
    if LATENCY in configs:
        yield (
            LATENCY,
            "DataFrameSource commits a transaction after records.per.transaction rows, not by "
            f"{LATENCY}.",
        )


def _stream_problems(configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if flag(configs, "streaming") and flag(configs, "partitioned"):
        yield (
            "partitioned",
            "partitioned cannot be used with streaming: Spark repartitions every micro-batch.",
        )
    if flag(configs, "streaming") and not configs.get("format"):
        yield (
            "streaming",
            f"streaming requires format; query is optional and reads the view {VIEW}.",
        )
    for name in _OF_A_STREAM:
        if configs.get(name) and not flag(configs, "streaming"):
            yield name, f"{name} requires streaming: true."
    late = configs.get("late") or Late.REFUSE
    if late not in set(Late):
        yield (
            "late",
            f"Invalid value {late} for configuration late: must be one of {', '.join(Late)}",
        )


def flag(configs: Mapping[str, str], name: str) -> bool:
    return configs.get(name, "false").strip().lower() == "true"


def columns_of(configs: Mapping[str, str]) -> FrameColumns:
    """Which columns are what, from a configuration that was validated."""
    return FrameColumns(
        names_of(configs, "partition.columns"),
        configs["offset.column"].strip(),
        configs.get("value.column") or "value",
        configs.get("key.column") or None,
        configs.get("timestamp.column") or None,
        configs.get("headers.column") or None,
        {name: value for name, value in configs.items() if name.startswith(_CONVERTERS)},
    )


def micro_batch(configs: Mapping[str, str], query: str, number: int, tasks: int) -> MicroBatch:
    """Batch ``number`` of the stream ``query`` for so many ``tasks``, from a configuration that was
    validated.
    """
    return MicroBatch(query, number, tasks, Late(configs.get("late") or Late.REFUSE))


def names_of(configs: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return the columns that a property names, separated by commas."""
    return tuple(each.strip() for each in configs.get(name, "").split(",") if each.strip())


def size_of(configs: Mapping[str, str]) -> int:
    """Rows of a transaction."""
    return int(configs.get("records.per.transaction", SIZE))


def read(spark: SparkSession, configs: Mapping[str, str]) -> DataFrame:
    """Return the frame as Spark has it: analysed, and nothing of it read but what that takes.
    Raises what Spark raises.
    """
    streaming = flag(configs, "streaming")
    frame: DataFrame | None = None
    if name := configs.get("format"):
        reader: Any = (
            (spark.readStream if streaming else spark.read)
            .format(name)
            .options(**_options(configs, name))
        )
        if schema := configs.get("schema"):
            reader = reader.schema(schema)
        frame = reader.load(configs["load"]) if configs.get("load") else reader.load()
    if query := configs.get("query"):
        if frame is not None:
            frame.createOrReplaceTempView(VIEW)
        frame = spark.sql(query)
    assert frame is not None
    if frame.isStreaming != streaming:
        is_ = "a stream" if frame.isStreaming else "not a stream"
        raise BadInput(
            f"The source of {configs['name']} is {is_}",
            next_step=f"Set streaming: {str(not streaming).lower()}.",
        )
    return frame


def _options(configs: Mapping[str, str], format_: str) -> dict[str, str]:
    """Return the options of the reader. A file that does not fit the schema is an error, and not a
    tombstone, unless the user configures otherwise.
    """
    found = {k.removeprefix(OPTION): v for k, v in configs.items() if k.startswith(OPTION)}
    defaults = {"mode": "FAILFAST"} if format_ in _STRICT else {}
    if format_ == "csv" and found.get("header", "false").lower() == "true":
        defaults["enforceSchema"] = "false"
    return defaults | found
