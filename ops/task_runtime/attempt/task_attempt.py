"""A task for one lease, built from plain values in the process in which it runs."""

from __future__ import annotations

import json
import math
import time
import traceback
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self

from connectctl.ops.config.masking import masked
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.kafka.topics import KnownEnds
from connectctl.ops.task_runtime.attempt.control_channel import (
    HEARTBEAT,
    SILENCE,
    DriverAddress,
    TaskChannel,
)
from connectctl.ops.task_runtime.attempt.group_attempt import (
    group_ledger,
    group_producer,
    group_source,
)
from connectctl.ops.task_runtime.attempt.shared_clients import SharedClients
from connectctl.ops.task_runtime.attempt.task_kernel import source_ledger, task_kernel
from connectctl.ops.task_runtime.attempt.task_spec import TaskSpec
from connectctl.ops.task_runtime.spi.connector import SourceConnector, SourceContext
from connectctl.ops.task_runtime.spi.converters import converters
from connectctl.ops.task_runtime.spi.latency_meter import LatencyMeter
from connectctl.ops.task_runtime.spi.plugins import connector_class
from connectctl.ops.task_runtime.spi.transaction_batch import (
    EndReason,
    Event,
    StoredOffsets,
    TaskRecordSource,
    TaskResult,
    TaskStats,
    TransactionBatch,
)
from connectctl.ops.task_runtime.task.at_least_once import IdempotentProducer, boundaries_of
from connectctl.ops.task_runtime.task.polled_source import PolledSource
from connectctl.ops.task_runtime.task.progress import TaskProgress, heartbeat
from connectctl.ops.task_runtime.task.source_conversion import source_conversion
from connectctl.ops.task_runtime.task.transactional_producer import TaskProducer

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.group.ledger import GroupLedger
    from connectctl.ops.task_runtime.spi.delivery_settings import DeliverySettings
    from connectctl.ops.task_runtime.task.ledger import SourceOffsetsLedger

FAILED, AT_WORK = "failed", "running"
LONGEST_TRACE = 20_000
REPORT = 30.0
"""Seconds between two statuses of a task, and between two of its messages that have all fields."""
_IN_ALL_MESSAGES = {"lines", "unwritten", "reached", "assigned", "known"}
"""Fields of a report that may be long, and are not in each message."""
_AS_COUNTED = (
    "records",
    "transactions",
    "aborted",
    "instances",
    "smallest",
    "largest",
    "reached",
    "unwritten_because",
)
"""Fields of a report that are those of ``TaskStats``."""


@dataclass(frozen=True)
class TaskLimits:
    """When a lease ends: after ``seconds`` or so many ``records``, or after ``silence`` seconds
    without a line of the driver. A task is idle after ``idle`` seconds without a record, in this
    lease and those before; leases end once all tasks are. Every ``report`` seconds a message has
    all fields.
    """

    seconds: float
    idle: float | None = None
    records: int | None = None
    silence: float = SILENCE
    report: float = REPORT


@dataclass(frozen=True)
class TaskReport:
    """A task's report of a lease. ``reason`` is an ``EndReason``, failed, or running until the
    ``attempt`` ends; ``idle``: it had no records at the end, which was after ``quiet`` seconds
    without one. ``unwritten`` is None if it did not change.
    """

    task: int
    reason: str
    detail: str | None = None
    trace: str | None = None
    records: int = 0
    transactions: int = 0
    aborted: int = 0
    instances: int = 0
    smallest: int | None = None
    largest: int = 0
    doubts: int = 0
    idle: bool = False
    quiet: float = 0.0
    meter: Mapping[str, float] = field(default_factory=dict)
    reached: Mapping[str, KnownEnds] = field(default_factory=dict)
    waited: float = 0.0
    unwritten: Collection[str] | None = ()
    unwritten_because: str | None = None
    sink: Mapping[str, float] = field(default_factory=dict)
    """The counters of a sink's meter."""
    latency: Mapping[str, Any] = field(default_factory=dict)
    """The counters of its latency meter."""
    lines: Collection[str] = ()
    """Messages for the user."""
    assigned: Collection[str] = ()
    known: Collection[str] = ()
    """The partitions assigned to its group member at the end, and at any time."""
    attempt: str = ""
    """The attempt of the task; empty for a report of several."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of ``json``."""
        raw = json.loads(text)
        return cls(**{**raw, "reached": known_ends(raw["reached"])})

    @classmethod
    def of_message(cls, message: Mapping[str, Any]) -> Self | None:
        """Return the report that a task has sent so far; None if it has sent none."""
        if "reason" not in message:
            return None
        raw = {each.name: message[each.name] for each in fields(cls) if each.name in message}
        ends = known_ends(raw.get("reached", {}))
        return cls(**{"unwritten": None, **raw, "reached": ends, "lines": ()})

    @property
    def json(self) -> str:
        """The report as text, to be sent through Spark."""
        return json.dumps(asdict(self))

    def message(self, *, whole: bool) -> dict[str, Any]:
        """Return the report for the driver's channel, without its long fields unless ``whole``."""
        found = asdict(self)
        return found if whole else {k: v for k, v in found.items() if k not in _IN_ALL_MESSAGES}

    def __post_init__(self) -> None:
        # Texts of plugins and their systems. The driver, which has the job's secrets, masks them
        # again.
        for name in ("detail", "trace", "unwritten_because"):
            if (text := getattr(self, name)) is not None:
                object.__setattr__(self, name, masked(text))

    @classmethod
    def of(cls, task: int, reason: str, stats: TaskStats, **more: Any) -> Self:
        return cls(
            task,
            reason,
            **{name: getattr(stats, name) for name in _AS_COUNTED},
            doubts=len(stats.doubts),
            meter=asdict(stats.meter),
            waited=stats.progress.waited,
            unwritten=tuple(stats.unwritten),
            sink=asdict(stats.sink),
            latency=asdict(stats.latency),
            lines=tuple(masked(line) for line in stats.lines),
            assigned=tuple(stats.assigned),
            known=tuple(stats.known),
            **more,
        )


