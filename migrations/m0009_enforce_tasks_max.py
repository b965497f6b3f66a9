"""Make connectors keep to tasks.max, before a release enforces it and their tasks fail.

KIP-1004: workers from 3.8 on make a connector FAILED that generates more tasks than ``tasks.max``,
and every task of such a set FAILS when it starts. On older workers this is visible only at the
upgrade; on newer ones, until the next restart.

For each connector that will fail by ``connectctl tasks check`` there are two remedies. ``raise``,
the default: tasks.max becomes the number of tasks that it generates, permanently. ``bridge``:
``tasks.max.enforce=false`` tolerates them, on releases that still have that property. ``leave``
leaves the connector unchanged.

Guaranteed: connectors are changed one by one, the next when the last is stable; what failed for too
many tasks is restarted once. If a connector then generates even more, because it multiplies
tasks.max, the run stops with an error.
"""

from __future__ import annotations

from connectctl.migrations.access import UpgradeAccess
from connectctl.migrations.registry import (
    Given,
    Migration,
    MigrationInput,
    MigrationStatus,
    Observed,
    Status,
)
from connectctl.ops.operations.rolling.planned_steps import PlannedSteps
from connectctl.ops.operations.tasks_max import remedies
from connectctl.ops.operations.tasks_max.observe import Release
from connectctl.ops.operations.tasks_max.remedies import RemedyChoice
from connectctl.ops.operations.upgrade import runs
from connectctl.ops.operations.upgrade.runs import LoadedRun
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot

NAME = "enforce-tasks-max"
PARAMETERS = {
    "version": "the planned release, X.Y; by default the next release that makes a difference",
    "raise": "connectors that get a larger tasks.max, separated by commas",
    "bridge": "connectors that get tasks.max.enforce=false",
    "leave": "connectors that are left unchanged",
    "others": "raise, bridge or leave, for connectors that are not named; raise by default",
}


def observe(access: UpgradeAccess, given: Given) -> Observed:
    """Return the connectors with their tasks, and the planned release."""
    version = given.get("version")
    return (), (access.tasks(), None if version is None else Release.parse(version))


def plan(inputs: MigrationInput) -> PlannedSteps:
    """Two steps for each connector that will fail; ``inputs.observed`` is
    ``(TasksSeen, Release | None)``.
    """
    tasks, release = inputs.observed
    found = remedies.remedies_for(tasks, release)
    chosen = remedies.choices(found, inputs.given)
    patch = bool(tasks.enforcing) and len(tasks.enforcing) == len(tasks.workers)
    steps = tuple(remedies.steps(found, chosen, patch=patch))
    remarks = [remedy.describe(chosen[remedy.connector]) for remedy in found]
    unknown = [
        f"How many tasks {remedy.connector} generates with tasks.max={remedy.needs} is known only "
        "after the change."
        for remedy in found
        if chosen[remedy.connector] is RemedyChoice.RAISE
    ]
    return PlannedSteps(steps, (*remarks, *unknown))


def roll_back(access: UpgradeAccess, restored: LoadedRun) -> Observed:
    """Restore the settings of reconfigured connectors."""
    return runs.reconfigure_rollback(restored), ()


def status(snapshot: RollingSnapshot) -> MigrationStatus:
    """Pending if a connector has more tasks than its tasks.max."""
    if not snapshot.connectors:
        return MigrationStatus(Status.NOT_APPLICABLE, "there are no connectors")
    if snapshot.exceeds_tasks_max:
        return MigrationStatus(
            Status.PENDING,
            f"{', '.join(snapshot.exceeds_tasks_max)} has more tasks than its tasks.max",
        )
    return MigrationStatus(
        Status.CONVERGED, "no connector that runs has more tasks than its tasks.max"
    )


MIGRATION = Migration(
    9,
    NAME,
    __doc__,
    plan,
    status,
    parameters=PARAMETERS,
    observe=observe,
    roll_back=roll_back,
    of_connectors=True,
)
