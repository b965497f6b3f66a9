"""Soft downgrade: one roll that makes every worker ``disabled``, on the release that it runs.

KIP-618, Soft downgrade. Each worker is restarted with the property changed; tasks resume with
at-least-once delivery from their offsets, because workers write the offsets of every connector to
the global topic as well. Fencing does not depend on the leader's property, so workers that are
still enabled can request it from a leader that is not.

``connectctl upgrade plan --to disabled`` has the same result and is safer: it goes through
``preparing``, with a second roll, and keeps a leader that can be fenced until no worker is enabled.

Guaranteed: one worker at a time, the leader last, the next only when the cluster is healthy. Not
guaranteed from the first restart on: that records are written once.
"""

from __future__ import annotations

from connectctl.migrations.registry import Migration, MigrationInput, MigrationStatus, down_from
from connectctl.ops.operations.rolling.planned_steps import PlannedSteps
from connectctl.ops.operations.upgrade import planning
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.planning import RollRequest
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot

NAME = "soft-downgrade"


def plan(inputs: MigrationInput) -> PlannedSteps:
    """Every worker becomes disabled, in one roll."""
    request = RollRequest(SourceSupport.DISABLED, straight=True)
    return planning.plan(inputs.snapshot, request, inputs.findings, inputs.before)


def status(snapshot: RollingSnapshot) -> MigrationStatus:
    """Converged if every worker is disabled, or too old to have the property."""
    return down_from(snapshot, (SourceSupport.DISABLED, SourceSupport.NOT_SUPPORTED))


MIGRATION = Migration(
    3, NAME, __doc__, plan, status, leads_to="downgrade", satisfies=("disabled", "downgrade")
)
