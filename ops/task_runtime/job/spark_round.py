"""Runs a round of leases on Spark: as many Spark tasks as can run concurrently, each with a share
of the connector's tasks.

Tasks that share a Spark task run concurrently on threads. So a connector with more tasks than cores
runs all of them, as a Connect worker does. Each task has its own producer, channel and report. An
exception in one task does not end another.

Spark may run a Spark task again, run two attempts concurrently, or treat a live attempt as dead.
All attempts of a task have one transactional id, so that the newest fences the others. It does not
matter which attempt's result Spark returns: the committed records and offsets are in the topics.
"""

from __future__ import annotations

import threading
import time
import traceback
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from connectctl.ops.clients.spark.arrow_map import map_in_arrow
from connectctl.ops.clients.spark.executors import spare_archives
from connectctl.ops.clients.spark.session import first_line
from connectctl.ops.kafka.topics import KnownEnds, furthest
from connectctl.ops.task_runtime.attempt import task_attempt
from connectctl.ops.task_runtime.attempt.control_channel import DriverAddress, ask
from connectctl.ops.task_runtime.attempt.shared_clients import SharedClients
from connectctl.ops.task_runtime.attempt.task_attempt import (
    FAILED,
    LONGEST_TRACE,
    TaskLimits,
    TaskReport,
    known_ends,
)
from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "task int, report string"
WARM = 60.0
LOOK = 0.1


@dataclass
class SparkRound:
    """A round that runs on another thread. ``lost`` is the reason if Spark returned no reports."""

    spark: SparkSession
    work: TaskSpec
    tasks: Mapping[int, Mapping[str, str]]
    terms: TaskLimits
    address: DriverAddress
    reports: Sequence[TaskReport] = ()
    lost: str | None = None
    most: int | None = None
    """The number of Spark tasks that can run concurrently; None if Spark determines it."""
    width: int = 0
    """The number of Spark tasks of the round, once it has begun."""
    tag: str = field(default_factory=lambda: f"connectctl-{uuid.uuid4().hex}")

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Return whether the round ends within ``seconds``."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """End the round immediately. Its open transactions are aborted by the next producer with
        the same transactional id, or by their time-out.
        """
        # Not the session's interruptTag: it only finds jobs with tags of the calling thread (4.0).
        self.spark.sparkContext.cancelJobsWithTag(self.tag)

    def _run(self) -> None:
        try:
            self.spark.sparkContext.addJobTag(self.tag)
            room = slots(self.spark) if self.most is None else self.most
            self.width = max(1, min(len(self.tasks), room))
            rows = frame(
                self.spark, self.work, self.tasks, self.terms, self.address, self.width
            ).collect()
            self.reports = [TaskReport.parse(row.report) for row in rows]
        except Exception as e:  # noqa: BLE001  # errors of Spark, of Py4J and of the network
            self.lost = first_line(e)


def frame(
    spark: SparkSession,
    work: TaskSpec,
    tasks: Mapping[int, Mapping[str, str]],
    terms: TaskLimits,
    address: DriverAddress,
    width: int,
) -> Any:
    """Return a DataFrame with one row for each of ``tasks``. Its collection runs them in ``width``
    Spark tasks.
    """
    numbers, configs = list(tasks), {n: dict(config) for n, config in tasks.items()}

    def leased(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        share = [numbers[at] for batch in batches for at in batch.column(0).to_pylist()]
        newest = replace(work, reached=furthest(work.reached, reached_meanwhile(address)))
        clients = SharedClients(newest)
        for report in side_by_side(
            share, lambda n: task_attempt.run(newest, n, configs[n], terms, address, clients)
        ):
            columns = [pa.array([report.task], pa.int32()), pa.array([report.json], pa.string())]
            yield pa.RecordBatch.from_arrays(columns, names=["task", "report"])
        spare_archives()

    return map_in_arrow(spark.range(0, len(numbers), 1, width), leased, SCHEMA)


def reached_meanwhile(address: DriverAddress) -> dict[str, KnownEnds]:
    """Return the currently known ends of the offsets topics for an attempt that Spark runs again.
    The result is empty for a first attempt, which receives them with its tasks.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None or not context.attemptNumber():
        return {}
    with suppress(OSError, ValueError):
        return known_ends(ask(address, {"asks": "reached"}))
    return {}


def connected_shares(tasks: Collection[int], width: int, connected: Collection[int]) -> int:
    """Return how many of the ``width`` Spark tasks of a round have a task that is connected."""
    return len({at * width // len(tasks) for at, n in enumerate(tasks) if n in connected})


def warm(spark: SparkSession, most: int, wanted: Callable[[], bool] = lambda: False) -> None:
    """Start Python workers for up to ``most`` Spark tasks, with the imports of a task.

    This is done before older tasks are fenced, so that these still run in the meantime. Nothing
    depends on it: it ends after ``WARM`` seconds, or once ``wanted`` returns True.
    """
    thread = threading.Thread(target=_warm, args=(spark, most), daemon=True)
    thread.start()
    deadline = time.monotonic() + WARM
    while thread.is_alive() and not wanted() and time.monotonic() < deadline:
        thread.join(LOOK)


def _warm(spark: SparkSession, most: int) -> None:
    def loaded(batches: Iterator[Any]) -> Iterator[Any]:
        import confluent_kafka.admin  # noqa: F401

        yield from batches

    # The rounds fail in the same way, and report it.
    with suppress(Exception):
        count = max(1, min(most, slots(spark)))
        map_in_arrow(spark.range(0, count, 1, count), loaded, "id long").collect()


def side_by_side(tasks: Sequence[int], run: Callable[[int], TaskReport]) -> Iterator[TaskReport]:
    """Run each of ``tasks`` on a separate thread, and yield each report when its task ends."""
    over: SimpleQueue[TaskReport] = SimpleQueue()

    def one(task: int) -> None:
        try:
            over.put(run(task))
        except BaseException as e:  # noqa: BLE001  # the loop below waits for each report
            trace = traceback.format_exc()[-LONGEST_TRACE:]
            over.put(TaskReport(task, FAILED, f"{type(e).__name__}: {e}", trace))

    for task in tasks:
        threading.Thread(target=one, args=(task,), name=f"task-{task}", daemon=True).start()
    for _ in tasks:
        yield over.get()


def slots(spark: SparkSession) -> int:
    """Return how many Spark tasks can run concurrently: on the existing executors, or with dynamic
    allocation on the most that Spark may request.
    """
    context = spark.sparkContext
    conf = context.getConf()
    if is_dynamic(spark):
        most = int(conf.get("spark.dynamicAllocation.maxExecutors", str(_NO_LIMIT)))
        return most * max(
            1, int(conf.get("spark.executor.cores", "1")) // int(conf.get("spark.task.cpus", "1"))
        )
    scala = context._jsc.sc()
    # Not defaultParallelism, which is the value of spark.default.parallelism and ignores
    # spark.task.cpus.
    return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))


def room(spark: SparkSession) -> int:
    """Return how many Spark tasks can run concurrently on the existing executors; 0 with dynamic
    allocation.
    """
    return 0 if is_dynamic(spark) else slots(spark)


def is_dynamic(spark: SparkSession) -> bool:
    """Return whether Spark uses dynamic allocation of executors."""
    return bool(
        spark.sparkContext.getConf().get("spark.dynamicAllocation.enabled", "false") == "true"
    )


_NO_LIMIT = 1_000_000
