"""The output of ``connectctl fence``: the plan, and the result of each id."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from connectctl.cli.output import terminal
from connectctl.cli.output.tables import whole
from connectctl.cli.output.terminal import Output
from connectctl.ops.operations.fencing.snapshot import FenceAction, FenceOutcome, FenceSelection, FenceTarget, IdResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from connectctl.ops.core.plan import Plan
    from connectctl.ops.operations.fencing.steps import FenceContext

MOST_ROWS = 40
"""Rows of a plan shown before confirmation; --dry-run shows all."""
_PLACES = 3
_OUTCOMES = {"leave alone": FenceOutcome.UNKNOWN, "cannot": FenceOutcome.FAILED}


def show_plan(selection: FenceSelection, plan: Plan, output: Output) -> None:
    """Print a dry run: the plan on standard output, as JSON also for ``runs apply``; findings on standard error."""
    results = [_planned(selection, row) for row in selection.rows]
    counts = Counter(result["outcome"] for result in results)
    data = _envelope(selection.cluster_id, True, results, counts, 0.0)
    data["findings"] = [finding.as_json() for finding in selection.findings]
    data["plan"] = plan.as_json()
    terminal.emit("FenceResult", data, output, lambda wide: _print_rows(selection, selection.rows, wide))
    terminal.findings(selection.findings)
    for row in selection.rows:
        if row.problem is not None and row.action is FenceAction.CANNOT:
            terminal.note(f"cannot: {row.id}: {row.problem.message}")


def show_rows(selection: FenceSelection) -> None:
    """Print the plan on standard error, before confirmation."""
    for line in whole(_columns(False), [_cells(selection, row, False) for row in selection.rows[:MOST_ROWS]]):
        terminal.note(line)
    if len(selection.rows) > MOST_ROWS:
        terminal.note(f"… and {len(selection.rows) - MOST_ROWS:,} more; --dry-run shows all.")


def show_results(selection: FenceSelection, context: FenceContext, seconds: float, output: Output) -> None:
    """Print the result of each id: data on standard output, findings on standard error."""
    from connectctl.ops.operations.fencing.steps import results_of

    results = results_of(selection, context)
    counts = Counter(result.outcome.value for result in results)
    rows = [result.as_json() for result in results]
    data = _envelope(selection.cluster_id, False, rows, counts, round(seconds, 3))
    terminal.emit("FenceResult", data, output, lambda wide: _print_results(results, wide))
    sys.stdout.flush()
    terminal.findings(context.findings)
    if output.for_people:
        summary = (
            ", ".join(f"{counts[outcome.value]:,} {outcome.value}" for outcome in FenceOutcome if counts[outcome.value])
            or "Nothing to fence"
        )
        terminal.note(f"{summary} in {seconds:.2f} s" if counts else f"{summary}.")


def _envelope(
    cluster_id: str, dry_run: bool, results: list[dict[str, Any]], counts: Counter[str], seconds: float
) -> dict[str, Any]:
    summary: dict[str, Any] = {outcome.value: counts[outcome.value] for outcome in FenceOutcome}
    return {"clusterId": cluster_id, "dryRun": dry_run, "results": results, "summary": summary | {"seconds": seconds}}


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


# -------------------------------------------------------------------------------------------------------------- tables


SPARE = ("CONNECTOR", "TASK", "PARTITIONS", "RUNS")
"""Columns that can be dropped: the transactional id or the plan implies them."""


def _columns(wide: bool) -> list[str]:
    more = ["PRODUCER", "EPOCH", "TIMEOUT"] if wide else []
    return ["TRANSACTIONAL-ID", "CONNECTOR", "TASK", "RUNS", "STATE", "OPEN", "PARTITIONS", *more, "PLAN"]


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
    places = list(map(str, found.partitions)) if found else []
    shown = places if wide else places[:_PLACES] + ([f"+{len(places) - _PLACES}"] if len(places) > _PLACES else [])
    more = [str(found.producer_id), str(found.epoch), f"{found.timeout_ms} ms"] if found else ["-"] * 3
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
        terminal.note(f"{result.outcome.value}: {result.id}: {result.problem.code}: {result.problem.message}")
    if len(problems) > MOST_ROWS:
        terminal.note(f"… and {len(problems) - MOST_ROWS:,} more; -o json lists all.")


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
