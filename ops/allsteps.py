"""Every kind of step by its name, for plans that were written down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from connectctl.ops import connectorsteps
from connectctl.ops.core.step import step_from_data
from connectctl.ops.diagnosis import cure, republish
from connectctl.ops.fence import steps as fence
from connectctl.ops.offsets import changesteps, producers
from connectctl.ops.rolling import steps as rolling
from connectctl.ops.rolling import tasklimits
from connectctl.ops.streams import fencing
from connectctl.ops.streams import steps as streams
from connectctl.ops.transactions import abort, marking

OFFSETS = (
    connectorsteps.SetTargetState,
    connectorsteps.Await,
    producers.FenceTasks,
    changesteps.Backup,
    changesteps.CreateTopic,
    changesteps.Change,
    changesteps.Configure,
    changesteps.Check,
)
KINDS: Mapping[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *OFFSETS,
        connectorsteps.Restart,
        cure.SetOverrides,
        cure.AwaitRound,
        cure.RestartWhatFailed,
        republish.AwaitPublished,
        fence.FenceIds,
        fence.AwaitFailed,
        fence.RestartFenced,
        abort.AbortOpen,
        marking.AbortHanging,
        marking.CommitHanging,
        rolling.ChangeProperty,
        rolling.RestartWorker,
        rolling.ReplaceBinaries,
        rolling.Rejoin,
        rolling.Gate,
        rolling.FirstGate,
        rolling.CheckModes,
        rolling.RestartFailed,
        rolling.Borrowed,
        tasklimits.Reconfigure,
        tasklimits.SettleTasks,
        streams.SetGuarantee,
        streams.RestartInstance,
        streams.AwaitInstance,
        streams.ApplicationGate,
        fencing.FenceLeftovers,
    )
}


def steps_from_data(data: Iterable[Mapping[str, Any]]) -> tuple[Any, ...]:
    """The steps that ``step_to_data`` wrote as ``data``. Raises ``BadInput`` for those that this version does not know."""
    return tuple(step_from_data(step, KINDS) for step in data)
