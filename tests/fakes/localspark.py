"""A Spark session that is none: what a run collects is computed at once, in this process.

For tests of what a run does on a real broker. Whether Spark runs the same is for the tests of
Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

Mapped = Callable[[Iterator[Any]], Iterator[Any]]
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.maxExecutors": "1",
}


@dataclass(frozen=True)
class Frame:
    """The numbers below ``count``, in one partition, behind what is mapped over them."""

    count: int
    mapped: Mapped = lambda batches: batches

    def mapInArrow(self, mapped: Mapped, schema: str) -> Frame:
        return Frame(self.count, mapped)

    def collect(self) -> list[Any]:
        batch = pa.RecordBatch.from_arrays([pa.array(range(self.count), pa.int64())], names=["id"])
        return [
            SimpleNamespace(**row)
            for found in self.mapped(iter([batch]))
            for row in found.to_pylist()
        ]


class LocalSpark:
    """As much of a session as a run of polled tasks asks of it, by its own names."""

    conf = CONF
    sparkContext = SimpleNamespace(getConf=lambda: CONF, addJobTag=lambda tag: None, master="local")

    def range(self, start: int, end: int, step: int, partitions: int) -> Frame:
        return Frame(end - start)

    def addArtifacts(self, *paths: str, **more: bool) -> None:
        """Have this process import from archives, as the Python workers of Spark would."""
        sys.path[:0] = paths

    def stop(self) -> None:
        pass


def open_session(*args: Any, **more: Any) -> LocalSpark:
    """In the place of ``clients.spark.session.open_session``."""
    return LocalSpark()
