"""``run JOB --sweep`` as an operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.ops.operations.operation import Operation, Planned
from connectctl.ops.task_runtime.connectors.parquet_archive.sweep_steps import (
    OPERATION,
    ArchiveLocation,
    RemoveOrphans,
    SweepContext,
    plan_sweep,
)

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import Clients
    from connectctl.ops.core.plan import Plan
    from connectctl.ops.task_runtime.connectors.parquet_archive.orphans import ArchiveSweeper


class Sweep(Operation[ArchiveLocation, "ArchiveSweeper"]):
    """Removes files of an archive that its manifest does not name."""

    name = OPERATION
    view = "sweep.SweepView"
    command = "run JOB --sweep"
    steps = (RemoveOrphans,)
    irreversible = "the files are deleted"

    def access(self, clients: Clients, request: ArchiveLocation) -> ArchiveSweeper:
        """Return the sweeper."""
        # It loads pyarrow.
        from connectctl.ops.task_runtime.connectors.parquet_archive.orphans import ArchiveSweeper

        return ArchiveSweeper(request, clients.group_id, clients.kafka, clients.group_offsets)

    def plan(self, access: ArchiveSweeper, request: ArchiveLocation) -> Planned:
        """Return the plan. Raises what ``ArchiveSweeper.orphans`` raises."""
        return Planned(plan_sweep(access.cluster_id(), access.group_id, request, access.orphans()))

    def request_of(self, plan: Plan) -> ArchiveLocation | None:
        """Return the archive of the plan."""
        if not plan.steps:
            return None
        step = plan.steps[0]
        assert isinstance(step, RemoveOrphans)
        return step.location

    def context(self, access: ArchiveSweeper, planned: Planned) -> SweepContext:
        """Return the context of the steps."""
        return SweepContext(find=access.names, remove=access.remove)
