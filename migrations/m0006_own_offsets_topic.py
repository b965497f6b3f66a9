"""Give a connector an offsets topic of its own: ``offsets.storage.topic``, seeded before workers
read it.

KIP-618, Per-connector offsets topics: so that one connector's open transaction does not keep others
from reading their offsets, or because its principal may not write the workers' topic. In the
proposal, workers fall back to the global topic for offsets missing in the new one. Releases 3.3 to
4.3 do not: a connector with an empty new topic starts over.

Therefore its offsets are copied first, as ``connectctl offsets merge --into dedicated --topic``
does: the connector is stopped, its offsets backed up, its topic created and filled in one
transaction, the property set, the connector resumed.

Guaranteed: every source partition resumes from the offset that was committed last, also where the
topic has older ones of an earlier time; this is verified before the connector runs again. The
former offsets are backed up; ``connectctl offsets undo`` restores them, and carries over what was
committed since; ``connectctl upgrade abort`` does so before the run is done.
"""

from __future__ import annotations

from connectctl.migrations import offset_moves
from connectctl.migrations.access import UpgradeAccess
from connectctl.migrations.registry import (
    Given,
    Migration,
    MigrationInput,
    MigrationStatus,
    Observed,
    Status,
    included_steps,
    refuse_without_workers,
    required_parameter,
)
from connectctl.ops.connect.last_commit import Side
from connectctl.ops.operations.offsets.changes import MergeOffsets
from connectctl.ops.operations.offsets.planning import ConnectorState
from connectctl.ops.operations.rolling.planned_steps import PlannedSteps
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot

NAME = "own-offsets-topic"
PARAMETERS = {
    "connector": "the source connector",
    "topic": "its new offsets topic; CONNECTOR-offsets by default",
    "policy": "which side wins where both have offsets: effective, newest, global or dedicated",
}


def observe(access: UpgradeAccess, given: Given) -> Observed:
    """Return the steps of ``offsets merge --into dedicated --topic`` for the connector."""
    name = given.get("connector", "").strip()
    if not name:
        return (), ()  # the plan refuses and names what is missing
    topic = given.get("topic", "").strip() or f"{name}-offsets"
    policy, chosen = offset_moves.policy_of(given)

    def request(subject: ConnectorState) -> MergeOffsets:
        return MergeOffsets(name, Side.DEDICATED.value, policy, chosen, topic)

    return offset_moves.merges(access, {name: topic}, request)


def plan(inputs: MigrationInput) -> PlannedSteps:
    """The merge into the connector's dedicated topic: the steps ``inputs.before``."""
    name = required_parameter(inputs, "connector", "connector")
    refuse_without_workers(inputs)
    why = "workers do not fall back to the global topic, so its own must be filled first"
    steps = included_steps(inputs, why)
    copied = (f"The offsets of {name} are copied as they are when it is stopped.",) if steps else ()
    return PlannedSteps(tuple(steps), (*(inputs.observed or ()), *copied))


def status(snapshot: RollingSnapshot) -> MigrationStatus:
    """Possible for any source connector, never required."""
    if not snapshot.connectors:
        return MigrationStatus(Status.NOT_APPLICABLE, "there are no connectors")
    have = ", ".join(snapshot.dedicated)
    return MigrationStatus(
        Status.POSSIBLE, f"{have} has one" if have else "no connector has one: --set connector=NAME"
    )


MIGRATION = Migration(
    6,
    NAME,
    __doc__,
    plan,
    status,
    parameters=PARAMETERS,
    observe=observe,
    roll_back=offset_moves.roll_back,
    of_connectors=True,
)
