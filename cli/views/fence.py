"""The output of ``connectctl fence``: the plan, and the result of each id."""

from __future__ import annotations

import sys
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import typer
from connectctl.cli.output import terminal
from connectctl.cli.output.progress_bar import progress
from connectctl.cli.output.tables import whole
from connectctl.cli.output.terminal import Output
from connectctl.cli.views.transactions import partition_names
from connectctl.cli.views.view import View
from connectctl.ops.operations.fencing.snapshot import (
    FenceAction,
    FenceOutcome,
    FenceSelection,
    FenceTarget,
    IdResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from connectctl.ops.core.context import RunContext
    from connectctl.ops.core.plan import Result
    from connectctl.ops.operations.fencing.steps import FenceContext
    from connectctl.ops.operations.operation import Planned

MOST_ROWS = 40
"""Rows of a plan shown before confirmation; --dry-run shows all."""
_OUTCOMES = {"leave alone": FenceOutcome.UNKNOWN, "cannot": FenceOutcome.FAILED}


class FenceView(View):
    """A table of transactional ids: with their states before, and with their results after."""

    def show(self, planned: Planned, output: Output) -> None:
        """Print the plan, with the state of each id as its preview."""
        selection = _selection_of(planned)
        preview = [_planned(selection, row) for row in selection.rows]
        findings = [finding.as_json() for finding in selection.findings]
        data = planned.plan.as_json() | {"preview": preview, "findings": findings}
        terminal.emit(
            "Plan", data, output, lambda wide: _print_rows(selection, selection.rows, wide)
        )
        terminal.findings(selection.findings)
        for row in selection.rows:
            if row.problem is not None and row.action is FenceAction.CANNOT:
                terminal.note(f"cannot: {row.id}: {row.problem.message}")

    def before(self, planned: Planned, output: Output, *, asked: bool) -> None:
        """Print the states of the ids, if standard input is a terminal."""
        selection = _selection_of(planned)
        if asked and (output.for_people or sys.stdin.isatty()):
            for line in whole(
                _columns(False),
                [_cells(selection, row, False) for row in selection.rows[:MOST_ROWS]],
            ):
                terminal.note(line)
            if len(selection.rows) > MOST_ROWS:
                terminal.note(
                    f"… and {len(selection.rows) - MOST_ROWS:,} more; --dry-run shows all."
                )
        terminal.findings(selection.findings)

    @contextmanager
    def execution(
        self, planned: Planned, context: RunContext, output: Output
    ) -> Iterator[Callable[[Result], None] | None]:
        """Show the progress, and the results of the ids once they are known, also after an
        interruption.
        """
        from connectctl.ops.operations.fencing.steps import FenceContext

        assert isinstance(context, FenceContext)
        selection, began = _selection_of(planned), time.monotonic()
        total, done = len(selection.to_fence), iter(range(1, len(selection.rows) + 1))
        with ExitStack() as stack:
            advance = stack.enter_context(progress(f"Fencing {total:,} ids"))

            def show() -> None:
                stack.close()
                _show_results(selection, context, time.monotonic() - began, output)

            def on_result(result: Result) -> None:
                if result.error is None and context.step == 0:
                    show()
                elif context.error is None:
                    failed = result.error is not None
                    terminal.note(
                        f"error: {result.error}"
                        if failed
                        else f"{result.outcome.value}: {result.description}"
                    )

            context.on_id = lambda result: advance(next(done), total)
            context.on_interrupt = show
            yield on_result

    def report(
        self,
        planned: Planned,
        context: RunContext | None,
        results: Sequence[Result],
        output: Output,
    ) -> None:
        """Raise the error because of which no id was fenced; exit with 1 if some were not, or could
        not be seen.
        """
        from connectctl.ops.operations.fencing.planning import refuse_denied
        from connectctl.ops.operations.fencing.steps import FenceContext, results_of

        selection = _selection_of(planned)
        if not isinstance(context, FenceContext):
            _show_results(selection, None, 0.0, output)
        elif context.error is not None:
            raise context.error
        _note_restart(selection, restarted=len(planned.plan.steps) > 1)
        fenced = results_of(selection, context.results if isinstance(context, FenceContext) else ())
        refuse_denied(fenced)
        failed = any(result.error is not None for result in results)
        if (
            failed
            or selection.unlisted
            or any(each.outcome is FenceOutcome.FAILED for each in fenced)
        ):
            raise typer.Exit(1)


def _selection_of(planned: Planned) -> FenceSelection:
    from connectctl.ops.operations.fencing.operation import FencePlan

    assert isinstance(planned, FencePlan)
    return planned.selection


def _note_restart(selection: FenceSelection, *, restarted: bool) -> None:
    """Print how to restart running tasks that were fenced."""
    connectors = dict.fromkeys(
        owner.connector for row in selection.to_fence for owner in row.running
    )
    if connectors and not restarted:
        names = " ".join(connectors)
        terminal.note(
            "Fenced tasks fail at their next write. Then restart them: connectctl connectors "
            f"restart {names} --only-failed"
        )


def _show_results(
    selection: FenceSelection, context: FenceContext | None, seconds: float, output: Output
) -> None:
    """Print the result of each id: data on standard output, findings on standard error."""
    from connectctl.ops.operations.fencing.steps import results_of

    results = results_of(selection, context.results if context else ())
    counts = Counter(result.outcome.value for result in results)
    data = {
        "clusterId": selection.cluster_id,
        "results": [result.as_json() for result in results],
        "summary": {outcome.value: counts[outcome.value] for outcome in FenceOutcome}
        | {"seconds": round(seconds, 3)},
    }
    terminal.emit("FenceResult", data, output, lambda wide: _print_results(results, wide))
    sys.stdout.flush()
    terminal.findings(context.findings if context else ())
    if output.for_people:
        summary = (
            ", ".join(
                f"{counts[outcome.value]:,} {outcome.value}"
                for outcome in FenceOutcome
                if counts[outcome.value]
            )
            or "Nothing to fence"
        )
        terminal.note(f"{summary} in {seconds:.2f} s" if counts else f"{summary}.")


def _planned(selection: FenceSelection, row: FenceTarget) -> dict[str, Any]:
    """Return a row of a dry run: the fields of a result without any change, and its plan."""

    found = row.transaction
    result = IdResult(
        row.id,
        _OUTCOMES.get(row.action.value, FenceOutcome.SKIPPED),
        row.connector,
        row.task,
        found.producer_id if found else None,
        found.epoch if found else None,
        problem=row.problem,
    )
    return result.as_json() | {"plan": row.as_json(selection.taken_at)}


# ------------------------------------------------------------------------------------------- tables


SPARE = ("CONNECTOR", "TASK", "PARTITIONS", "RUNS")
"""Columns that can be dropped: the transactional id or the plan implies them."""


def _columns(wide: bool) -> list[str]:
    more = ["PRODUCER", "EPOCH", "TIMEOUT"] if wide else []
    return [
        "TRANSACTIONAL-ID",
        "CONNECTOR",
        "TASK",
        "RUNS",
        "STATE",
        "OPEN",
        "PARTITIONS",
        *more,
        "PLAN",
    ]


def _print_rows(selection: FenceSelection, rows: Sequence[FenceTarget], wide: bool) -> None:
    terminal.table(
        _columns(wide),
        [_cells(selection, row, wide) for row in rows],
        empty="No transactional ids.",
        spare=() if wide else SPARE,
    )


def _cells(selection: FenceSelection, row: FenceTarget, wide: bool) -> list[str]:
    found = row.transaction
    seconds = found.seconds_open(selection.taken_at) if found else None
    shown = partition_names(found.partitions if found else (), wide)
    more = (
        [str(found.producer_id), str(found.epoch), f"{found.timeout_ms} ms"] if found else ["-"] * 3
    )
    return [
        row.id,
        row.connector or "-",
        "-" if row.task is None else str(row.task),
        "yes" if row.running else "no" if row.owners else "-",
        found.state if found else "unknown",
        terminal.duration(seconds),
        " ".join(shown) or "-",
        *(more if wide else []),
        row.action.value,
    ]


def _print_results(results: Sequence[IdResult], wide: bool) -> None:
    columns = ["TRANSACTIONAL-ID", "CONNECTOR", "TASK", "OUTCOME", "PRODUCER", "EPOCH", "ABORTED"]
    rows = [
        [
            result.id,
            result.connector or "-",
            "-" if result.task is None else str(result.task),
            result.outcome.value,
            "-" if result.producer_id is None else str(result.producer_id),
            f"{_number(result.epoch_before)} → {_number(result.epoch_after)}",
            "yes" if result.aborted else "no",
        ]
        for result in results
    ]
    terminal.table(columns, rows, spare=() if wide else ("CONNECTOR", "TASK", "PRODUCER"))
    problems = [r for r in results if r.problem and (wide or r.outcome is FenceOutcome.FAILED)]
    for result in problems[:MOST_ROWS]:
        assert result.problem
        terminal.note(
            f"{result.outcome.value}: {result.id}: {result.problem.code}: {result.problem.message}"
        )
    if len(problems) > MOST_ROWS:
        terminal.note(f"… and {len(problems) - MOST_ROWS:,} more; -o json lists all.")


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
