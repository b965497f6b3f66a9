"""The jobs of an archive audit: the contents of its files, and the committed records of the inputs
that are in none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from connectctl.ops.audit.archive import FileContent, MissingRecords
from connectctl.ops.audit.scan import PartitionRange
from connectctl.ops.jobs.audit import Cluster, columns, pieces, split
from connectctl.ops.jobs.audit_runner import TASK_RECORDS
from connectctl.ops.jobs.frames import of_shares
from connectctl.ops.kafka.record_batch_decoder import Columns
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.parquet_archive.manifest import ArchivedFile
from connectctl.ops.task_runtime.connectors.parquet_archive.reader import SCHEMA, spark_root

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OFFSETS = "topic string, partition int, offset long"


def row_frame(
    spark: SparkSession, directory: str, files: Collection[ArchivedFile]
) -> DataFrame | None:
    """Topic, partition and offset of each row of ``files``, and the ``file`` that it is in; None
    for no files. A file that cannot be read has no rows here, or fewer.
    """
    if not files:
        return None
    root = spark_root(directory)
    read = spark.read.schema(SCHEMA).option("ignoreCorruptFiles", "true")
    rows = read.parquet(*(f"{root}/{each.name}" for each in files))
    # Names in an archive are TOPIC/PARTITION/FILE, which no URI writes differently.
    name = "array_join(slice(split(_metadata.file_path, '/'), -3, 3), '/') AS file"
    return rows.selectExpr("topic", "partition", "offset", name)


def contents(rows: DataFrame | None) -> dict[str, FileContent]:
    """Return the content of each file that has rows."""
    if rows is None:
        return {}
    numbers = "count(*), count(DISTINCT offset), min(offset), max(offset)"
    belongs = "bool_and(file LIKE concat(topic, '/', partition, '/%'))"
    found = rows.sparkSession.sql(
        f"SELECT file, {numbers}, {belongs} FROM {{rows}} GROUP BY file", rows=rows
    )
    return {each[0]: FileContent(*each[1:]) for each in found.collect()}


def missing(
    spark: SparkSession, cluster: Cluster, ranges: Sequence[PartitionRange], rows: DataFrame | None
) -> dict[TopicPartition, MissingRecords]:
    """Return the committed records of the inputs in ``ranges`` that are not among ``rows``, by
    partition.
    """
    if not ranges:
        return {}
    size = sum(each.size for each in ranges)
    tasks = max(int(spark.sparkContext.defaultParallelism), size // TASK_RECORDS + 1)
    archived = of_shares(
        spark, split(pieces(ranges, tasks), tasks), lambda share: _offsets(cluster, share), OFFSETS
    )
    if rows is not None:
        archived = archived.join(rows.drop("file"), ["topic", "partition", "offset"], "left_anti")
    numbers = "count(*), min(offset), max(offset)"
    found = spark.sql(
        f"SELECT topic, partition, {numbers} FROM {{there}} GROUP BY topic, partition",
        there=archived,
    )
    return {TopicPartition(*each[:2]): MissingRecords(*each[2:]) for each in found.collect()}


def _offsets(cluster: Cluster, ranges: Sequence[PartitionRange]) -> Iterator[tuple[str, int, int]]:
    for each in ranges:
        for partition, records in columns(
            cluster, {each.topic_partition: (each.start, min(each.until, each.stable))}
        ):
            offsets = (
                records.offsets.tolist()
                if isinstance(records, Columns)
                else [message.offset() for message in records]
            )
            yield from ((*partition, offset) for offset in offsets)
