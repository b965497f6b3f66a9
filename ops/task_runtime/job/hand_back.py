"""The connector of a run that was killed goes back to its workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from connectctl.ops.operations.connectors.steps import WANTED, Await, SetTargetState
from connectctl.ops.operations.fencing.batch_fencer import fence_ids
from connectctl.ops.task_runtime.job.config_topic_records import STOPPED
from connectctl.ops.task_runtime.job.generation import check_fenced

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import TransactionCalls
    from connectctl.ops.operations.connectors.context import StepContext


def hand_back(context: StepContext, calls: TransactionCalls, ids: Sequence[str], name: str, verb: str) -> str | None:
    """Fence ``ids``, which tasks of the run may still use, and do ``verb`` with the connector: ``resume`` or ``pause``.

    Does nothing where somebody has done so meanwhile: the tasks of the workers have the ids then.
    """
    found = context.read(name)
    state = found.target_state or (found.status.state if found.status else None)
    if state != STOPPED:
        return f"handed back to its workers (state {state})"
    check_fenced(fence_ids(calls, ids, context.timeout), f"the {len(ids)} transactional ids of tasks of {name}")
    SetTargetState(name, verb, "").apply(context)
    return Await(name, WANTED[verb]).apply(context)
