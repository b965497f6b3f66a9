"""Soft downgrade: one roll that makes every worker ``disabled``, on the release that it runs.

KIP-618, Soft downgrade. Each worker is restarted with the property changed; tasks resume with at-least-once delivery
where they stood, because workers write the offsets of every connector to the global topic as well. Fencing needs no
property, so that workers that are still enabled can ask a leader that is not.

``connectctl upgrade plan --to disabled`` ends the same way and is the more careful one: it goes through ``preparing``,
which costs a second roll, and keeps a leader that can be fenced until no worker is enabled any more.

Guaranteed: one worker at a time, the leader last, the next only when the cluster is healthy. Not guaranteed from the
first restart on: that records are written once.
"""

from __future__ import annotations

from connectctl.migrations.registry import Migration, MigrationInput, MigrationStatus
from connectctl.migrations.status import down_from
from connectctl.ops.operations.upgrade import planning
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.planning import PlannedUpgrade, UpgradeRequest
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot

NAME = "soft-downgrade"


def plan(inputs: MigrationInput) -> PlannedUpgrade:
    """Every worker becomes disabled, in one roll."""
    return planning.plan(
        inputs.snapshot, UpgradeRequest(SourceSupport.DISABLED, NAME, straight=True), inputs.findings, inputs.before
    )


def status(snapshot: RollingSnapshot) -> MigrationStatus:
    """Converged where every worker is disabled, or too old to be anything else."""
    return down_from(snapshot, (SourceSupport.DISABLED, SourceSupport.NOT_SUPPORTED))


MIGRATION = Migration(3, NAME, __doc__, plan, status, leads_to="downgrade", satisfies=("disabled",))
