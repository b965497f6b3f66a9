"""A stream as a round: Spark's micro-batches, each written by the tasks as a batch is.

Spark's checkpoint has the query's id, and which rows are which micro-batch; what was written of
them the offsets topic has (``micro_batch``). A micro-batch that was not written whole must never
count as done for Spark, and so ends the query.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.spark.session import first_line
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.topics import KnownEnds, furthest
from connectctl.ops.task_runtime.attempt.task_attempt import FAILED, TaskLimits
from connectctl.ops.task_runtime.dataframe.batch_round import (
    DataFrameRound,
    query_of,
    rejection,
    written_by,
)
from connectctl.ops.task_runtime.dataframe.task import FrameReport, joined
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.dataframe.micro_batch import MicroBatch
    from pyspark.sql import DataFrame

LOOK = 0.2
"""Seconds between two checks of a query."""


class _Incomplete(Exception):
    """Ends a query whose micro-batch was not written whole."""


@dataclass
class StreamRound(DataFrameRound):
    """A query, until its terms are met, a stop is requested, or a task does not reach the end of its
    rows.
    """

    checkpoint: str = ""
    trigger: str = "0 seconds"
    wanted: Callable[[], bool] = lambda: False
    batch_of: Callable[[str, int, int], MicroBatch] | None = None
    """The micro-batch of a query, by its number, for so many tasks."""
    done: dict[int, FrameReport] = field(default_factory=dict)
    reached: Mapping[str, KnownEnds] = field(default_factory=dict)
    """The known ends of the offsets topics, from one micro-batch to the next."""
    _failure: Exception | None = None
    _closed: bool = False
    _settled: bool = False

    def __post_init__(self) -> None:
        self._turn = threading.Lock()
        self._began = self._active = time.monotonic()
        self.done = {task: FrameReport(task, EndReason.STOPPED.value) for task in self.tasks}
        self.reached = self.work.reached

    def _run(self) -> None:
        assert self.frame is not None
        try:
            stream = self.frame.writeStream.foreachBatch(self._batch).trigger(
                processingTime=self.trigger
            )
            query = stream.option("checkpointLocation", self.checkpoint).start()
            self._until_over(query)
        except Exception as e:  # noqa: BLE001  # Spark raises its own, Py4J's and the network's errors
            self._failure = self._failure or e
        self._conclude()

    def _until_over(self, query: Any) -> None:
        while query.isActive and not self._closed:
            time.sleep(LOOK)
            if not self._turn.acquire(blocking=False):
                continue  # a micro-batch is under way, and its tasks know their terms
            self._note_idle(query.status)
            try:
                self._closed = self._closed or self.wanted() or self._over()
            finally:
                self._turn.release()
        query.stop()  # nothing is under way: a batch that begins now finds it closed
        if query.exception() is not None and not self._closed:
            self._failure = query.exception()

    def _note_idle(self, status: Mapping[str, Any]) -> None:
        """Note whether the source is idle: not while it has data, nor before Spark has checked it
        for the first time.
        """
        self._settled = self._settled or str(status["message"]).startswith("Waiting for")
        if status["isDataAvailable"] or not self._settled:
            self._active = time.monotonic()

    def cancel(self) -> None:
        self._closed = True
        super().cancel()

    def _batch(self, df: DataFrame, batch: int) -> None:
        """Write one micro-batch, on a thread of Spark's. Raises if it was not written whole."""
        assert self.writing is not None
        assert self.batch_of is not None
        with self._turn:
            if self._closed or self.wanted():
                raise _Incomplete
            try:
                work = replace(self.writing.spec, reached=self.reached)
                micro = self.batch_of(_query(df), batch, self.count)
                writing = replace(self.writing, spec=work, batch=micro)
                reports = written_by(
                    df, writing, self.count, set(self.tasks), self._terms(), self.address
                )
            except Exception as e:
                self._failure = e
                raise
            for report in reports:
                self.done[report.task] = joined(self.done[report.task], report)
                self.reached = furthest(self.reached, report.reached)
            self._active = time.monotonic()
            if len(reports) < len(self.tasks) or any(
                report.reason != EndReason.ENDED for report in reports
            ):
                self._closed = True
                raise _Incomplete

    def _terms(self) -> TaskLimits:
        """Return the limits of a task, with the number of records that remain for all tasks,
        because it may send all of them.
        """
        remaining = None
        if self.terms.records is not None:
            remaining = max(1, self.terms.records - self._records)
        seconds = self.terms.seconds - (time.monotonic() - self._began)
        return replace(self.terms, seconds=seconds, idle=None, records=remaining)

    @property
    def _records(self) -> int:
        return sum(report.records for report in self.done.values())

    @property
    def _idle(self) -> bool:
        return self.terms.idle is not None and time.monotonic() - self._active >= self.terms.idle

    def _over(self) -> bool:
        late = time.monotonic() - self._began >= self.terms.seconds
        return (
            late
            or self._idle
            or (self.terms.records is not None and self._records >= self.terms.records)
        )

    def _conclude(self) -> None:
        """Set the result of the round. Rows that were written before Spark failed are reported,
        too.
        """
        reports = [
            replace(r, reason=EndReason.STOPPED.value) if r.reason == EndReason.ENDED else r
            for r in self.done.values()
        ]
        if self._failure is not None:
            why = rejection(self._failure)
            if why is None and not self._records:
                self.lost = first_line(self._failure)
                return
            if why is not None:
                reports = [replace(r, reason=FAILED, detail=why, trace=why) for r in reports]
        elif any(r.reason == FAILED for r in reports):
            # The micro-batch is not whole without the rows of the task that failed, and no other
            # one may follow it.
            reports = [
                r if r.reason == FAILED else replace(r, reason=EndReason.ENDED.value)
                for r in reports
            ]
        self.reports = [replace(r, idle=self._idle) for r in reports]


def _query(df: DataFrame) -> str:
    if (query := query_of(df)) is None:
        raise ConnectctlError(
            "Spark does not provide the query id of the micro-batch", next_step="Use PySpark 4.0."
        )
    return query
