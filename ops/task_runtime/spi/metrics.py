"""What a task's metrics are: Connect's own, by Connect's own names, as far as there is the same thing here.

Source: ``ConnectMetricsRegistry``, groups ``source-task-metrics`` and ``connector-task-metrics``. Totals and extremes are
those of the whole run. Rates are left to whoever draws them: they are the totals' slopes. Without exactly-once, what is
between two flushes of offsets counts as a transaction.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Protocol

from connectctl.ops.task_runtime.spi.latency_meter import LatencyMeter, in_ms, latency_metrics
from connectctl.ops.task_runtime.spi.sink_meter import CommitMeter, SinkMeter, mean, sink_metrics

Metrics = dict[str, int | float | None]
"""Values by Connect's names; None where nothing was measured yet, for which Connect has NaN."""


@dataclass
class TaskMeter(CommitMeter):
    """What a task counts besides its transactions, in one lease or in all. Times are in seconds.

    ``settled`` are records that need nothing more: committed, or aborted as the task wished (``discarded``), or forgotten
    because a new instance polls them again. ``empty`` are transactions that had nothing but offsets. ``global_failures`` are
    offsets that the global offsets topic behind a dedicated one refused; they are sent again. ``lag`` are records that a
    member of a consumer group has left to read, None where that is not known, and for all other tasks. ``unopened`` and
    ``opened`` are batches that a copy has sent, ``lost`` offsets that its source had deleted before they were copied.
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
    LATEST: ClassVar[Collection[str]] = ("lag",)

    @property
    def active(self) -> int:
        """How many records were polled and are not settled yet."""
        return self.polled - self.settled

    def poll(self, size: int, seconds: float) -> None:
        """The source gave a batch. An empty one is none, as in Connect."""
        if not size:
            return
        self.polled += size
        self.batches += 1
        self.poll_time += seconds
        self.largest_batch = max(self.largest_batch, size)
        self.longest_poll = max(self.longest_poll, seconds)
        self.most_active = max(self.most_active, self.active)

    def batch(self, unopened: bool, batches: int) -> None:  # a callback
        """A copy sent ``batches`` of the source, ``unopened`` or made anew."""
        self.unopened += batches * unopened
        self.opened += batches * (not unopened)

    def commit(self, size: int) -> None:
        self.settled += size
        self.empty += not size

    def discard(self, size: int) -> None:
        """``size`` records were written and aborted, as the task wished."""
        self.settled += size
        self.discarded += size

    def forget(self) -> None:
        """Whatever is in hand is polled again."""
        self.settled = self.polled


class Totals(Protocol):
    """What a task did so far."""

    records: int
    transactions: int
    aborted: int
    waited: float
    smallest: int | None
    largest: int
    meter: TaskMeter
    unwritten: Collection[str]
    sink: SinkMeter | None
    latency: LatencyMeter
    last_latency: LatencyMeter


def metrics(total: Totals) -> Metrics:
    """The metrics of a task. Sizes are in records, times in milliseconds, and ``…-percentage`` is a share of 1, as Kafka's.

    ``source-record-active-count`` is what was in hand when the task last reported. Connect has none for the global offsets
    topic behind a dedicated one, where it only logs: ``global-offset-unwritten-count`` are source partitions.
    """
    sizes: Metrics = {
        "transaction-size-min": 0 if total.meter.empty else total.smallest,
        "transaction-size-max": total.largest if total.transactions else None,
        "transaction-size-avg": mean(total.records, total.transactions),
    }
    if total.sink is not None:
        return sizes | sink_metrics(total.sink, None, None)  # of what a task has now nothing is known behind its lease
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
        "global-offset-write-failure-total": meter.global_failures,
        "global-offset-unwritten-count": len(total.unwritten),
        **latency_metrics(total.latency, total.last_latency),
        **(group_metrics(total) if meter.lag is not None else {}),
        **(copy_metrics(meter) if meter.unopened or meter.opened or meter.lost else {}),
    }


def copy_metrics(meter: TaskMeter) -> Metrics:
    """What a topic copy has besides: Connect has no counterpart. ``lost`` are offsets, as many records at most."""
    return {
        "copy-batch-unopened-total": meter.unopened,
        "copy-batch-opened-total": meter.opened,
        "copy-offset-lost-total": meter.lost,
    }


def group_metrics(total: Totals) -> Metrics:
    """What a task has besides that reads as a member of a consumer group, as transforms do.

    ``records-lag`` is Kafka's consumer's, summed over the partitions assigned. The others have no counterpart in Connect:
    transactions that were committed and aborted, and the milliseconds for which the task has been waiting for Kafka,
    0 where it does not.
    """
    return {
        "records-lag": total.meter.lag,
        "transaction-total": total.transactions,
        "transaction-abort-total": total.aborted,
        "waiting-time-ms": in_ms(total.waited),
    }
