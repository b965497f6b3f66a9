"""A bar of progress on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from connectctl.cli.output import terminal
from connectctl.cli.output.sanitize import visible
from connectctl.cli.output.waiting import ON_TERMINAL, quiet


@contextmanager
def progress(what: str) -> Iterator[Callable[[float, float], None]]:
    """Show a progress bar on a terminal's standard error if the work takes longer than a second.

    Yields ``advance(done, total)``.
    """
    if terminal.plain(sys.stderr):
        yield lambda done, total: None
        return
    began, bar, task = time.monotonic(), None, None
    with ExitStack() as shown:

        def advance(done: float, total: float) -> None:
            nonlocal bar, task
            if bar is None and time.monotonic() - began > ON_TERMINAL:
                shown.enter_context(quiet())
                bar, task = _bar(what)
                shown.callback(bar.stop)
            if bar is not None:
                bar.update(task, completed=done, total=total)

        yield advance


def _bar(what: str) -> tuple[Any, Any]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=terminal.console(stderr=True), transient=True)
    bar.start()
    return bar, bar.add_task(visible(what), total=None)
