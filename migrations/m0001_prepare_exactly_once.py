"""Prepare exactly-once source support: one roll that makes every worker ``preparing``.

The first of the two rolls of KIP-618. A worker in ``preparing`` writes the config topic with a transactional producer
when it leads, so that a leader that was replaced and has not noticed is fenced, and no other worker writes there. Its
tasks continue with at-least-once delivery. Nothing about connectors changes, and it can be taken back at any time.

Guaranteed: workers are restarted one by one, the leader last, the next only when the cluster is healthy again. A worker
that is ``enabled`` already stays so if others are to follow, and is taken back where ``preparing`` itself is asked for.
"""

from __future__ import annotations

from connectctl.migrations.registry import Migration, MigrationInput, MigrationStatus
from connectctl.migrations.status import up_to
from connectctl.ops.operations.upgrade import planning
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.planning import PlannedUpgrade, UpgradeRequest
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot

NAME = "prepare-exactly-once"


def plan(inputs: MigrationInput) -> PlannedUpgrade:
    """Every worker that is less than preparing becomes it; those that are enabled stay."""
    stay = {w.address: SourceSupport.ENABLED for w in inputs.snapshot.workers if w.value is SourceSupport.ENABLED}
    return planning.plan(
        inputs.snapshot, UpgradeRequest(SourceSupport.PREPARING, NAME, targets=stay), inputs.findings, inputs.before
    )


def status(snapshot: RollingSnapshot) -> MigrationStatus:
    """Converged where every worker is at least preparing."""
    return up_to(snapshot, (SourceSupport.PREPARING, SourceSupport.ENABLED))


MIGRATION = Migration(1, NAME, __doc__, plan, status, leads_to="preparing", satisfies=("preparing", "enabled"))
