"""A backup of source offsets as a DataFrame: one file, or a directory of part files, of which each
task reads a part.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.ops.connect.source_keys import owner_of
from connectctl.ops.core.errors import BadInput
from connectctl.ops.jobs.frames import Tuples, of_shares
from connectctl.ops.jobs.offsets import ROWS, THOUSANDS, TOGETHER, Source, in_buckets
from connectctl.ops.operations.offsets.dump_lines import (
    Range,
    TopicOrigin,
    blocks_in,
    ranges_of,
    read_records,
)

if TYPE_CHECKING:
    from connectctl.ops.kafka.records import ConsumerRecord
    from pyspark.sql import DataFrame, SparkSession

SHARE_BYTES = 1 << 27
"""The input of a task."""


def read(spark: SparkSession, path: Path, connector: str, parts: int) -> DataFrame:
    """Return the records of the backup in ``path`` (``ROWS``), for ``connector``. Raises
    ``BadInput``; for a bad line, when a job runs.
    """
    if str(path) == "-":
        raise BadInput(
            "Spark cannot read a backup from standard input",
            next_step="Save the backup to a file first.",
        )
    if not path.exists():
        raise BadInput(f"Cannot read the dump {path}", why="it does not exist")

    def rows(part: Range) -> Tuples:
        name = f"{path} from its byte {part.start} on" if part.start else str(path)
        records = read_records(blocks_in(part), name, complete=False)
        return in_buckets(_by_source(records, connector), parts)

    return of_shares(spark, ranges_of(path.absolute(), SHARE_BYTES), rows, ROWS, TOGETHER)


def _by_source(
    records: Iterator[tuple[TopicOrigin, ConsumerRecord]], connector: str
) -> Iterator[tuple[Source, list[ConsumerRecord]]]:
    owner = connector.encode(errors="surrogatepass")
    while chunk := list(islice(records, THOUSANDS)):
        for (bootstrap, topic), same in groupby(chunk, key=itemgetter(0)):
            yield (
                Source(bootstrap, topic, connector),
                [record for _, record in same if owner_of(record.key) == owner],
            )
