"""What Spark finds in the files of an archive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.ops.audit.archive import FileContent
from connectctl.ops.jobs.audit import Cluster
from connectctl.ops.jobs.audit_archive import contents, missing, row_frame
from connectctl.ops.kafka.topic_partition import TopicPartition
from connectctl.ops.task_runtime.connectors.parquet_archive.files import ArchiveDirectory
from connectctl.ops.task_runtime.connectors.parquet_archive.manifest import ArchivedFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def written(directory: Path, name: str, *offsets: int) -> ArchivedFile:
    rows: list[Any] = [(offset, 1_000, "CreateTime", b"k", b"v", []) for offset in offsets]
    return ArchiveDirectory(str(directory)).write(name, TopicPartition("in", 0), rows)


def test_each_file_has_its_rows_and_offsets_and_one_that_cannot_be_read_has_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    directory = tmp_path / "an archive"
    good = written(directory, "in/0/a.parquet", 0, 1, 2)
    holes = written(directory, "in/0/b.parquet", 3, 7, 7)
    foreign = written(directory, "in/1/c.parquet", 0)
    broken = written(directory, "in/0/d.parquet", 8)
    (directory / "in/0/d.parquet").write_bytes(b"PAR1 no more")
    rows = row_frame(spark, str(directory), [good, holes, foreign, broken])
    assert contents(rows) == {
        "in/0/a.parquet": FileContent(3, 3, 0, 2, True),
        "in/0/b.parquet": FileContent(3, 2, 3, 7, True),
        "in/1/c.parquet": FileContent(1, 1, 0, 0, False),
    }


def test_an_archive_without_files_has_no_contents(spark: SparkSession) -> None:
    assert contents(row_frame(spark, "/nowhere", [])) == {}
    assert missing(spark, Cluster({}, 1.0), [], None) == {}
