"""A backup of source offsets as a DataFrame: one file, or a directory of part files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import BadInput
from connectctl.ops.jobs.offsets import SCHEMA, Row, Source, named, to_arrow
from connectctl.ops.operations.offsets import dump_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHOWN = 60


def read(spark: SparkSession, path: Path, connector: str) -> DataFrame:
    """The records of the backup in ``path``, for ``connector``. Raises ``BadInput``; for a bad line, when a job runs."""
    if str(path) == "-":
        raise BadInput("Spark cannot read a backup from standard input", next_step="Save the backup to a file first.")
    if not path.exists():
        raise BadInput(f"Cannot read the dump {path}", why="it does not exist")
    return parse(spark.read.text(str(path.absolute()), lineSep="\n"), str(path), connector)


def parse(lines: DataFrame, source: str, connector: str) -> DataFrame:
    """The records in ``lines``, a frame of one column of text."""

    def records(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield from to_arrow(row for line in batch.column(0).to_pylist() for row in _rows(line, source, connector))

    return lines.mapInArrow(records, SCHEMA)


def _rows(line: str, source: str, connector: str) -> Iterator[Row]:
    for data, record in dump_lines.read_lines([line], f"{source}, {line[:SHOWN]!r}"):
        where = Source(data.get("bootstrapServers"), data.get("topic", dump_lines.UNNAMED), connector)
        yield Row(named(where), record.key, record.value, record.partition, record.offset, record.timestamp)
