"""The result of the planner of a roll."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.plan import Noop

if TYPE_CHECKING:
    from connectctl.ops.core.finding import Finding


@dataclass(frozen=True)
class PlannedSteps:
    """The steps of an upgrade, or why nothing is to do; ``warnings`` and ``findings`` are read
    before they are confirmed.
    """

    steps: tuple[Any, ...] = ()
    warnings: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    unchanged: tuple[Noop, ...] = ()
