"""The presentation of an operation: what is printed before, while and after it is executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from connectctl.cli import apply
from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.ops.core.context import RunContext
from connectctl.ops.core.plan import Result
from connectctl.ops.core.step import Step
from connectctl.ops.operations.operation import Operation, Planned


class View:
    """The presentation of most operations: the steps of the plan, and a line for each result."""

    def show(self, planned: Planned, output: Output) -> None:
        """Print the plan on standard output, for ``--dry-run``."""
        terminal.findings(planned.findings)
        apply.show(planned.plan, output, planned.findings)

    def before(self, planned: Planned, output: Output, *, asked: bool) -> None:
        """Print details on standard error before the confirmation; ``asked``: there will be one."""
        terminal.findings(planned.findings)

    @contextmanager
    def execution(
        self, planned: Planned, context: RunContext, output: Output
    ) -> Iterator[Callable[[Result], None] | None]:
        """Yield the function that prints each result, None for scripts."""
        yield apply.print_result if output.for_people else None

    def of_resumed_run(self) -> View:
        """Return the presentation of a run that is resumed."""
        return View()

    def on_step(
        self, planned: Planned, context: RunContext, output: Output
    ) -> Callable[[Step[Any]], None]:
        """Return the function that announces steps before their execution: waits, for people."""

        def waits(step: Step[Any]) -> None:
            if output.for_people and step.describe().startswith("wait"):
                apply.announce(step)

        return waits

    def report(
        self,
        planned: Planned,
        context: RunContext | None,
        results: Sequence[Result],
        output: Output,
    ) -> None:
        """Print the results for scripts, and exit with the code for them. Without steps,
        ``context`` is None.
        """
        if context is None and not results and output.for_people:
            terminal.print_line("Nothing to do.")
        apply.report(planned.plan, results, output)


def view_of(operation: Operation[Any, Any]) -> View:
    """Return the presentation of an operation: its own, or a list of steps."""
    if operation.view is None:
        return View()
    module, _, kind = operation.view.partition(".")
    view: View = getattr(import_module(f"connectctl.cli.views.{module}"), kind)()
    return view
