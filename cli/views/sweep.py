"""The plan of ``connectctl run JOB --sweep``."""

from __future__ import annotations

from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.cli.views.view import View
from connectctl.ops.operations.operation import Planned
from connectctl.ops.task_runtime.connectors.parquet_archive.sweep_steps import SHOWN, files_of


class SweepView(View):
    """The plan, with the names of the files."""

    def show(self, planned: Planned, output: Output) -> None:
        """Print the plan, and for people the first files of it."""
        super().show(planned, output)
        if not output.for_people:
            return
        files = files_of(planned.plan)
        for each in files[:SHOWN]:
            terminal.print_line(f"     {each.name} ({each.bytes:,} bytes)")
        if len(files) > SHOWN:
            terminal.print_line(
                f"     … and {len(files) - SHOWN:,} more; --dry-run -o json has them all."
            )
