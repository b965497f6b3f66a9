"""Progress that the sandbox reports; the terminal decides how to show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SandboxProgress:
    """A stage that has begun or moved on. ``done`` of ``total`` steps; ``total`` 0 when a stage has
    no steps.
    """

    stage: str
    done: int = 0
    total: int = 0


OnProgress = Callable[[SandboxProgress], None]


def silent(progress: SandboxProgress) -> None:
    """Show nothing."""
