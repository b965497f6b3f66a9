"""Changes of offsets: the records to write before, the results after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from connectctl.cli import apply
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.views.view import View
from connectctl.ops.config.masking import addresses_masked
from connectctl.ops.core.context import RunContext
from connectctl.ops.core.plan import Result
from connectctl.ops.core.step import Step
from connectctl.ops.operations.offsets.operations import OffsetsPlan
from connectctl.ops.operations.offsets.planning import Changes
from connectctl.ops.operations.offsets.record_changes import Conflict, RecordChange
from connectctl.ops.operations.operation import Planned
from connectctl.ops.operations.sink_offsets.planning import GroupChanges

SHOWN = 20
"""The most records or offsets shown of a plan; all are in ``-o json``."""


class OffsetsView(View):
    """The plan with the records, or the committed offsets, that it would write now."""

    def show(self, planned: Planned, output: Output) -> None:
        """Print the plan; for scripts its preview has every record."""
        changes = _changes_of(planned)
        in_full = output in (Output.JSON, Output.YAML)
        data = planned.plan.as_json() | {"preview": _preview(changes, output)} if in_full else {}

        def table(wide: bool) -> None:
            apply.print_plan(planned.plan)
            for line in _lines(changes):
                terminal.print_wrapped(line)

        terminal.emit("Plan", data, output, table)

    def before(self, planned: Planned, output: Output, *, asked: bool) -> None:
        """Print the records, if standard input is a terminal."""
        if asked and apply.somebody_is_there():
            for line in _lines(_changes_of(planned)):
                terminal.note(line)

    def on_step(
        self, planned: Planned, context: RunContext, output: Output
    ) -> Callable[[Step[Any]], None]:
        """Announce each step: reading and writing of many offsets takes a while."""
        return apply.announce

    def report(
        self,
        planned: Planned,
        context: RunContext | None,
        results: Sequence[Result],
        output: Output,
    ) -> None:
        """Print the results for scripts."""
        if output.for_people:
            if not planned.plan.steps:
                terminal.print_line("Nothing to do.")
            return
        run = context.run if context else None
        data = {
            "operation": planned.plan.operation,
            "clusterId": planned.plan.cluster_id,
            "run": run.id if run else None,
            "recordsPlanned": len(_changes_of(planned).writes),
            "results": [result.as_json() for result in results],
        }
        terminal.emit("OffsetsResult", data, output, lambda wide: None)


def _changes_of(planned: Planned) -> Changes | GroupChanges:
    assert isinstance(planned, OffsetsPlan)
    return planned.changes


def _preview(changes: Changes | GroupChanges, output: Output) -> list[Any]:
    """Return the records to write, then the conflicts."""
    if isinstance(changes, GroupChanges):
        return changes.preview()
    items: list[RecordChange | Conflict] = [*changes.writes, *changes.conflicts]
    return terminal.each(items, _as_json, output)


def _as_json(item: RecordChange | Conflict) -> dict[str, Any]:
    return {"conflict": item.as_json()} if isinstance(item, Conflict) else item.as_json()


def _lines(changes: Changes | GroupChanges) -> Iterator[str]:
    """Yield the first records or offsets to write, with their former values, and the conflicts."""
    of_kind: Callable[[Any], Iterator[str]] = (
        _of_group if isinstance(changes, GroupChanges) else _of_records
    )
    yield from of_kind(changes)
    if len(changes.writes) > SHOWN:
        what = "offsets" if isinstance(changes, GroupChanges) else "records"
        yield (
            f"  … and {len(changes.writes) - SHOWN:,} more {what}; --dry-run -o json has them all."
        )
    for conflict in () if isinstance(changes, GroupChanges) else changes.conflicts[:SHOWN]:
        sides = (
            f"global {conflict.global_ or 'a tombstone'}, dedicated "
            f"{conflict.dedicated or 'a tombstone'}"
        )
        yield addresses_masked(
            f"  {conflict.key}: {sides}; taken: {conflict.taken}, because {conflict.why}"
        )


def _of_group(changes: GroupChanges) -> Iterator[str]:
    for group, write in changes.writes[:SHOWN]:
        before, after = (
            "nothing" if offset is None else offset for offset in (write.before, write.after)
        )
        yield f"  {group}  {write.partition}: {before} -> {after}"


def _of_records(changes: Changes) -> Iterator[str]:
    for write in (record.as_json() for record in islice(changes.writes, SHOWN)):
        before, after = write["before"] or "nothing", write["after"] or "a tombstone"
        yield addresses_masked(f"  {write['topic']}  {write['key']}: {before} -> {after}")
