"""The status of migrations that only change the workers' mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.migrations.registry import MigrationStatus, Status
from connectctl.ops.operations.upgrade.mode import SourceSupport

if TYPE_CHECKING:
    from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot


def up_to(snapshot: RollingSnapshot, reached: tuple[SourceSupport, ...]) -> MigrationStatus:
    """Return whether every worker has, or can have, one of the modes ``reached``."""
    old = [
        worker.address for worker in snapshot.workers if worker.value is SourceSupport.NOT_SUPPORTED
    ]
    if not snapshot.workers:
        return MigrationStatus(Status.NOT_APPLICABLE, "the group has no workers")
    if old:
        return MigrationStatus(Status.NOT_APPLICABLE, f"{', '.join(old)} runs a release before 3.3")
    missing = [worker.address for worker in snapshot.workers if worker.value not in reached]
    if missing:
        return MigrationStatus(Status.PENDING, f"not applied, or unknown: {', '.join(missing)}")
    return MigrationStatus(Status.CONVERGED, f"every worker is {' or '.join(reached)}")


def down_from(snapshot: RollingSnapshot, gone: tuple[SourceSupport, ...]) -> MigrationStatus:
    """Return whether any worker is not yet in one of the modes ``gone``."""
    unchanged = [worker.address for worker in snapshot.workers if worker.value not in gone]
    if not snapshot.workers:
        return MigrationStatus(Status.NOT_APPLICABLE, "the group has no workers")
    if unchanged:
        return MigrationStatus(Status.POSSIBLE, f"it would change {', '.join(unchanged)}")
    return MigrationStatus(Status.CONVERGED, f"every worker is {' or '.join(gone)}")
