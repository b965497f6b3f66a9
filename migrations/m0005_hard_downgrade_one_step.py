"""Hard downgrade in one step: older binaries at once, worker by worker; tasks may fail until it is
over.

KIP-618, Single-step downgrade: half the restarts of the two-step one. While some workers are
enabled and the leader is already older, tasks that start on an enabled worker cannot have their
predecessors fenced, and fail. The gates tolerate such tasks, and they are restarted when no enabled
worker is left.

Before it, the offsets of connectors with a dedicated offsets topic are merged into the global
topic, as in two steps.

Guaranteed: one worker at a time, the leader last; at the end every task that failed for lack of
fencing runs again. Not guaranteed: that all tasks run throughout.
"""

from __future__ import annotations

from connectctl.migrations import hard_downgrade
from connectctl.migrations.registry import MigrationInput
from connectctl.ops.operations.rolling.planned_steps import PlannedSteps
from connectctl.ops.operations.upgrade.planning import RollRequest

NAME = "hard-downgrade-one-step"


def plan(inputs: MigrationInput) -> PlannedSteps:
    """Older binaries in one roll, then a restart of tasks that failed in it."""
    return hard_downgrade.plan(inputs, RollRequest(None, binaries=True))


MIGRATION = hard_downgrade.migration(5, NAME, __doc__, plan)
