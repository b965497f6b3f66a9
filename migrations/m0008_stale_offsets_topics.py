"""Get stale offsets topics of connectors out of the way, before a release that reads them is put in
place again.

KIP-618, Hard downgrade: workers before 3.3 do not use a connector's own offsets topic, but
the global one. With the next upgrade the old topic is read again, and its offsets win over the
newer ones: records written since are written again. That happens as soon as the new binaries start,
before any property is changed.

A topic is stale if the global one has a later, different offset of the same source partition, by
however little; or any different one, if the connector runs and its tasks commit to the global one.
For each such connector ``--set stale=`` selects the change. ``merge``: its dedicated topic gets the
newer offsets, and it resumes there. ``unset``: the property is removed, so that it uses the global
topic, and the old one is not read; delete it with your own tools when nothing else uses it.
Deleting it alone would lose all offsets: workers do not fall back.

Guaranteed: no change without ``--set stale=``; the former offsets are backed up and can be
restored.
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
    down_from,
    included_steps,
)
from connectctl.ops.connect.connector import path_of
from connectctl.ops.connect.last_commit import Side
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.offsets.changes import MergeOffsets, MergePolicy
from connectctl.ops.operations.offsets.planning import ConnectorState
from connectctl.ops.operations.offsets.topic_state import stale
from connectctl.ops.operations.rolling.planned_steps import PlannedSteps
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot

NAME = "stale-offsets-topics"
MERGE, UNSET = "merge", "unset"
TOPIC = "offsets.storage.topic"
PARAMETERS = {
    "stale": "merge: bring the newer offsets into the connector's own topic; unset: remove it",
    "connector": "the connectors, separated by commas; all that have a topic of their own by "
    "default",
}


def observe(access: UpgradeAccess, given: Given) -> Observed:
    """Return the stale topics, and the steps for them if ``stale`` is given."""
    topics = {
        name: str(topic)
        for name in offset_moves.connectors(access, given)
        # Read from the configuration: workers of older releases ignore the property.
        if (topic := access.reader.calls.get(path_of("connectors", name, "config")).get(TOPIC))
        is not None
    }
    _, subjects = access.offsets(topics)
    found = {
        each.name: why
        for each in subjects
        if (why := stale(each.topic_states, running=each.running))
    }
    lines = tuple(f"{name}: {why.rstrip('.')}" for name, why in found.items())
    if not found or given.get("stale") not in (MERGE, UNSET):
        return (), lines
    into = Side.DEDICATED if given["stale"] == MERGE else Side.GLOBAL

    def request(subject: ConnectorState) -> MergeOffsets:
        return MergeOffsets(
            subject.name, into.value, MergePolicy.NEWEST.value, True, topics[subject.name]
        )

    steps, remarks = offset_moves.merges(access, {name: topics[name] for name in found}, request)
    return steps, (*lines, *remarks)


def plan(inputs: MigrationInput) -> PlannedSteps:
    """Plan the ``--set stale=`` change for every stale topic. Raises ``BadInput`` if it is
    missing.
    """
    remedy = inputs.given.get("stale")
    if remedy not in (None, MERGE, UNSET):
        raise BadInput(f"stale={remedy} is neither {MERGE} nor {UNSET}")
    if inputs.observed and remedy is None:
        raise BadInput(
            "Stale offsets topics found; missing parameter stale",
            why="; ".join(inputs.observed),
            next_step=f"Give --set stale={MERGE} or --set stale={UNSET}.",
            code="stale-topics",
        )
    why = "KIP-618, Hard downgrade: a stale topic wins over newer offsets when it is read again"
    return PlannedSteps(tuple(included_steps(inputs, why)), tuple(inputs.observed or ()))


def status(snapshot: RollingSnapshot) -> MigrationStatus:
    """Pending if workers without support for dedicated topics run connectors that name one: those
    topics become stale.
    """
    if not snapshot.dedicated:
        return MigrationStatus(Status.CONVERGED, "no connector names an offsets topic of its own")
    names = ", ".join(snapshot.dedicated)
    if down_from(snapshot, (SourceSupport.NOT_SUPPORTED,)).status is Status.CONVERGED:
        return MigrationStatus(
            Status.PENDING, f"workers of this release do not update the offsets topic of {names}"
        )
    return MigrationStatus(
        Status.POSSIBLE, f"{names} has a topic of its own; the plan shows whether it is stale"
    )


MIGRATION = Migration(
    8,
    NAME,
    __doc__,
    plan,
    status,
    parameters=PARAMETERS,
    observe=observe,
    roll_back=offset_moves.roll_back,
    of_connectors=True,
)
