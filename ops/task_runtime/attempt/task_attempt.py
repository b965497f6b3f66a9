"""A task for the time of a lease: everything it needs as plain values, put together where it runs."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from connectctl.ops.config.masking import masked
from connectctl.ops.connect.transactional_ids import task_id
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.topics import KnownEnds
from connectctl.ops.task_runtime.attempt.control_channel import HEARTBEAT, TaskChannel
from connectctl.ops.task_runtime.attempt.shared_clients import PRIMARY, SharedClients
from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
from connectctl.ops.task_runtime.spi.connector import SourceContext
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.plugins import connector_class
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason, TaskResult, TaskStats
from connectctl.ops.task_runtime.task.at_least_once import boundaries_of, producer_class
from connectctl.ops.task_runtime.task.batch_limits import BatchSizeLimits
from connectctl.ops.task_runtime.task.exactly_once_task import REMEDIES, ExactlyOnceTask
from connectctl.ops.task_runtime.task.global_offsets_writer import GlobalOffsetsWriter
from connectctl.ops.task_runtime.task.polled_source import PolledSource
from connectctl.ops.task_runtime.task.progress import TaskProgress, heartbeat
from connectctl.ops.task_runtime.task.single_record_producer import ProducerFactory
from connectctl.ops.task_runtime.task.transactional_producer import TransactionalProducer

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.attempt.control_channel import Address
    from connectctl.ops.task_runtime.spi.transaction_batch import StoredOffsets, TaskRecordSource, TransactionBatch

FAILED = "failed"
LONGEST_TRACE = 20_000


@dataclass(frozen=True)
class TaskLimits:
    """When a lease ends: after ``seconds``, ``idle`` seconds without a record, or so many ``records``."""

    seconds: float
    idle: float | None = None
    records: int | None = None


@dataclass(frozen=True)
class TaskReport:
    """What a task did in a lease. ``how`` is an ``EndReason`` or failed; ``idle``: it had nothing to do at the end."""

    task: int
    how: str
    why: str | None = None
    trace: str | None = None
    records: int = 0
    transactions: int = 0
    aborted: int = 0
    instances: int = 0
    smallest: int | None = None
    largest: int = 0
    doubts: int = 0
    idle: bool = False
    meter: Mapping[str, float] = field(default_factory=dict)
    reached: Mapping[str, KnownEnds] = field(default_factory=dict)
    waited: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of ``json``."""
        raw = json.loads(text)
        raw["reached"] = {which: KnownEnds(each["id"], tuple(each["ends"])) for which, each in raw["reached"].items()}
        return cls(**raw)

    @property
    def json(self) -> str:
        """It as text, for its way through Spark."""
        return json.dumps(asdict(self))

    def __post_init__(self) -> None:
        # In the words of plugins and of their systems. On the driver, which knows the job's secrets, once more.
        for name in ("why", "trace"):
            if (text := getattr(self, name)) is not None:
                object.__setattr__(self, name, masked(text))

    @classmethod
    def of(cls, task: int, how: str, counts: TaskStats, **more: Any) -> TaskReport:
        """The report of what ``counts`` counted."""
        return cls(
            task,
            how,
            records=counts.records,
            transactions=counts.transactions,
            aborted=counts.aborted,
            instances=counts.instances,
            smallest=counts.smallest,
            largest=counts.largest,
            doubts=len(counts.doubts),
            meter=asdict(counts.meter),
            reached=counts.reached,
            waited=counts.doing.waited,
            **more,
        )


class TimeboxedSource:
    """A supply with an end: it hears when the lease is over, and keeps the driver informed."""

    def __init__(self, supply: TaskRecordSource, task: int, counts: TaskStats, terms: TaskLimits, line: TaskChannel):
        self._supply, self._task, self._counts, self._terms, self._line = supply, task, counts, terms, line
        self._began: float | None = None
        self._lag: int | None = None
        self._active = self._looked = self._said = time.monotonic()

    def resume(self, stored: StoredOffsets) -> None:
        try:
            self._supply.resume(stored)
        finally:  # a source that cannot be reached is not idle
            self._active = time.monotonic()
        # A lease begins with the first resumption: to get there may take as long as a dead predecessor's transaction.
        self._began = self._began or self._active

    def step(self) -> TransactionBatch | None:
        began = time.monotonic()
        step = self._supply.step()
        if step is not None and step.size:
            self._active = time.monotonic()
            if not isinstance(self._supply, PolledSource):  # which counts its batches by itself
                self._counts.meter.poll(step.size, self._active - began)
        elif self._supply.behind:
            self._active = time.monotonic()
        self._looked = time.monotonic()
        return step

    def last(self) -> TransactionBatch | None:
        return self._supply.last()

    def committed(self, step: TransactionBatch) -> None:
        self._supply.committed(step)

    @property
    def ended(self) -> bool:
        return self._supply.ended

    @property
    def idle(self) -> bool:
        """Whether nothing has come for as long as the terms allow."""
        if self._terms.idle is None or self._began is None:
            return False
        # At the last look: nobody knows of the time since, which may be long where the machine is busy.
        return self._looked - self._active >= self._terms.idle

    def over(self) -> bool:
        """Whether the task is to stop."""
        now = time.monotonic()
        if now - self._said >= HEARTBEAT:
            self._said = now
            self.say()
        late = self._began is not None and now - self._began >= self._terms.seconds
        enough = self._terms.records is not None and self._counts.records >= self._terms.records
        return late or enough or self.idle or self._line.stopped

    def say(self) -> None:
        """Tell the driver how far it is."""
        self._lag = None
        with suppress(Exception):  # what a plugin cannot tell is no reason to end its task
            self._lag = self._supply.lag
        self._tell()

    def beat(self) -> None:
        """Tell the driver that the task waits, on another thread, where its own is in a call that does not return."""
        if time.monotonic() - self._said >= 2 * HEARTBEAT and self._counts.doing.told is not None:
            self._tell()

    def _tell(self) -> None:
        counts = self._counts
        said = {"task": self._task, "records": counts.records, "transactions": counts.transactions, "lag": self._lag}
        self._line.say(said if (waits := counts.doing.told) is None else {**said, "waiting": waits})


