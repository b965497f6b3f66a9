"""The operations of this package, and every kind of step by its name, for plans that were written
down.
"""

from __future__ import annotations

from typing import Any

from connectctl.ops.checks.heal import operation as heal
from connectctl.ops.operations.cluster import logger_operations
from connectctl.ops.operations.connectors import cure_operation, state_operations
from connectctl.ops.operations.connectors.config import operations as configurations
from connectctl.ops.operations.fencing import operation as fence
from connectctl.ops.operations.offsets import operations as offsets
from connectctl.ops.operations.operation import Operation
from connectctl.ops.operations.streams_upgrade import fencing
from connectctl.ops.operations.streams_upgrade import steps as streams
from connectctl.ops.operations.tasks_max import remedies
from connectctl.ops.operations.transactions import operations as transactions
from connectctl.ops.operations.upgrade import steps as rolling
from connectctl.ops.task_runtime.connectors.parquet_archive import sweep_operation
from connectctl.ops.task_runtime.job import members_operation, run_operation

OPERATIONS: dict[str, Operation[Any, Any]] = {
    operation.name: operation
    for operation in (
        state_operations.Stop(),
        state_operations.Pause(),
        state_operations.Resume(),
        state_operations.RestartConnectors(),
        state_operations.ResetActiveTopics(),
        cure_operation.Cure(),
        heal.Heal(),
        configurations.CreateConnectors(),
        configurations.ApplyConnectors(),
        configurations.EditConnector(),
        configurations.PatchConnectors(),
        configurations.DeleteConnectors(),
        configurations.RollbackConnector(),
        configurations.UndoConnectors(),
        logger_operations.SetLevels(),
        logger_operations.UndoLevels(),
        fence.Fence(),
        offsets.SetOffsets(),
        offsets.ResetOffsets(),
        offsets.RestoreOffsets(),
        offsets.MergeOffsets(),
        offsets.CopyOffsets(),
        offsets.UndoOffsets(),
        transactions.Abort(),
        transactions.Commit(),
        run_operation.RunJob(),
        run_operation.HandBackConnector(),
        members_operation.RemoveLeftMembers(),
        sweep_operation.Sweep(),
    )
}
"""Operations by the name in their plans."""
ROLLS = (
    rolling.ChangeProperty,
    rolling.RestartWorker,
    rolling.ReplaceBinaries,
    rolling.Rejoin,
    rolling.Gate,
    rolling.FirstGate,
    rolling.CheckModes,
    rolling.RestartFailed,
    rolling.IncludedStep,
    remedies.Reconfigure,
    remedies.SettleTasks,
    streams.SetGuarantee,
    streams.RestartInstance,
    streams.AwaitInstance,
    streams.ApplicationGate,
    fencing.FenceUnusedIds,
)
KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kinds in (*(operation.steps for operation in OPERATIONS.values()), ROLLS)
    for kind in kinds
}
