"""The metrics of a run as a text file for Prometheus, as its node exporter collects from a
directory.

Names are those of Connect's MBeans if exported unchanged:
``kafka.connect:type=source-task-metrics`` with the attribute ``transaction-size-avg`` is
``kafka_connect_source_task_metrics_transaction_size_avg``. Metrics that Connect does not have are
those of consumer group members, ``connectctl_group_task_metrics_records_lag``, and latencies,
``connectctl_task_metrics_poll_to_visible_seconds``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectctl.cli.output import terminal
from connectctl.ops.config import whole_file
from connectctl.ops.core.errors import BadInput

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.job.scheduler import JobRun

_OF_TASKS = ("batch-size-", "offset-commit-")
_OF_GROUPS = ("records-lag", "transaction-total", "transaction-abort-total", "waiting-time-ms")
_OF_SINKS = (
    "sink-",
    "put-batch-",
    "partition-count",
    "offset-commit-seq-no",
    "offset-commit-completion-total",
)
_OF_ERRORS = ("total-", "deadletterqueue-")
_OF_LATENCY = ("poll-to-visible-", "latency-promise-")
_HISTOGRAM = "connectctl_task_metrics_poll_to_visible_seconds"
_STATES = ("unassigned", "running", "failed")


class MetricsFile:
    """The file ``path`` of an option, written atomically. Raises ``BadInput`` if it cannot be
    written, before anything is done.
    """

    def __init__(self, path: Path, option: str):
        self._path, self._option = path, option
        if path.is_dir():
            raise BadInput(
                f"{path} cannot be written",
                why="it is a directory",
                next_step=f"Correct {option}.",
            )
        if not path.exists():
            self.replace("")
        elif path.is_file() and not os.access(path.parent, os.W_OK):
            raise BadInput(
                f"{path} cannot be written",
                why="its directory is not writable",
                next_step=f"Correct {option}.",
            )

    def replace(self, found: str) -> None:
        """Replace the contents: a reader gets the old file or the new one. Raises ``BadInput``."""
        try:
            whole_file.publish(self._path, found)
        except OSError as e:
            raise BadInput(
                f"{self._path} cannot be written",
                why=e.strerror,
                next_step=f"Correct {self._option}.",
            ) from e


class RunMetrics:
    """The metrics of a run in the file ``path``. Raises ``BadInput`` if it cannot be written,
    before anything is run.

    Later write errors are reported once, and do not end a run.
    """

    def __init__(self, path: Path, name: str, group: str):
        self._file = MetricsFile(path, "--metrics")
        self._file.replace("")
        self._name, self._group = name, group
        self._last = ""
        self._reported = False

    def follow(self, run: JobRun) -> None:
        """Write the file if anything has changed; called several times a second."""
        found = "".join(text(self._name, self._group, run))
        if found == self._last:
            return
        self._last = found
        try:
            self._file.replace(found)
        except BadInput as e:
            if not self._reported:
                terminal.note(f"warning: {e.what}: {e.why}")
            self._reported = True


def text(name: str, group: str, run: JobRun) -> Iterator[str]:
    """Yield the lines of the exposition format, with line ends."""
    from connectctl.ops.task_runtime.spi.metrics import metrics

    found = {number: metrics(total) for number, total in run.totals.items()}
    labels = {
        number: labels_of({"connector": name, "task": str(number), "group_id": group})
        for number in found
    }
    for metric in dict.fromkeys(name for values in found.values() for name in values):
        full_name = f"{_group_of(metric)}_{metric}".replace("-", "_")
        yield f"# TYPE {full_name} {'counter' if metric.endswith('-total') else 'gauge'}\n"
        for number, values in found.items():
            value = values.get(metric)
            yield f"{full_name}{{{labels[number]}}} {'NaN' if value is None else value}\n"
    yield from _latencies(labels, run)
    if found:
        yield "# TYPE kafka_connect_connector_task_metrics_status gauge\n"
    for number, total in run.totals.items():
        for state in _STATES:
            is_so = int(total.state.lower() == state)
            yield (
                f'kafka_connect_connector_task_metrics_status{{{labels[number]},status="{state}"}} '
                f"{is_so}\n"
            )


def _latencies(labels: Mapping[int, str], run: JobRun) -> Iterator[str]:
    """Yield the latency from poll to visibility as a histogram, from which quantiles can be
    computed.
    """
    measured = {
        number: total.latency for number, total in run.totals.items() if total.latency.counts
    }
    if measured:
        yield f"# TYPE {_HISTOGRAM} histogram\n"
    for number, meter in measured.items():
        for seconds, records in meter.cumulative():
            yield f'{_HISTOGRAM}_bucket{{{labels[number]},le="{seconds:g}"}} {records}\n'
        yield f'{_HISTOGRAM}_bucket{{{labels[number]},le="+Inf"}} {meter.records}\n'
        yield f"{_HISTOGRAM}_sum{{{labels[number]}}} {round(meter.total, 6)}\n"
        yield f"{_HISTOGRAM}_count{{{labels[number]}}} {meter.records}\n"


def _group_of(metric: str) -> str:
    """Return the group of ``metric``: one of Connect's, or one of connectctl's."""
    if metric in _OF_GROUPS:
        return "connectctl-group-task-metrics"
    if metric.startswith(_OF_LATENCY):
        return "connectctl-task-metrics"
    if metric.startswith(_OF_SINKS):
        return "kafka-connect-sink-task-metrics"
    if metric.startswith(_OF_ERRORS):
        return "kafka-connect-task-error-metrics"
    return f"kafka-connect-{'connector' if metric.startswith(_OF_TASKS) else 'source'}-task-metrics"


def labels_of(pairs: Mapping[str, Any]) -> str:
    """Return labels in the exposition format, without the braces."""
    return ",".join(f'{key}="{_escaped(str(value))}"' for key, value in pairs.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
