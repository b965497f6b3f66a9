"""A task's part of a DataFrame: its Arrow batches through the kernel, with everything it needs as
plain values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from connectctl.ops.core.errors import ConnectctlError, TimedOut, Unreachable
from connectctl.ops.task_runtime.attempt.control_channel import (
    HEARTBEAT,
    DriverAddress,
    TaskChannel,
)
from connectctl.ops.task_runtime.attempt.newest_attempt import Attempt, Superseded
from connectctl.ops.task_runtime.attempt.shared_clients import SharedClients
from connectctl.ops.task_runtime.attempt.task_attempt import (
    FAILED,
    TaskLimits,
    TaskReport,
    TimeboxedSource,
    failure_texts,
)
from connectctl.ops.task_runtime.attempt.task_kernel import source_ledger, task_kernel
from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
from connectctl.ops.task_runtime.dataframe.generation_start import with_generation
from connectctl.ops.task_runtime.dataframe.micro_batch import MicroBatch
from connectctl.ops.task_runtime.dataframe.partition_registry import PartitionRegistryClient
from connectctl.ops.task_runtime.dataframe.partition_slices import FrameColumns
from connectctl.ops.task_runtime.dataframe.prefetch import Prefetch
from connectctl.ops.task_runtime.dataframe.source import DataFrameRows
from connectctl.ops.task_runtime.dataframe.stream_source import StreamRows
from connectctl.ops.task_runtime.spi.metrics import TaskMeter
from connectctl.ops.task_runtime.spi.transaction_batch import (
    EndReason,
    RecordSource,
    TaskResult,
    TaskStats,
)
from connectctl.ops.task_runtime.task.progress import TaskProgress, heartbeat
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer

TO_THE_END = TaskLimits(math.inf, silence=math.inf)
REMEDIES = (
    "Increase producer.override.transaction.timeout.ms (at most transaction.max.timeout.ms of the "
    "brokers), or decrease records.per.transaction."
)


@dataclass(frozen=True)
class Writing:
    """The common settings of a frame's tasks. ``registry`` assigns source partitions, None if the
    frame was shuffled by them; ``size`` is the number of rows of a transaction.
    """

    spec: TaskSpec
    topic: str
    columns: FrameColumns
    size: int
    registry: DriverAddress | None = None
    remedies: str = REMEDIES
    batch: MicroBatch | None = None
    """The micro-batch that the frame is, None where it is none."""
    attempts: DriverAddress | None = None
    """The address that tells attempts of a task which of them is the newest, None if Spark runs no
    two of them for long.
    """
    start: DriverAddress | None = None
    """The address from which tasks get their generation, None if ``spec`` has it."""


@dataclass(frozen=True)
class FrameReport(TaskReport):
    """A report of a task on rows, of which ``skipped`` were committed before. ``late`` dropped.

    ``retriable``: the same rows may do next time, where it failed with ``code``.
    """

    skipped: int = 0
    retriable: bool = True
    late: int = 0
    code: str | None = None


def joined(one: FrameReport, other: FrameReport) -> FrameReport:
    """Two reports of a task, one after the other, as one."""
    sizes = [r.smallest for r in (one, other) if r.smallest is not None]
    meter = TaskMeter()
    meter.add(one.meter)
    meter.add(other.meter)
    return replace(
        other,
        records=one.records + other.records,
        transactions=one.transactions + other.transactions,
        aborted=one.aborted + other.aborted,
        instances=one.instances + other.instances,
        smallest=min(sizes) if sizes else None,
        largest=max(one.largest, other.largest),
        doubts=one.doubts + other.doubts,
        meter=asdict(meter),
        skipped=one.skipped + other.skipped,
        late=one.late + other.late,
    )


def run(
    writing: Writing,
    task: int,
    batches: Iterator[Any],
    terms: TaskLimits = TO_THE_END,
    address: DriverAddress | None = None,
    number: int = 0,
) -> FrameReport:
    """Write one task's rows, in ``batches``. ``address`` receives its progress and tells it to
    stop; ``number`` is Spark's of this attempt.

    Errors of the rows or of Kafka are in the report; Spark would repeat a task that raises. Raises
    ``Superseded`` if another attempt of the task is at work, whose report is the task's.
    """
    attempt = Attempt(writing.attempts, task, number) if writing.attempts is not None else None
    if attempt is not None:
        attempt.begin()
    counts = TaskStats(progress=TaskProgress(writing.spec.waited.get(task, 0.0)))
    work = writing.spec
    claim = (
        PartitionRegistryClient(writing.registry, task)
        if writing.registry is not None
        else lambda partitions: None
    )
    ahead = Prefetch(batches)
    timeout = work.delivery.timeout_ms / 1000
    kind = (
        DataFrameRows
        if writing.batch is None
        else partial(StreamRows, batch=writing.batch, task=task)
    )
    rows = kind(ahead, work.connector, writing.topic, writing.columns, writing.size, claim, timeout)
    why = trace = code = None
    again = True
    try:
        ended = _run(writing, task, rows, counts, terms, address)
        how, why = ended.reason.value, ended.detail
    except Exception as e:  # noqa: BLE001  # whatever a batch holds, Spark would run it again for it
        how, (why, trace) = FAILED, failure_texts(e)
        if isinstance(e, ConnectctlError):
            again, code = isinstance(e, TimedOut | Unreachable), e.code
    finally:
        ahead.close()
    if how == EndReason.FENCED and attempt is not None and attempt.is_superseded:
        raise Superseded(
            f"attempt {number} of task {task}: superseded by a newer attempt of the same task"
        )
    return FrameReport.of(
        task,
        how,
        counts,
        detail=why,
        trace=trace,
        skipped=rows.skipped,
        retriable=again,
        code=code,
        late=rows.late,
    )


def _run(
    writing: Writing,
    task: int,
    rows: DataFrameRows,
    counts: TaskStats,
    terms: TaskLimits,
    address: DriverAddress | None,
) -> TaskResult:
    work = writing.spec if writing.start is None else with_generation(writing.spec, writing.start)
    shared = SharedClients(work)
    supply: RecordSource = rows
    stopped: Callable[[], bool] = bool
    with ExitStack() as closing:
        if address is not None:
            line = TaskChannel(address, task)
            closing.callback(line.close)
            leased = TimeboxedSource(rows, task, counts, terms, line)
            closing.callback(leased.report)
            closing.enter_context(heartbeat(leased.heartbeat, HEARTBEAT))
            supply, stopped = leased, leased.should_stop
        largest = shared.largest_batches([writing.topic]).get(writing.topic)
        properties = dict(rows.producer_properties)
        if largest is not None:
            properties["message.max.bytes"] = str(max(largest, 1000))
        ledger = closing.enter_context(source_ledger(work, shared, task, counts))
        return task_kernel(
            work, shared, task, properties, stopped, counts, TaskProducer, ledger, writing.remedies
        ).run(supply)