def run(
    work: TaskSpec,
    task: int,
    config: Mapping[str, str],
    terms: TaskLimits,
    address: Address,
    near: SharedClients | None = None,
) -> TaskReport:
    """One task for one lease, with what it shares with those ``near``.

    Raises nothing that the task, the source or Kafka did: that is in the report.
    """
    counts = TaskStats(doing=TaskProgress(work.waited.get(task, 0.0)))
    line = TaskChannel(address)
    try:
        ended, idle = _run(work, near or SharedClients(work), task, config, terms, line, counts)
        return TaskReport.of(task, ended.how.value, counts, why=ended.why, idle=idle)
    except ConnectctlError as e:
        if line.stopped:
            return _failed_while_stopping(task, counts, e)
        return TaskReport.of(task, FAILED, counts, why=str(e), trace=str(e))
    except Exception as e:  # noqa: BLE001  # a plugin may raise anything, and Spark would run it again for it
        if line.stopped:
            return _failed_while_stopping(task, counts, e)
        trace = traceback.format_exc()[-LONGEST_TRACE:]
        return TaskReport.of(task, FAILED, counts, why=f"{type(e).__name__}: {e}", trace=trace)
    finally:
        line.close()


def _failed_while_stopping(task: int, counts: TaskStats, error: Exception) -> TaskReport:
    """The report of a task that failed when it was to stop anyway, which is no failure of the task (``WorkerTask``)."""
    return TaskReport.of(task, EndReason.STOPPED.value, counts, why=f"{type(error).__name__}: {error}")


def _run(
    work: TaskSpec,
    near: SharedClients,
    task: int,
    config: Mapping[str, str],
    terms: TaskLimits,
    line: TaskChannel,
    counts: TaskStats,
) -> tuple[TaskResult, bool]:
    supply = _record_source(work, config, counts)
    leased = TimeboxedSource(supply, task, counts, terms, line)
    kind = producer_class(work.manner)
    with (
        exactly_once_task(work, near, task, supply.producer, leased.over, counts, kind) as kernel,
        heartbeat(leased.beat, HEARTBEAT),
    ):
        try:
            return kernel.run(leased), leased.idle
        finally:
            leased.say()
            supply.close()


@contextmanager
def exactly_once_task(
    work: TaskSpec,
    near: SharedClients,
    task: int,
    properties: Mapping[str, str],
    stopped: Callable[[], bool],
    counts: TaskStats,
    kind: type[TransactionalProducer] = TransactionalProducer,
    remedies: str = REMEDIES,
) -> Iterator[ExactlyOnceTask]:
    """A task's kernel, with a producer of ``kind``. ``properties`` are librdkafka's, where ``work`` says nothing else."""
    id_, manner = task_id(work.group, work.connector, task), work.manner
    whole = {**properties, **manner.properties}
    behind = GlobalOffsetsWriter(near.home, work.behind, work.patience) if work.behind else None
    view = near.view()
    limits = BatchSizeLimits(near.largest, whole)

    def opened(kind: type[TransactionalProducer]) -> TransactionalProducer:
        return kind(near.target, id_, timeout_ms=manner.timeout_ms, properties=whole | limits.properties())

    producers = ProducerFactory(kind, opened)
    kernel = ExactlyOnceTask(
        producers,
        work.offsets,
        view,
        behind,
        near.stale,
        stopped,
        work.patience,
        manner.strict,
        counts,
        remedies=remedies,
        outage=work.outage,
        fits=limits.fits,
        find_unfit=producers.find_unfit,
    )
    try:
        yield kernel
    finally:
        # What comes after it, on whatever machine, is not to read less.
        counts.reached = {w: kernel.history.beyond(r) if w == PRIMARY else r for w, r in view.reached.items()}
        if behind is not None:
            behind.close()


def _record_source(work: TaskSpec, config: Mapping[str, str], counts: TaskStats) -> TaskRecordSource:
    """The connector's own supply for a task, or its task to poll."""
    connector, manner = connector_class(work.path), work.manner
    own = connector.supply(SourceContext(work.connector, config, manner, work.offsets, work.timeout))
    if own is not None:
        return own
    return PolledSource(
        connector.task,
        work.connector,
        config,
        lambda: boundaries_of(manner),
        converters(work.config),
        work.offsets if manner.exactly_once else "",
        counts.meter,
    )