def known_ends(raw: Mapping[str, Any]) -> dict[str, KnownEnds]:
    """Return known ends of topics from JSON."""
    return {which: KnownEnds(each["id"], tuple(each["ends"])) for which, each in raw.items()}


class TimeboxedSource:
    """A record source that ends with the lease, and reports to the driver. ``quiet``: for how many
    seconds the task had no record when its last lease ended.
    """

    def __init__(
        self,
        source: TaskRecordSource,
        task: int,
        stats: TaskStats,
        limits: TaskLimits,
        channel: TaskChannel,
        quiet: float = 0.0,
    ):
        self._source, self._task, self._stats, self._limits, self._channel = (
            source,
            task,
            stats,
            limits,
            channel,
        )
        self._began: float | None = None
        self._lag: int | None = None
        self._over = self._idle_reported = False
        self._active = self._reported = self._whole = time.monotonic()
        self._quiet, self._looked = quiet, -math.inf

    def resume(self, stored: StoredOffsets) -> None:
        quiet, self._quiet = self._quiet, 0.0
        try:
            self._source.resume(stored)
        finally:  # a source that cannot be reached is not idle
            now = self._active = time.monotonic()
        # A lease begins with the first resumption, which may have to wait for the transaction of a
        # killed predecessor.
        self._began = self._began or now
        self._active -= quiet

    def next(self) -> Event:
        began = time.monotonic()
        event = self._source.next()
        if event.fresh:
            self._active = time.monotonic()
            if not isinstance(self._source, PolledSource):  # which counts its batches by itself
                self._stats.meter.poll(event.fresh, self._active - began)
        elif self._source.has_more:
            self._active = time.monotonic()
        self._looked = time.monotonic()
        return event

    def final_batch(self) -> TransactionBatch | None:
        return self._source.final_batch()

    def committed(self, batch: TransactionBatch) -> None:
        self._source.committed(batch)

    @property
    def idle(self) -> bool:
        """Whether there were no records for the limit's time."""
        return (
            self._limits.idle is not None
            and self._began is not None
            and self.quiet >= self._limits.idle
        )

    @property
    def quiet(self) -> float:
        """For how many seconds there were no records, as of the last poll: the time since is
        unknown, and may be long if the machine is busy.
        """
        return max(0.0, self._looked - self._active)

    def should_stop(self) -> bool:
        now = time.monotonic()
        if now - self._reported >= HEARTBEAT:
            self._reported = now
            self.report()
        stopped = self._channel.stopped
        late = silent = False
        if self._began is not None:
            late = now - self._began >= self._limits.seconds
            silent = now - max(self._began, self._channel.last_line) >= self._limits.silence
        # the round ends after all tasks: until then this one's work is not assigned
        if late and not self._over:
            self._over = True
            self._send()
        # The leases end once all tasks are idle: until then it is given what comes.
        if self.idle != self._idle_reported:
            self._idle_reported = self.idle
            self._send()
        enough = self._limits.records is not None and self._stats.records >= self._limits.records
        return late or silent or enough or stopped or self._channel.lease_over

    def report(self) -> None:
        self._lag = None
        with suppress(Exception):  # a plugin's error in lag does not end its task
            self._lag = self._source.lag
        now = time.monotonic()
        in_full = self._channel.connected and now - self._whole >= self._limits.report
        if in_full:
            self._whole = now
            self._stats.observe()
        self._send(whole=in_full)
        if in_full:
            self._stats.lines.clear()

    def heartbeat(self) -> None:
        """Report from another thread that the task waits, if its own thread is in a call that does
        not return.
        """
        if (
            time.monotonic() - self._reported >= 2 * HEARTBEAT
            and self._stats.progress.message is not None
        ):
            self._send()

    def _send(self, *, whole: bool = False) -> None:
        report = TaskReport.of(
            self._task,
            AT_WORK,
            self._stats,
            idle=self.idle,
            quiet=self.quiet,
            attempt=self._channel.attempt,
        )
        self._channel.send(
            {
                **report.message(whole=whole),
                "lag": self._lag,
                "begun": self._began is not None,
                "over": self._over,
                "waiting": self._stats.progress.message,
            }
        )


