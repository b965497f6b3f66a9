"""Every kind of step by its name, for plans that were written down."""

from __future__ import annotations

from typing import Any

from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.step import step_from_data
from connectctl.ops.operations.cluster import loggers
from connectctl.ops.operations.connectors import carried_offsets, cure, republish, tracked_topics
from connectctl.ops.operations.connectors import steps as connectors_steps
from connectctl.ops.operations.connectors.config import directory as config_directory
from connectctl.ops.operations.connectors.config import offsets as config_offsets
from connectctl.ops.operations.connectors.config import steps as config_steps
from connectctl.ops.operations.fencing import steps as fence
from connectctl.ops.operations.offsets import steps as offsets_steps
from connectctl.ops.operations.offsets import task_producers
from connectctl.ops.operations.sink_offsets import steps as sink_offsets_steps
from connectctl.ops.operations.streams_upgrade import fencing
from connectctl.ops.operations.streams_upgrade import steps as streams
from connectctl.ops.operations.tasks_max import remedies
from connectctl.ops.operations.transactions import abort, write_marker
from connectctl.ops.operations.upgrade import steps as rolling
from connectctl.ops.task_runtime.connectors.parquet_archive import sweep_steps
from connectctl.ops.task_runtime.job import left_members
from connectctl.ops.task_runtime.job import steps as job

OFFSETS = (
    connectors_steps.SetTargetState,
    connectors_steps.Await,
    task_producers.FenceTasks,
    offsets_steps.Backup,
    offsets_steps.CreateTopic,
    offsets_steps.Change,
    offsets_steps.Configure,
    offsets_steps.Check,
    sink_offsets_steps.BackupGroup,
    sink_offsets_steps.ChangeGroupOffsets,
)
KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *OFFSETS,
        connectors_steps.Restart,
        connectors_steps.VerifyState,
        loggers.SetLogLevels,
        tracked_topics.ResetTopics,
        config_steps.CreateConnector,
        config_steps.ChangeConnector,
        config_steps.DeleteConnector,
        config_steps.AwaitGone,
        config_directory.AwaitRelease,
        config_offsets.SetConnectorOffsets,
        carried_offsets.CarryOffsets,
        carried_offsets.DeleteCarried,
        config_steps.ReadOffsets,
        config_steps.RestoreOffsets,
        connectors_steps.RestartTask,
        cure.SetOverrides,
        cure.AwaitRound,
        cure.RestartWhatFailed,
        republish.AwaitPublished,
        fence.FenceIds,
        fence.AwaitFailed,
        fence.RestartFenced,
        abort.AbortOpen,
        write_marker.AbortHanging,
        write_marker.CommitHanging,
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
        job.CreateInternalTopic,
        job.StopOnWorkers,
        job.StartConnector,
        job.StartTasks,
        job.RunTasks,
        job.HandBack,
        left_members.RemoveMembers,
        sweep_steps.RemoveOrphans,
    )
}


def steps_from_data(data: Any) -> tuple[Any, ...]:
    """The steps that ``step_to_data`` wrote as ``data``. Raises ``BadInput`` for those that this version does not know."""
    if not isinstance(data, list):
        raise BadInput("The plan has no array of steps")
    return tuple(step_from_data(step, KINDS) for step in data)
