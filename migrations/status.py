"""How a cluster stands to the migrations that only change the workers' mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.migrations.registry import Stand, Standing
from connectctl.ops.operations.upgrade.mode import Value

if TYPE_CHECKING:
    from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot


def up_to(snapshot: RollingSnapshot, reached: tuple[Value, ...]) -> Stand:
    """Whether every worker has reached one of the modes, or could."""
    old = [worker.address for worker in snapshot.workers if worker.value is Value.NOT_SUPPORTED]
    if not snapshot.workers:
        return Stand(Standing.NOT_APPLICABLE, "the group has no workers")
    if old:
        return Stand(Standing.NOT_APPLICABLE, f"{', '.join(old)} runs a release before 3.3")
    missing = [worker.address for worker in snapshot.workers if worker.value not in reached]
    if missing:
        return Stand(Standing.PENDING, f"not applied, or unknown: {', '.join(missing)}")
    return Stand(Standing.CONVERGED, f"every worker is {' or '.join(reached)}")


def down_from(snapshot: RollingSnapshot, gone: tuple[Value, ...]) -> Stand:
    """Whether there is anything left to take back."""
    left = [worker.address for worker in snapshot.workers if worker.value not in gone]
    if not snapshot.workers:
        return Stand(Standing.NOT_APPLICABLE, "the group has no workers")
    if left:
        return Stand(Standing.POSSIBLE, f"it would change {', '.join(left)}")
    return Stand(Standing.CONVERGED, f"every worker is {' or '.join(gone)}")
