"""Frames of Python functions, over shares of work or over another frame's rows: tuples here,
Arrow's batches in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from connectctl.ops.clients.spark.arrow_map import map_in_arrow
from connectctl.ops.clients.spark.executors import spare_archives

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Share = TypeVar("Share")
Tuples = Iterable[tuple[Any, ...]]
BATCH = 20_000
"""Rows that cross over to Spark at once, where they are small."""
_TYPES = {
    "string": "string",
    "long": "int64",
    "int": "int32",
    "boolean": "bool_",
    "binary": "binary",
}


def in_shares(
    some: Sequence[Share],
    tasks: int,
    size: Callable[[Share], int],
    fits: Callable[[Share, list[Share]], bool] = lambda each, share: True,
) -> list[list[Share]]:
    """Return ``some`` in at most ``tasks`` shares, the largest first, each in the share with the
    least work that it ``fits``.
    """
    shares: list[list[Share]] = [[] for _ in range(max(1, min(tasks, len(some))))]
    loads = [0] * len(shares)
    for each in sorted(some, key=size, reverse=True):
        free = [n for n, share in enumerate(shares) if fits(each, share)]
        number = min(free or range(len(shares)), key=loads.__getitem__)
        shares[number].append(each)
        loads[number] += size(each)
    return [share for share in shares if share]


def of_shares(
    spark: SparkSession,
    shares: Sequence[Share],
    rows: Callable[[Share], Tuples],
    schema: str,
    batch: int = BATCH,
) -> DataFrame:
    """Return a frame of the rows that ``rows`` yields for each share, one Spark task for each
    share; ``batch`` rows are sent to the JVM at once.
    """

    def work(numbers: Iterator[Any]) -> Iterator[Any]:
        for (number,) in _rows(numbers):
            yield from _to_arrow(rows(shares[number]), schema, batch)
        spare_archives()

    return map_in_arrow(spark.range(0, len(shares), 1, max(1, len(shares))), work, schema)


def by_rows(
    frame: DataFrame,
    work: Callable[[Iterator[tuple[Any, ...]]], Tuples],
    schema: str,
    batch: int = BATCH,
) -> DataFrame:
    """Return a frame of the rows that ``work`` yields for the rows of each partition of ``frame``."""

    def worked(batches: Iterator[Any]) -> Iterator[Any]:
        yield from _to_arrow(work(_rows(batches)), schema, batch)
        spare_archives()

    return map_in_arrow(frame, worked, schema)


def _rows(batches: Iterator[Any]) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _to_arrow(rows: Tuples, schema: str, batch: int) -> Iterator[Any]:
    import pyarrow as pa

    columns = [column.split() for column in schema.split(",")]
    arrow, rest = (
        pa.schema([(name, getattr(pa, _TYPES[kind])()) for name, kind in columns]),
        iter(rows),
    )
    while held := list(islice(rest, batch)):
        arrays = [
            pa.array(values, kind)
            for values, kind in zip(zip(*held, strict=True), arrow.types, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=arrow)
