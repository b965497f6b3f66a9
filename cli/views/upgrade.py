"""The output of an upgrade: its progress, and how to continue after a pause."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.views.view import View
from connectctl.migrations.operation import Upgrade
from connectctl.ops.core.context import RunContext
from connectctl.ops.core.plan import Result
from connectctl.ops.core.step import Step
from connectctl.ops.operations.operation import Planned
from connectctl.ops.operations.upgrade.context import UpgradeContext


class UpgradeView(View):
    """The plan; then each step with its number and what it waits for, and its result."""

    def of_resumed_run(self) -> View:
        """Return the same presentation."""
        return self

    @contextmanager
    def execution(
        self, planned: Planned, context: RunContext, output: Output
    ) -> Iterator[Callable[[Result], None] | None]:
        """Print instructions for the operator, what is awaited, and results."""
        assert isinstance(context, UpgradeContext)
        context.tell = lambda line: terminal.note(line, style="bold")
        context.progress = lambda line: terminal.note(f"       {line}", style="dim")
        with super().execution(planned, context, output) as on_result:
            yield on_result

    def on_step(
        self, planned: Planned, context: RunContext, output: Output
    ) -> Callable[[Step[Any]], None]:
        """Announce each step with its number."""
        total = len(planned.plan.steps)
        return lambda step: terminal.note(
            f"[{context.step + 1}/{total}] {step.describe()} …", style="dim"
        )

    def report(
        self,
        planned: Planned,
        context: RunContext | None,
        results: Sequence[Result],
        output: Output,
    ) -> None:
        """Print the results for scripts, and the next command if the run paused."""
        plan, run = planned.plan, context.run if context else None
        paused = isinstance(context, UpgradeContext) and not context.is_done()
        next_step = f"{Upgrade.resume_command} {run.id}" if run and paused else None
        data = {
            "operation": plan.operation,
            "clusterId": plan.cluster_id,
            "groupId": plan.group_id,
            "run": run.id if run else None,
            "paused": next_step is not None,
            "results": [result.as_json() for result in results if context],
            "nextStep": next_step,
        }
        done = f"Done, run {run.id}. See connectctl upgrade status." if run else "Nothing to do."
        line = f"Paused. Resume with: {next_step}" if next_step else done
        terminal.emit("UpgradeResult", data, output, lambda wide: terminal.print_wrapped(line))
