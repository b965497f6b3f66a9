"""Output of the demonstration: titles, commands as typed, and facts verified on the cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.cli.output import terminal
from connectctl.cli.output.sanitize import visible
from connectctl.ops.core.errors import ConnectctlError, TimedOut
from connectctl.ops.core.wait import wait_until

if TYPE_CHECKING:
    from connectctl.ops.sandbox.cluster import Sandbox
    from connectctl.ops.sandbox.command_line import Running

PATIENCE = 900.0
"""Seconds for each wait, enough for a busy machine."""
PAUSE = 0.05
"""Seconds between two lines while a file grows."""


@dataclass(frozen=True)
class DemoStage:
    """A sandbox, and a directory for the files that sources read."""

    sandbox: Sandbox
    files: Path

    @property
    def context(self) -> str:
        return f"sandbox-{self.sandbox.spec.name}"

    def run(self, *args: str) -> None:
        """Run connectctl as a user would, and print the command."""
        self.show(*args)
        self.connectctl(*args)

    def connectctl(self, *args: str) -> None:
        """Run connectctl in this process. Raises ``ConnectctlError`` if its exit code is not 0."""
        from connectctl.cli import main

        try:
            main.app(["--context", self.context, *args])
        except SystemExit as e:
            if e.code:
                raise _failed(args, e.code) from e
        sys.stdout.flush()

    def process(self, *args: str) -> Running:
        """Run connectctl in a child process, which can be killed, with this process's output."""
        from connectctl.ops.sandbox import command_line

        self.show(*args)
        return command_line.start("--context", self.context, *args)

    def run_to_end(self, *args: str) -> None:
        """Run a child process to its end. Raises ``ConnectctlError`` if its exit code is not 0."""
        if code := self.process(*args).wait():
            raise _failed(args, code)

    def show(self, *args: str) -> None:
        """Print a command as typed."""
        _line(f"$ connectctl --context {self.context} {' '.join(args)}", "bold")


@contextmanager
def growing(source: Path, what: str, at_once: int = 1) -> Iterator[None]:
    """Append numbered lines to the file in the background: ``at_once`` of them, then a pause."""
    from connectctl.ops.task_runtime.task.progress import heartbeat

    number = len(source.read_text().splitlines())
    with source.open("a") as file:

        def write() -> None:
            nonlocal number
            file.writelines(f"{what} {n}\n" for n in range(number, number + at_once))
            file.flush()
            number += at_once

        with heartbeat(write, PAUSE):
            yield


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until ``holds`` returns True. Raises ``TimedOut`` after ``PATIENCE``."""
    if not wait_until(lambda: holds() or None, PATIENCE, 0.2):
        raise TimedOut(f"Timed out after {PATIENCE:.0f} s waiting for {what}")


def title(text: str) -> None:
    _line(f"\n== {text}", "bold cyan")


def proved(text: str) -> None:
    """Print a fact that was verified on the cluster."""
    _line(f"✓ {text}", "green")


def _failed(args: tuple[str, ...], code: object) -> ConnectctlError:
    return ConnectctlError(f"connectctl {' '.join(args)} ended with exit code {code}")


def _line(text: str, style: str) -> None:
    if terminal.plain(sys.stdout):
        terminal.print_line(text)
    else:
        terminal.console().print(visible(text), style=style, markup=False)
    sys.stdout.flush()
