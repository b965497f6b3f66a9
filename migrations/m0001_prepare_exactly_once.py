"""Prepare exactly-once source support: one roll that makes every worker ``preparing``.

The first of the two rolls of KIP-618. A worker in ``preparing`` writes the config topic with a
transactional producer when it leads, so that a replaced leader that is still running is fenced, and
no other worker writes there. Its tasks continue with at-least-once delivery. Connectors do not
change, and the roll can be rolled back at any time.

Guaranteed: workers are restarted one by one, the leader last, the next only when the cluster is
healthy again. A worker that is already ``enabled`` stays so; ``--to preparing`` sets it back.
"""

from __future__ import annotations

from connectctl.migrations.registry import Migration, MigrationInput, MigrationStatus, up_to
from connectctl.ops.operations.rolling.planned_steps import PlannedSteps
from connectctl.ops.operations.upgrade import planning
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.planning import RollRequest
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot

NAME = "prepare-exactly-once"


def plan(inputs: MigrationInput) -> PlannedSteps:
    """Every worker becomes preparing; those that are enabled stay enabled."""
    stay = {
        w.address: SourceSupport.ENABLED
        for w in inputs.snapshot.workers
        if w.value is SourceSupport.ENABLED
    }
    request = RollRequest(SourceSupport.PREPARING, targets=stay)
    return planning.plan(inputs.snapshot, request, inputs.findings, inputs.before)


def status(snapshot: RollingSnapshot) -> MigrationStatus:
    """Converged if every worker is at least preparing."""
    return up_to(snapshot, (SourceSupport.PREPARING, SourceSupport.ENABLED))


MIGRATION = Migration(
    1, NAME, __doc__, plan, status, leads_to="preparing", satisfies=("preparing", "enabled")
)
