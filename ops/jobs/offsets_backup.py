"""A backup of source offsets as a DataFrame: one file, or a directory of part files, of which each task reads a part."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import BadInput
from connectctl.ops.jobs.frames import of_shares
from connectctl.ops.jobs.offsets import ROWS, TOGETHER, Source, in_buckets
from connectctl.ops.operations.offsets.dump_lines import DumpBlock, Range, blocks_in, ranges_of, read_blocks, read_lines

if TYPE_CHECKING:
    from connectctl.ops.jobs.frames import Tuples
    from connectctl.ops.kafka.records import Row
    from pyspark.sql import DataFrame, SparkSession

SHOWN = 60
"""Characters of a bad line that a message repeats."""
SHARE_BYTES = 1 << 27
"""The input of a task."""


def read(spark: SparkSession, path: Path, connector: str, parts: int) -> DataFrame:
    """The records of the backup in ``path`` (``ROWS``), for ``connector``. Raises ``BadInput``; for a bad line, when a job
    runs.
    """
    if str(path) == "-":
        raise BadInput("Spark cannot read a backup from standard input", next_step="Save the backup to a file first.")
    if not path.exists():
        raise BadInput(f"Cannot read the dump {path}", why="it does not exist")

    def rows(part: Range) -> Tuples:
        reads = (read for block in blocks_in(part) for read in _read(block, path))
        return in_buckets((some for read in reads for some in _by_source(read, connector)), parts)

    return of_shares(spark, ranges_of(path.absolute(), SHARE_BYTES), rows, ROWS, TOGETHER)


def _by_source(read: DumpBlock, connector: str) -> Iterator[tuple[Source, list[Row]]]:
    for (bootstrap, topic), same in groupby(zip(read.wheres, read.rows, strict=True), key=itemgetter(0)):
        yield Source(bootstrap, topic, connector), [row for _, row in same]


def _read(block: bytes, path: Path) -> Iterator[DumpBlock]:
    try:
        yield from read_blocks([block], str(path), whole=False)
    except BadInput:  # which line of the whole backup it is nobody knows here: its beginning tells
        for line in block.decode(errors="replace").split("\n"):
            list(read_lines([line], f"{path}, {line[:SHOWN]!r}", whole=False))
        raise
