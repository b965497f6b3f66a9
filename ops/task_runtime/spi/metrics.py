"""The metrics of a task, under the names of Connect's where Connect has the same metric.

Source: ``ConnectMetricsRegistry``, groups ``source-task-metrics``, ``connector-task-metrics`` and
``task-error-metrics``.
Totals and extremes are those of the whole run. There are no rates: derive them from the totals.
Without exactly-once, the records between two flushes of offsets count as a transaction.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import ClassVar

from connectctl.ops.task_runtime.spi.error_meter import ErrorMeter, error_metrics
from connectctl.ops.task_runtime.spi.latency_meter import LatencyMeter, in_ms, latency_metrics
from connectctl.ops.task_runtime.spi.sink_meter import CommitMeter, SinkMeter, mean, sink_metrics

Metrics = dict[str, int | float | None]
"""Values by Connect's names; None if nothing was measured yet, for which Connect has NaN."""


@dataclass
class TaskMeter(CommitMeter, ErrorMeter):
    """A task's counters other than its transactions, in one lease or in all. Times are in seconds.

    ``settled`` are completed records: committed, aborted as the task requested (``discarded``), or
    dropped because a new instance polls them again. ``empty`` are transactions with offsets only.
    ``global_failures`` are offsets of a dedicated topic that the global offsets topic rejected;
    they are sent again. ``lag`` is the number of records that a consumer group member has left to
    read, None if unknown, and for all other tasks. ``unopened`` and ``opened`` are batches that a
    copy has sent, ``lost`` offsets that its source had deleted before they were copied,
    ``partitions`` the source's that it copies; None for all other tasks.

    A transform is a sink and a source: ``read`` are the records that it consumed, of which
    ``read_settled`` are committed or read again, and ``polled`` those that it made of them.
    """

    polled: int = 0
    batches: int = 0
    largest_batch: int = 0
    poll_time: float = 0.0
    longest_poll: float = 0.0
    settled: int = 0
    most_active: int = 0
    discarded: int = 0
    empty: int = 0
    global_failures: int = 0
    unopened: int = 0
    opened: int = 0
    lost: int = 0
    lag: int | None = None
    partitions: int | None = None
    read: int = 0
    read_settled: int = 0
    LATEST: ClassVar[Collection[str]] = ("lag", "partitions")

    @property
    def active(self) -> int:
        """Return the number of polled records that are not settled yet."""
        return self.polled - self.settled

    def poll(self, size: int, seconds: float) -> None:
        """Count a polled batch; an empty one does not count, as in Connect."""
        if not size:
            return
        self.polled += size
        self.batches += 1
        self.poll_time += seconds
        self.largest_batch = max(self.largest_batch, size)
        self.longest_poll = max(self.longest_poll, seconds)
        self.most_active = max(self.most_active, self.active)

    def batch(self, unopened: bool, batches: int) -> None:  # a callback
        """Count ``batches`` of the source that a copy sent, ``unopened`` or rebuilt."""
        self.unopened += batches * unopened
        self.opened += batches * (not unopened)

    def commit(self, size: int) -> None:
        self.settled += size
        self.empty += not size

    def discard(self, size: int) -> None:
        """Count ``size`` records that were written and aborted, as the task requested."""
        self.settled += size
        self.discarded += size

    def forget(self) -> None:
        """Note that all uncommitted records are polled again."""
        self.settled, self.read_settled = self.polled, self.read


@dataclass
class Counters:
    """A task's counters, in one lease or in all. Sizes are records per committed transaction."""

    records: int = 0
    transactions: int = 0
    aborted: int = 0
    instances: int = 0
    smallest: int | None = None
    largest: int = 0
    meter: TaskMeter = field(default_factory=TaskMeter)
    unwritten: Collection[str] = ()
    """The keys, as text, whose newest offset in the dedicated offsets topic may be missing in the
    global one.
    """
    unwritten_because: str | None = None
    latency: LatencyMeter = field(default_factory=LatencyMeter)


@dataclass
class Totals(Counters):
    """The totals of a task so far. ``sink`` is None for a source."""

    waited: float = 0.0
    sink: SinkMeter | None = None
    last_latency: LatencyMeter = field(default_factory=LatencyMeter)
    """The latency between the last two statuses of the task."""


def metrics(total: Totals) -> Metrics:
    """Return a task's metrics: sizes in records, times in milliseconds, ``…-percentage`` a share of
    1, as Kafka's.

    ``source-record-active-count`` is as of the task's last report. Connect only logs failed writes
    to the global offsets topic with a dedicated one, and has no metric:
    ``global-offset-unwritten-count`` are source partitions.
    """
    sizes: Metrics = {
        "transaction-size-min": 0 if total.meter.empty else total.smallest,
        "transaction-size-max": total.largest if total.transactions else None,
        "transaction-size-avg": mean(total.records, total.transactions),
    }
    if total.sink is not None:
        # the current values of a task are unknown after its lease
        return sizes | sink_metrics(total.sink, None, None)
    meter = total.meter
    attempts = meter.commits + meter.failed_commits
    return sizes | {
        "source-record-poll-total": meter.polled,
        "source-record-write-total": total.records + meter.discarded,
        "source-record-active-count": meter.active,
        "source-record-active-count-max": meter.most_active,
        "batch-size-max": meter.largest_batch if meter.batches else None,
        "batch-size-avg": mean(meter.polled, meter.batches),
        "poll-batch-max-time-ms": in_ms(meter.longest_poll) if meter.batches else None,
        "poll-batch-avg-time-ms": mean(meter.poll_time * 1000, meter.batches),
        "offset-commit-max-time-ms": in_ms(meter.longest_commit) if meter.commits else None,
        "offset-commit-avg-time-ms": mean(meter.commit_time * 1000, meter.commits),
        "offset-commit-success-percentage": mean(meter.commits, attempts),
        "offset-commit-failure-percentage": mean(meter.failed_commits, attempts),
        **error_metrics(meter),
        "global-offset-write-failure-total": meter.global_failures,
        "global-offset-unwritten-count": len(total.unwritten),
        **latency_metrics(total.latency, total.last_latency),
        **(group_metrics(total) if meter.lag is not None else {}),
        **(copy_metrics(meter) if meter.partitions is not None else {}),
    }


def copy_metrics(meter: TaskMeter) -> Metrics:
    """Return the metrics of a topic copy; Connect has none. ``lost`` are offsets, at most as many
    records.
    """
    return {
        "copy-batch-unopened-total": meter.unopened,
        "copy-batch-opened-total": meter.opened,
        "copy-partition-count": meter.partitions,
        "copy-offset-lost-total": meter.lost,
    }


def group_metrics(total: Totals) -> Metrics:
    """Return the additional metrics of a task that is a consumer group member, such as a transform.

    What it reads is counted as by Connect's sinks, and what it writes as by its sources.
    ``records-lag`` is that of Kafka's consumer, summed over the assigned partitions. Connect does
    not have the others: committed and aborted transactions, and the milliseconds for which the task
    has been waiting for Kafka, 0 if it does not wait.
    """
    return {
        "sink-record-read-total": total.meter.read,
        "sink-record-active-count": total.meter.read - total.meter.read_settled,
        "records-lag": total.meter.lag,
        "transaction-total": total.transactions,
        "transaction-abort-total": total.aborted,
        "waiting-time-ms": in_ms(total.waited),
    }
