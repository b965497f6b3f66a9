"""A backup of source offsets as a DataFrame: one file, or a directory of part files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import BadInput
from connectctl.ops.jobs.offsets import ROWS, Source, in_buckets
from connectctl.ops.operations.offsets.dump_lines import Read, read_blocks, read_lines

if TYPE_CHECKING:
    from connectctl.ops.kafka.records import Row
    from pyspark.sql import DataFrame, SparkSession

SHOWN = 60


def read(spark: SparkSession, path: Path, connector: str, parts: int) -> DataFrame:
    """The records of the backup in ``path`` (``ROWS``), for ``connector``. Raises ``BadInput``; for a bad line, when a job
    runs.
    """
    if str(path) == "-":
        raise BadInput("Spark cannot read a backup from standard input", next_step="Save the backup to a file first.")
    if not path.exists():
        raise BadInput(f"Cannot read the dump {path}", why="it does not exist")
    return parse(spark.read.text(str(path.absolute()), lineSep="\n"), str(path), connector, parts)


def parse(lines: DataFrame, source: str, connector: str, parts: int) -> DataFrame:
    """The records in ``lines``, a frame of one column of text."""

    def batches(found: Iterator[Any]) -> Iterator[Any]:
        reads = (read for batch in found for read in _reads(batch.column(0).to_pylist(), source))
        return in_buckets((some for read in reads for some in _by_source(read, connector)), parts)

    return lines.mapInArrow(batches, ROWS)


def _by_source(read: Read, connector: str) -> Iterator[tuple[Source, list[Row]]]:
    for (bootstrap, topic), same in groupby(zip(read.wheres, read.rows, strict=True), key=itemgetter(0)):
        yield Source(bootstrap, topic, connector), [row for _, row in same]


def _reads(lines: list[str], source: str) -> Iterator[Read]:
    try:
        yield from read_blocks(["".join(f"{line}\n" for line in lines).encode()], source)
    except BadInput:  # which line of the whole backup it is nobody knows here: its beginning tells
        for line in lines:
            list(read_lines([line], f"{source}, {line[:SHOWN]!r}"))
        raise
