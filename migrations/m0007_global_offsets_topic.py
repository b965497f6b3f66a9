"""Take back a connector's own offsets topic: its offsets go to the workers' global topic, and it
resumes there.

The reverse of ``own-offsets-topic``, required for a hard downgrade: releases before 3.3 read the
global topic only (KIP-618, Offsets accuracy). Workers write a connector's offsets to the global
topic as well, but not in the transaction, so it may be older; missing offsets are copied before
the property is removed.

The topic itself stays. It becomes stale, and is not read unless a connector names it again;
``stale-offsets-topics`` finds such topics.

Guaranteed: every source partition resumes from the offset that was committed last. The former
offsets are backed up; ``connectctl offsets undo`` restores them, and carries over what was
committed since.
"""

from __future__ import annotations

from connectctl.migrations import offset_moves
from connectctl.migrations.registry import (
    Migration,
    MigrationInput,
    MigrationStatus,
    Status,
    included_steps,
    refuse_without_workers,
)
from connectctl.ops.operations.rolling.planned_steps import PlannedSteps
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot

NAME = "global-offsets-topic"
PARAMETERS = {
    "connector": "the connectors, separated by commas; all that have a topic of their own by "
    "default",
    "policy": "which side wins where both have offsets: effective, newest, global or dedicated",
}


def plan(inputs: MigrationInput) -> PlannedSteps:
    """The merge into the global topic: the steps ``inputs.before``; ``inputs.observed`` lists how
    the topics differ.
    """
    refuse_without_workers(inputs)
    steps = included_steps(
        inputs, "the global topic is written outside of transactions, and may be behind"
    )
    return PlannedSteps(tuple(steps), tuple(inputs.observed or ()))


def status(snapshot: RollingSnapshot) -> MigrationStatus:
    """Converged if no connector has a dedicated offsets topic."""
    if not snapshot.dedicated:
        return MigrationStatus(Status.CONVERGED, "no connector has an offsets topic of its own")
    return MigrationStatus(
        Status.POSSIBLE,
        f"it would move the offsets of {', '.join(snapshot.dedicated)} to the global topic",
    )


MIGRATION = Migration(
    7,
    NAME,
    __doc__,
    plan,
    status,
    parameters=PARAMETERS,
    observe=offset_moves.to_global,
    roll_back=offset_moves.roll_back,
    of_connectors=True,
)
