"""What a goal means for a check: whether it leads to exactly-once, and how bad it is if that is only the step after."""

from __future__ import annotations

from connectctl.ops.checks.types import Goal
from connectctl.ops.core.finding import Severity


def leads_to_enabled(enabled: bool | None, goal: Goal) -> bool:
    """Whether tasks have transactions when the goal is reached; not where that is today's state and unknown.

    ``preparing`` is the way to ``enabled`` for workers that are not there yet, and the way back for those that are.
    """
    if goal is Goal.NOW:
        return bool(enabled)
    return goal is Goal.ENABLED or (goal is Goal.PREPARING and not enabled)


def downgrade_severity(severity: Severity, goal: Goal) -> Severity:
    """The severity of what ``preparing`` does not bring about yet, and the step after it does."""
    return Severity.WARNING if goal is Goal.PREPARING and severity is Severity.ERROR else severity
