"""Runs a frame's fenced tasks once more, while no newer generation exists.

They were fenced by an attempt of the same generation: an older one that was suspended, or its
request that a slow network delivered late (InitProducerId raises the epoch whenever it arrives).
Another writer would have written its own task configs, and tasks read those: they are stale then,
and are not run again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace

from connectctl.ops.task_runtime.dataframe.micro_batch import Late
from connectctl.ops.task_runtime.dataframe.task import FrameReport, joined
from connectctl.ops.task_runtime.job.scheduler import MAX_FENCED_ROUNDS, PAUSE
from connectctl.ops.task_runtime.spi.transaction_batch import EndReason


def until_through(
    once: Callable[[Collection[int] | None], list[FrameReport]],
    late: Late | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> list[FrameReport]:
    """Return the reports of ``once``, which runs the tasks that it receives (None: all), over as
    many passes as necessary.

    Ends if tasks were fenced ``MAX_FENCED_ROUNDS`` times in succession without a record. ``late``
    is the treatment of late rows.
    """
    reports = {report.task: report for report in once(None)}
    fruitless = 0
    while fenced := [task for task, report in reports.items() if report.reason == EndReason.FENCED]:
        if any(
            report.reason not in (EndReason.FENCED, EndReason.ENDED) for report in reports.values()
        ):
            break  # it fails all the same
        sleep(PAUSE)
        progress = False
        for report in once(fenced):
            progress |= report.records > 0 or report.reason != EndReason.FENCED
            reports[report.task] = _both(reports[report.task], report, late)
        fruitless = 0 if progress else fruitless + 1
        if fruitless >= MAX_FENCED_ROUNDS - 1:
            break
    return [reports[task] for task in sorted(reports)]


def _both(first: FrameReport, then: FrameReport, late: Late | None) -> FrameReport:
    """Return one report of a task that was run twice: the second pass skipped the rows that the
    first had committed.
    """
    # Rows that are dropped are dropped, and counted, again; those that were kept are known by then.
    late_rows = then.late if late is Late.DROP else first.late + then.late
    return replace(
        joined(first, then),
        skipped=max(first.skipped, then.skipped - first.records),
        late=late_rows,
    )
