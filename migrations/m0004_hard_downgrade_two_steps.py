"""Hard downgrade in two steps: every worker ``disabled``, then older binaries, worker by worker.

KIP-618, Two-step downgrade, the safest return to a release without exactly-once source support:
the rolling upgrade in reverse. The first roll is the soft downgrade. In the second the operator
replaces the binaries of one worker after the other; the run prints which one, waits until it
rejoins with a release before 3.3, and until the cluster is healthy.

Before the first roll, the offsets of connectors with a dedicated offsets topic are merged into the
global topic, and the connectors resume there: older releases read no other (Offsets accuracy). The
remaining dedicated topic becomes stale and would win after the next upgrade:
``connectctl offsets diff`` shows that.

Guaranteed: every connector and task keeps running throughout, one worker at a time, the leader
last.
"""

from __future__ import annotations

from connectctl.migrations import hard_downgrade
from connectctl.migrations.registry import MigrationInput
from connectctl.ops.operations.rolling.planned_steps import PlannedSteps
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.planning import RollRequest

NAME = "hard-downgrade-two-steps"


def plan(inputs: MigrationInput) -> PlannedSteps:
    """Disabled in one roll, then older binaries in another."""
    return hard_downgrade.plan(
        inputs, RollRequest(SourceSupport.DISABLED, straight=True, binaries=True)
    )


MIGRATION = hard_downgrade.migration(4, NAME, __doc__, plan)
