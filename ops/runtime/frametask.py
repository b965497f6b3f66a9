"""A task's part of a DataFrame: its Arrow batches through the kernel, with everything it needs as plain values."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from connectctl.ops.errors import ConnectctlError
from connectctl.ops.runtime.ahead import Ahead
from connectctl.ops.runtime.batchhandle import kind_for
from connectctl.ops.runtime.claims import Claiming
from connectctl.ops.runtime.leasedtask import FAILED, LONGEST_TRACE, Leased, Report, Terms, Work, kernel_of
from connectctl.ops.runtime.line import Line
from connectctl.ops.runtime.neighbours import Neighbours
from connectctl.ops.runtime.rows import Rows
from connectctl.ops.runtime.step import Counts

if TYPE_CHECKING:
    from connectctl.ops.runtime.late import Passed
    from connectctl.ops.runtime.line import Address
    from connectctl.ops.runtime.pieces import Columns
    from connectctl.ops.runtime.step import Ended, Supply

TO_THE_END = Terms(math.inf)


@dataclass(frozen=True)
class Writing:
    """What all tasks of a frame have in common. ``claims`` is where they ask whose a source partition is, None where the
    frame was shuffled by it; ``size`` is the number of rows of a transaction. ``passed``: see ``late``.
    """

    work: Work
    topic: str
    columns: Columns
    size: int
    claims: Address | None = None
    passed: Passed | None = None


@dataclass(frozen=True)
class FrameReport(Report):
    """A report of a task on rows, of which ``skipped`` were committed before."""

    skipped: int = 0


def run(
    writing: Writing, task: int, batches: Iterator[Any], terms: Terms = TO_THE_END, address: Address | None = None
) -> FrameReport:
    """One task's rows, in ``batches``. ``address`` is where it tells how far it is, and hears that it is to stop.

    Raises nothing that the rows or Kafka did: that is in the report, or Spark would try it again and again.
    """
    counts = Counts()
    work = writing.work
    claim = Claiming(writing.claims, task) if writing.claims is not None else lambda places: None
    ahead = Ahead(batches)
    rows = Rows(ahead, work.connector, writing.topic, writing.columns, writing.size, claim, writing.passed)
    why = trace = None
    try:
        ended = _run(work, task, rows, counts, terms, address)
        how, why = ended.how.value, ended.why
    except ConnectctlError as e:
        how, why, trace = FAILED, str(e), str(e)
    except Exception as e:  # noqa: BLE001  # whatever a batch holds, Spark would run it again for it
        how, why, trace = FAILED, f"{type(e).__name__}: {e}", traceback.format_exc()[-LONGEST_TRACE:]
    finally:
        ahead.close()
    return cast(FrameReport, FrameReport.of(task, how, counts, why=why, trace=trace, skipped=rows.skipped))


def _run(work: Work, task: int, rows: Rows, counts: Counts, terms: Terms, address: Address | None) -> Ended:
    near = Neighbours(work)
    supply: Supply = rows
    stopped: Callable[[], bool] = _never
    with ExitStack() as closing:
        if address is not None:
            line = Line(address)
            closing.callback(line.close)
            leased = Leased(rows, task, counts, terms, line)
            closing.callback(leased.say)
            supply, stopped = leased, leased.over
        kind = kind_for(near.target, work.manner.properties)
        kernel = closing.enter_context(kernel_of(work, near, task, rows.producer, stopped, counts, kind))
        return kernel.run(supply)


def _never() -> bool:
    return False
