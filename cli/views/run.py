"""Output of ``connectctl run``: progress and results, as text and JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from connectctl.cli.output import drawn_line, terminal
from connectctl.cli.output.waiting import quiet
from connectctl.ops.core.finding import counted
from connectctl.ops.task_runtime.job.stall_report import waiting
from connectctl.ops.task_runtime.spi.latency_meter import LatencyMeter, in_ms
from connectctl.ops.task_runtime.spi.metrics import metrics

if TYPE_CHECKING:
    from connectctl.ops.task_runtime.attempt.control_channel import DriverChannel
    from connectctl.ops.task_runtime.job.prepare import PreparedJob
    from connectctl.ops.task_runtime.job.runner import JobResult
    from connectctl.ops.task_runtime.job.scheduler import JobRun

REDRAW_INTERVAL, LINE_INTERVAL = 1.0, 10.0
"""Seconds between two reports of progress: on a terminal, which redraws the line, and elsewhere."""
MEASURED = ("BATCH AVG/MAX", "POLL MS AVG/MAX", "COMMIT MS AVG/MAX", "VISIBLE MS P50/P99")
"""Columns for performance, in wide tables."""
SIZES = ("min", "avg", "max")
Report = Callable[["JobRun", "DriverChannel"], None]


@contextmanager
def progress(ready: PreparedJob) -> Iterator[Report]:
    """Yield the callback of a run; it redraws a line on standard error, or prints one at
    intervals.
    """
    redrawn = not terminal.plain(sys.stderr)
    every = REDRAW_INTERVAL if redrawn else LINE_INTERVAL
    began = last = time.monotonic()
    records = 0

    def report(run: JobRun, board: DriverChannel) -> None:
        nonlocal last, records
        now = time.monotonic()
        if now - last < every:
            return
        line, total = progress_line(ready.name, run, board.messages, now - last, records)
        last, records = now, total
        if redrawn:
            drawn_line.draw(line)
        else:
            terminal.note(f"{line}, {terminal.duration(now - began)}")

    try:
        with quiet():
            yield report
    finally:
        drawn_line.erase()


def progress_line(
    name: str,
    run: JobRun,
    task_reports: Mapping[int, Mapping[str, Any]],
    seconds: float,
    before: int,
) -> tuple[str, int]:
    """Return the progress of a run, and its records so far."""
    now = dict(task_reports)
    records = run.records
    done = sum(total.transactions for total in run.totals.values())
    rate = max(0.0, (records - before) / seconds)
    parts = [
        counted(records, "record"),
        f"{rate:,.0f}/s",
        counted(done, "transaction"),
        counted(len(run.totals), "task"),
    ]
    lags = [int(report["lag"]) for report in now.values() if report.get("lag") is not None]
    parts += [f"lag {sum(lags):,}"] if lags else []
    parts += waiting(now)
    unwritten = sum(map(len, run.unwritten.values()))
    parts += (
        [f"{counted(unwritten, 'offset')} missing in the global offsets topic"] if unwritten else []
    )
    parts += [counted(run.lost_rounds, "lost round")] if run.lost_rounds else []
    return f"{name}: {', '.join(parts)}", records


def as_json(ready: PreparedJob, result: JobResult) -> dict[str, Any]:
    """Return the result of a run as JSON."""
    return {
        "connector": ready.name,
        "groupId": ready.group,
        "guarantee": "exactly-once" if ready.delivery.exactly_once else "at-least-once",
        "outcome": result.outcome.value,
        "why": result.run.reason,
        "connectorFailure": result.connector_failure,
        "seconds": round(result.seconds, 3),
        "records": result.run.records,
        "lostRounds": result.run.lost_rounds,
        "latency": _latency(result.run.latency),
        "topics": {**ready.topics, "ownOffsets": ready.dedicated_offsets_topic},
        "tasks": [
            {
                "task": number,
                "state": total.end,
                "failure": total.failure,
                "records": total.records,
                "transactions": total.transactions,
                "aborted": total.aborted,
                "transactionSize": _size(metrics(total)),
                "producers": total.instances,
                "fenced": total.fenced,
                "doubts": total.doubts,
                "globalOffsetsUnwritten": len(total.unwritten),
                "metrics": metrics(total),
            }
            for number, total in result.run.totals.items()
        ],
    }


def _latency(meter: LatencyMeter) -> dict[str, Any] | None:
    """Latency from poll to visible, of all tasks; None if nothing was measured."""
    if not meter.counts:
        return None
    return {
        "records": meter.records,
        "p50Ms": in_ms(meter.quantile(0.5)),
        "p99Ms": in_ms(meter.quantile(0.99)),
        "maxMs": in_ms(meter.longest),
        "promiseMs": in_ms(meter.promise),
        "promiseKept": None if meter.promise is None else not meter.broken,
        "transactionsOverPromise": meter.missed,
    }


def _size(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {which: metrics[f"transaction-size-{which}"] for which in SIZES}


def show(ready: PreparedJob, result: JobResult, wide: bool) -> None:
    """Print the result of a run as a table."""
    columns = ["TASK", "STATE", "RECORDS", "TRANSACTIONS", "SIZE MIN/AVG/MAX"]
    columns += ["ABORTED", "PRODUCERS", "FENCED", "DOUBTS", *MEASURED] if wide else []
    rows = []
    for number, t in result.run.totals.items():
        found = metrics(t)
        row = [str(number), t.end, f"{t.records:,}", f"{t.transactions:,}", sizes(found)]
        more = (t.aborted, t.instances, t.fenced, t.doubts)
        rows.append([*row, *map(str, more), *measured(found)] if wide else row)
    rate = f", {result.run.records / result.seconds:,.0f}/s" if result.run.records else ""
    time_ = terminal.duration(result.seconds)
    terminal.print_wrapped(
        f"{ready.name}: {result.outcome.value} with {counted(result.run.records, 'record')} in {time_}{rate}"
    )
    terminal.table(columns, rows, empty=f"{ready.name} has no tasks.")


def sizes(metrics: Mapping[str, Any]) -> str:
    """Return records per transaction: minimum, mean and maximum."""
    return _numbers(metrics.get(f"transaction-size-{which}") for which in SIZES)


def measured(metrics: Mapping[str, Any]) -> list[str]:
    """Return the values of the columns ``MEASURED``."""
    stems = ("batch-size-{}", "poll-batch-{}-time-ms", "offset-commit-{}-time-ms")
    found = [
        _numbers(metrics.get(stem.format(which)) for which in ("avg", "max")) for stem in stems
    ]
    return [
        *found,
        _numbers(metrics.get(f"poll-to-visible-{which}-time-ms") for which in ("p50", "p99")),
    ]


def _numbers(values: Iterable[float | None]) -> str:
    found = list(values)
    return "-" if None in found else "/".join(f"{round(value or 0, 1):g}" for value in found)


def failures(ready: PreparedJob, result: JobResult) -> Iterator[str]:
    """Yield one line for each failure."""
    if result.connector_failure:
        yield f"error: The connector {ready.name} is FAILED: {result.connector_failure}"
    if result.outcome == "taken":
        yield f"error: {ready.name} was taken over by another run or worker: {result.run.reason}"
    for number, total in result.run.totals.items():
        if total.failure:
            yield (
                f"error: Task {number} of {ready.name} is FAILED: {' '.join(total.failure.split())}"
            )


def warnings(ready: PreparedJob, result: JobResult) -> Iterator[str]:
    """Yield one line for each task that failed while stopping, lost source offsets, or lags in the
    global offsets topic; and for a missed latency promise.
    """
    latency = result.run.latency
    if latency.broken:
        p99, promise = latency.quantile(0.99), latency.promise
        yield (
            f"warning: latency promise missed: p99 {_milliseconds(p99)} of {ready.name}, "
            f"{_milliseconds(promise)} promised (transaction.boundary.latency.ms); transactions "
            f"with a record that took longer: {latency.missed:,}"
        )
    for number, total in result.run.totals.items():
        if total.stop_failure:
            why = " ".join(total.stop_failure.split())
            yield (
                f"warning: Task {number} of {ready.name} failed while stopping; no records were "
                f"lost: {why}"
            )
        if total.meter.lost:
            yield (
                f"warning: Task {number} of {ready.name} did not copy {total.meter.lost:,} "
                "offsets that the source had lost (connectctl preflight --explain COPY001)"
            )
        if total.unwritten:
            why = " ".join((total.unwritten_because or "no response").split())
            yield (
                f"warning: Could not write {counted(len(total.unwritten), 'offset')} of task {number} to "
                f"the global offsets topic {ready.topics['offsets']}: {why}. "
                f"{ready.dedicated_offsets_topic} has them; to copy them: connectctl offsets "
                f"merge {ready.name} --into global --stop"
            )


def _milliseconds(seconds: float | None) -> str:
    return f"{(seconds or 0) * 1000:,.0f} ms"


def exit_code(result: JobResult) -> int:
    """Return 0 for a run that ended or was stopped, else 1."""
    return 0 if result.outcome in ("ended", "stopped") else 1
