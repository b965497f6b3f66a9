"""The metrics of a sink task, under the names of Connect's where Connect has the same metric.

Source: ``ConnectMetricsRegistry``, groups ``sink-task-metrics``, ``connector-task-metrics`` and
``task-error-metrics``. Rates are left to monitoring: they are the slopes of the totals. A commit is
completed when it returns, so that none is skipped for another.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from connectctl.ops.task_runtime.spi.error_meter import ErrorMeter, error_metrics

_EXTREMES = {"longest_poll", "longest_put", "longest_commit", "largest_batch", "most_active"}


@dataclass
class CommitMeter:
    """The counts of a task's commits of offsets, for tasks of any kind. Leases are added; of
    ``_EXTREMES`` the greater value counts.
    """

    commits: int = 0
    failed_commits: int = 0
    commit_time: float = 0.0
    longest_commit: float = 0.0
    LATEST: ClassVar[Collection[str]] = ()
    """Fields that are those of the latest lease, None where it has none."""

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Measures one attempt to commit offsets, which succeeds unless something is raised."""
        began = time.monotonic()
        try:
            yield
        except BaseException:
            self.failed_commits += 1
            raise
        self.committed(time.monotonic() - began)

    def committed(self, seconds: float) -> None:
        """Count a commit that took so long."""
        self.commits += 1
        self.commit_time += seconds
        self.longest_commit = max(self.longest_commit, seconds)

    def add(self, other: Mapping[str, Any]) -> None:
        """Add another lease's, as a dictionary of these fields."""
        for each in fields(self):
            if each.name in self.LATEST:
                setattr(self, each.name, other.get(each.name))
                continue
            mine, more = getattr(self, each.name), other.get(each.name, 0)
            setattr(self, each.name, max(mine, more) if each.name in _EXTREMES else mine + more)


@dataclass
class SinkMeter(CommitMeter, ErrorMeter):
    """Totals of one task, in one lease or in all; times are in seconds.

    ``read`` were polled, ``sent`` were given to ``put`` and taken, in ``puts`` calls. ``retries``
    are calls that want the same records again. ``commits`` wrote offsets, ``commit_skips`` had none
    to write; their time begins with ``pre_commit``.
    """

    read: int = 0
    sent: int = 0
    puts: int = 0
    put_time: float = 0.0
    longest_put: float = 0.0
    largest_batch: int = 0
    most_active: int = 0
    retries: int = 0
    commit_skips: int = 0

    def put(self, size: int, seconds: float) -> None:
        """Count a batch that ``put`` accepted. An empty one does not count."""
        if size:
            self.sent += size
            self.puts += 1
            self.put_time += seconds
            self.longest_put = max(self.longest_put, seconds)
            self.largest_batch = max(self.largest_batch, size)


def sink_metrics(
    meter: SinkMeter, active: int | None, partitions: int | None
) -> dict[str, float | None]:
    """Return the metrics of a task that has ``active`` records that are not committed, and
    ``partitions``. Times are in milliseconds, ``…-percentage`` is a share of 1, as Kafka's; None
    where nothing was measured, or it is unknown.
    """
    attempts = meter.commits + meter.failed_commits
    return {
        "partition-count": partitions,
        "sink-record-read-total": meter.read,
        "sink-record-send-total": meter.sent,
        "sink-record-active-count": active,
        "sink-record-active-count-max": meter.most_active,
        "offset-commit-seq-no": attempts + meter.commit_skips,
        "offset-commit-completion-total": meter.commits,
        "put-batch-max-time-ms": round(meter.longest_put * 1000, 3) if meter.puts else None,
        "put-batch-avg-time-ms": mean(meter.put_time * 1000, meter.puts),
        "batch-size-max": meter.largest_batch if meter.puts else None,
        "batch-size-avg": mean(meter.sent, meter.puts),
        "offset-commit-max-time-ms": round(meter.longest_commit * 1000, 3)
        if meter.commits
        else None,
        "offset-commit-avg-time-ms": mean(meter.commit_time * 1000, meter.commits),
        "offset-commit-success-percentage": mean(meter.commits, attempts),
        "offset-commit-failure-percentage": mean(meter.failed_commits, attempts),
        **error_metrics(meter),
    }


def mean(total: float, count: int) -> float | None:
    """Return the mean, rounded; None of nothing."""
    return round(total / count, 3) if count else None
