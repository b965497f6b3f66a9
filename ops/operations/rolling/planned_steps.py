"""The result of the planner of a roll."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from connectctl.ops.core.finding import Finding
from connectctl.ops.core.plan import Noop


@dataclass(frozen=True)
class PlannedSteps:
    """The steps of an upgrade, or why nothing is to do; ``warnings`` and ``findings`` are read
    before they are confirmed.
    """

    steps: tuple[Any, ...] = ()
    warnings: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    unchanged: tuple[Noop, ...] = ()
