"""A saved plan of ``fence``: the ids of its step are observed again, and it is refused where they or their tasks changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from connectctl.ops.core.saved_plan import stale
from connectctl.ops.operations.fencing.observe import Sources, observe
from connectctl.ops.operations.fencing.planning import check, select
from connectctl.ops.operations.fencing.snapshot import Action, FenceRequest, FenceSelection

if TYPE_CHECKING:
    from connectctl.ops.operations.fencing.steps import FenceIds


def request_of(step: FenceIds) -> FenceRequest:
    """The request for exactly the ids of ``step``, and for what its connectors have got since."""
    creates = any(row.action is Action.CREATE for row in step.rows)
    return FenceRequest(connectors=step.connectors, ids=_ids(step), leader=True, create=creates, force=step.force)


def select_again(sources: Sources, step: FenceIds) -> FenceSelection:
    """The ids of ``step`` as they are now: epochs may differ, but not who has an id, and not which ids there are.

    Raises ``Refused`` for a plan that is stale, and where tasks run with its ids.
    """
    request = request_of(step)
    seen = select(observe(sources, request), request)
    meant = {*_ids(step), *(row.id for row in seen.rows if row.connector in step.connectors)}
    now = replace(seen, rows=tuple(row for row in seen.to_fence if row.id in meant))
    if now.essence != replace(now, rows=step.rows).essence:
        hint = "Make a new plan: connectctl fence … --dry-run -o json."
        raise stale("the ids to fence or their running tasks have changed", hint)
    check(now, request)
    return now


def _ids(step: FenceIds) -> tuple[str, ...]:
    return tuple(row.id for row in step.rows)