def run(
    spec: TaskSpec,
    task: int,
    config: Mapping[str, str],
    limits: TaskLimits,
    address: DriverAddress,
    shared: SharedClients | None = None,
) -> TaskReport:
    """Run one task for one lease; ``shared`` are the clients that it shares with other tasks.

    Errors of the task, the source and Kafka are not raised, but reported.
    """
    promise = LatencyMeter(promise=spec.delivery.latency)
    counts = TaskStats(progress=TaskProgress(spec.waited.get(task, 0.0)), latency=promise)
    with closing(TaskChannel(address, task)) as line:
        reason, found = FAILED, dict[str, Any]()
        try:
            clients = shared or SharedClients(spec)
            ended, leased = _run(spec, clients, task, config, limits, line, counts)
            reason, found = ended.reason.value, {"detail": ended.detail}
            found |= {"idle": leased.idle, "quiet": leased.quiet}
        except Exception as e:  # noqa: BLE001  # a plugin may raise anything, and Spark would retry the task
            detail, trace = failure_texts(e)
            found = {"detail": detail, "trace": trace}
            if (
                line.stopped
            ):  # one that fails when it is to stop anyway is not FAILED (``WorkerTask``)
                reason, found = EndReason.STOPPED.value, {"detail": f"{type(e).__name__}: {e}"}
        report = TaskReport.of(task, reason, counts, attempt=line.attempt, **found)
        # The driver acts at once, and not when all tasks of the round have ended.
        last = {"lag": None, "begun": True, "over": True, "waiting": None}
        line.send(report.message(whole=False) | last)
    return report


def failure_texts(error: Exception) -> tuple[str, str]:
    """Return detail and trace of the handled ``error``; a ``ConnectctlError`` has no trace of its
    own.
    """
    if isinstance(error, ConnectctlError):
        return str(error), str(error)
    return f"{type(error).__name__}: {error}", traceback.format_exc()[-LONGEST_TRACE:]


def _run(
    spec: TaskSpec,
    shared: SharedClients,
    task: int,
    config: Mapping[str, str],
    limits: TaskLimits,
    channel: TaskChannel,
    stats: TaskStats,
) -> tuple[TaskResult, TimeboxedSource]:
    supply: TaskRecordSource
    opened: AbstractContextManager[SourceOffsetsLedger] | AbstractContextManager[GroupLedger]
    if spec.subscription is None:
        supply = _record_source(spec, task, config, stats)
        kind = source_producer_class(supply, spec.delivery)
    else:
        supply = group_source(spec, shared, task, config, stats)
        kind = group_producer(spec)
    leased = TimeboxedSource(supply, task, stats, limits, channel, spec.quiet.get(task, 0.0))
    if spec.subscription is None:
        opened = source_ledger(spec, shared, task, stats)
    else:
        opened = closing(group_ledger(spec, shared, task, stats, leased.should_stop))
    with opened as ledger, heartbeat(leased.heartbeat, HEARTBEAT):
        properties = supply.producer_properties
        kernel = task_kernel(
            spec, shared, task, properties, leased.should_stop, stats, kind, ledger
        )
        try:
            return kernel.run(leased), leased
        finally:
            leased.report()
            supply.close()


def source_producer_class(
    supply: TaskRecordSource, delivery: DeliverySettings
) -> type[TaskProducer]:
    """Return the producer class for the batches of another topic, or the records, of ``supply``."""
    copies_batches = getattr(supply, "copies_batches", False)
    return TaskProducer if delivery.exactly_once or copies_batches else IdempotentProducer


def _record_source(
    spec: TaskSpec, task: int, config: Mapping[str, str], stats: TaskStats
) -> TaskRecordSource:
    """Return the connector's own supply for a task, or a polled task."""
    connector, delivery = connector_class(spec.path), spec.delivery
    assert issubclass(connector, SourceConnector)
    supply = connector.supply(
        SourceContext(spec.connector, config, delivery, spec.offsets, spec.timeout, stats)
    )
    if supply is not None:
        return supply
    made, own_topic = converters(spec.config), spec.offsets if delivery.exactly_once else ""
    configs = {**spec.config, "name": spec.connector}
    return PolledSource(
        connector.task,
        spec.connector,
        config,
        lambda: boundaries_of(delivery),
        made,
        own_topic,
        stats.meter,
        source_conversion(configs, made, task, own_topic, stats.meter, stats.lines.append),
    )
