"""The intended state of a cluster, and its effect on the severity of a fault."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from connectctl.ops.core.finding import Severity


class Goal(StrEnum):
    """The intended state of the cluster; NOW evaluates the present one."""

    NOW = "now"
    PREPARING = "preparing"
    ENABLED = "enabled"
    DOWNGRADE = "downgrade"


def leads_to_enabled(enabled: bool | None, goal: Goal) -> bool:
    """Return whether tasks have transactions under the goal; False if that is the present state and
    unknown.

    ``preparing`` leads to ``enabled`` for workers that are disabled, and to ``disabled`` for
    workers that are enabled.
    """
    if goal is Goal.NOW:
        return bool(enabled)
    return goal is Goal.ENABLED or (goal is Goal.PREPARING and not enabled)


class _OfCluster(Protocol):
    @property
    def enabled(self) -> bool | None: ...


def enabling(facts: _OfCluster, goal: Goal) -> bool:
    """Return whether tasks have transactions under the goal, for facts with the present state."""
    return leads_to_enabled(facts.enabled, goal)


def downgrade_severity(severity: Severity, goal: Goal) -> Severity:
    """Return the severity of a fault that only the step after ``preparing`` causes."""
    return Severity.WARNING if goal is Goal.PREPARING and severity is Severity.ERROR else severity
