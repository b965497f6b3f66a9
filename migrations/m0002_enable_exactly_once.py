"""Enable exactly-once source support: every worker ``enabled``, through ``preparing`` where it is
not there yet.

The second roll of KIP-618, and the first before it for the workers that need it. The second begins
only when every worker is at least ``preparing``: verified where possible, configured in its
properties, or assumed because connectctl restarted it so. From the first enabled worker on, source
tasks assigned to it write records and offsets in transactions, after a round of zombie fencing by
the leader.

Guaranteed: never directly from ``disabled`` to ``enabled``; one worker at a time, the leader last
in each roll. Tasks whose round of fencing failed because the leader restarted are restarted once.
Records of a connector are written exactly once as soon as every worker is enabled.
"""

from __future__ import annotations

from connectctl.migrations.registry import Migration, MigrationInput, MigrationStatus, up_to
from connectctl.ops.operations.rolling.planned_steps import PlannedSteps
from connectctl.ops.operations.upgrade import planning
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.planning import RollRequest
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot

NAME = "enable-exactly-once"


def plan(inputs: MigrationInput) -> PlannedSteps:
    """Every worker becomes enabled."""
    return planning.plan(
        inputs.snapshot, RollRequest(SourceSupport.ENABLED), inputs.findings, inputs.before
    )


def status(snapshot: RollingSnapshot) -> MigrationStatus:
    """Converged if every worker is enabled."""
    return up_to(snapshot, (SourceSupport.ENABLED,))


MIGRATION = Migration(2, NAME, __doc__, plan, status, leads_to="enabled", satisfies=("enabled",))
