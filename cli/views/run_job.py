"""The presentation of ``connectctl run``: its plan, its progress, and what it came to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from connectctl.cli.output import terminal
from connectctl.cli.output.prometheus import RunMetrics
from connectctl.cli.output.terminal import Output
from connectctl.cli.output.waiting import waiting
from connectctl.cli.views import run as run_view
from connectctl.cli.views.view import View
from connectctl.ops.core.context import RunContext
from connectctl.ops.core.errors import ConnectctlError
from connectctl.ops.core.plan import Result
from connectctl.ops.operations.operation import Planned
from connectctl.ops.task_runtime.attempt.control_channel import HEARTBEAT, DriverChannel
from connectctl.ops.task_runtime.job.job_context import SparkJobContext
from connectctl.ops.task_runtime.job.planned_run import PlannedRun
from connectctl.ops.task_runtime.job.scheduler import JobRun


class RunView(View):
    """The plan; then a line of progress, and the result of the tasks."""

    metrics: RunMetrics | None = None

    def show(self, planned: Planned, output: Output) -> None:
        """Print the plan. Raises ``TooManyTasks`` if none of its tasks may run."""
        _refuse(planned)
        super().show(planned, output)

    def before(self, planned: Planned, output: Output, *, asked: bool) -> None:
        """Create the file of metrics. A run that is refused is stored only without a
        confirmation.
        """
        if asked:
            _refuse(planned)
        run = _of(planned)
        if path := run.access.request.metrics:
            self.metrics = RunMetrics(Path(path), run.job.name, run.job.group)

    @contextmanager
    def execution(
        self, planned: Planned, context: RunContext, output: Output
    ) -> Iterator[Callable[[Result], None] | None]:
        """Show the progress, and write the file of metrics. Exits with the code for the tasks that
        failed.
        """
        job = _of(planned).job
        assert isinstance(context, SparkJobContext)
        try:
            with run_view.progress(job) as report, waiting(f"{job.name}: starting") as start:
                written = 0.0

                def tell(run: JobRun, board: DriverChannel) -> None:
                    nonlocal written
                    start.end()
                    report(run, board)
                    if time.monotonic() - written >= HEARTBEAT:
                        self._follow(run)
                        written = time.monotonic()

                context.tell = tell
                yield _report_error
        except ConnectctlError:
            if context.result is not None:
                self.report(planned, context, (), output)
            raise
        finally:
            if context.is_held and context.run is not None:
                terminal.note(
                    f"{job.name} was not resumed on its workers. If nothing else runs it: "
                    f"connectctl runs resume {context.run.id}"
                )

    def _follow(self, run: JobRun) -> None:
        if self.metrics is not None:
            self.metrics.follow(run)

    def report(
        self,
        planned: Planned,
        context: RunContext | None,
        results: Sequence[Result],
        output: Output,
    ) -> None:
        """Print what the tasks came to, and exit with the code for it."""
        assert isinstance(context, SparkJobContext)
        assert context.result is not None
        job, result = _of(planned).job, context.result
        self._follow(result.run)
        terminal.emit(
            "TaskRun",
            run_view.as_json(job, result),
            output,
            lambda wide: run_view.show(job, result, wide),
        )
        for line in run_view.warnings(job, result):
            terminal.note(line)
        for line in run_view.failures(job, result):
            terminal.note(line, style="red")
        if code := run_view.exit_code(result):
            raise typer.Exit(code)


def _of(planned: Planned) -> PlannedRun:
    assert isinstance(planned, PlannedRun)
    return planned


def _refuse(planned: Planned) -> None:
    if (refusal := _of(planned).refusal) is not None:
        raise refusal


def _report_error(result: Result) -> None:
    if result.error is not None:
        terminal.note(f"error: {result.error}", style="red")
