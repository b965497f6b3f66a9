"""``connectctl run --init NAME``: the files of a new source connector."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from connectctl.cli.output import terminal
from connectctl.cli.output.terminal import Output
from connectctl.ops.core.errors import BadInput
from connectctl.ops.task_runtime.job.skeleton import skeleton, write


def write_skeleton(path: Path, given: Mapping[str, Any], *, dry_run: bool, output: Output) -> None:
    """Write the files. Raises ``BadInput`` for ``given`` options of a run, which have no effect
    here.
    """
    if unused := [name for name, value in given.items() if value]:
        raise BadInput(f"{unused[0]} has no effect with --init", next_step=f"Remove {unused[0]}.")
    files = skeleton(path)
    if not dry_run:
        write(files)
    module, test, job = map(str, files)

    def table(wide: bool) -> None:
        terminal.print_line(
            "\n".join(f"{'would write' if dry_run else 'wrote'} {file}" for file in files)
        )
        if not dry_run:
            terminal.print_line(f"Next: pytest {test}; connectctl --group-id GROUP run {job}")

    terminal.emit(
        "RunSkeleton",
        {"module": module, "test": test, "job": job, "written": not dry_run},
        output,
        table,
    )
