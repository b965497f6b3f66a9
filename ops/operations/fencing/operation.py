"""``fence`` as an operation."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import Refused
from connectctl.ops.operations.fencing.observe import (
    FencingSources,
    observe,
    refuse_running,
    request_of,
    select_again,
)
from connectctl.ops.operations.fencing.planning import check, check_request, refuse_denied, select
from connectctl.ops.operations.fencing.snapshot import FenceAction, FenceRequest, FenceSelection
from connectctl.ops.operations.fencing.steps import (
    AwaitFailed,
    FenceContext,
    FenceIds,
    RestartFenced,
    fenced_before,
    plan_fence,
)
from connectctl.ops.operations.operation import Operation, Planned, Remaining
from connectctl.ops.operations.transactions.sources import LazyWorkers, group_of, sources_of

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import Clients
    from connectctl.ops.core.journal import Run
    from connectctl.ops.core.plan import Plan

STALE = 2.0
"""Seconds after which a confirmed plan is computed again, to check that it is unchanged."""


@dataclass(frozen=True)
class FenceAccess:
    """The clients of a fence, and the sources of its ids."""

    clients: Clients
    sources: FencingSources

    def cluster_id(self) -> str:
        """Return the id of the Kafka cluster whose coordinators have the ids."""
        return self.sources.calls.cluster_id()

    @property
    def group_id(self) -> str:
        """Return the Connect group in the settings, empty without one."""
        return group_of(self.clients) or ""


@dataclass(frozen=True)
class FenceAndRestart:
    """The ids to fence. ``restart``: the failed tasks of their connectors are restarted then."""

    ids: FenceRequest
    restart: bool = False


@dataclass(frozen=True, kw_only=True)
class FencePlan(Planned):
    """A plan with its selection of ids; ``saved``: it was made earlier, and its owners were
    compared.
    """

    selection: FenceSelection
    request: FenceRequest
    saved: bool = False

    def check(self, *, dry_run: bool) -> None:
        """Raise ``Refused`` if running tasks would fail, and in a dry run ``NotAuthorized`` if no
        id may be fenced.
        """
        if not self.saved:
            check(self.selection, self.request)
        if dry_run:
            refuse_denied(self.selection.rows)


class Fence(Operation[FenceAndRestart, FenceAccess]):
    """``fence``."""

    name = "fence"
    view = "fence.FenceView"
    steps = (FenceIds, AwaitFailed, RestartFenced)
    independent = True
    irreversible = "a fenced producer can never commit again"

    def access(self, clients: Clients, request: FenceAndRestart) -> FenceAccess:
        """Return the sources. Raises ``BadInput`` for an incomplete request, and for connectors of
        different clusters.
        """
        check_request(request.ids, group_of(clients))
        return FenceAccess(clients, sources_of(clients, request.ids))

    def access_for(self, clients: Clients, plan: Plan) -> FenceAccess | None:
        """Return the sources of the plan's connectors."""
        if not plan.steps:
            return None
        return FenceAccess(clients, sources_of(clients, request_of(_ids_of(plan))))

    def plan(self, access: FenceAccess, request: FenceAndRestart) -> FencePlan:
        """Return the plan for the current state of the ids."""
        selection = select(observe(access.sources, request.ids), request.ids)
        group_id = group_of(access.clients)
        restart = selection.connectors_of(group_id) if request.restart else ()
        named, force = request.ids.connectors, request.ids.force
        plan = plan_fence(
            selection, restart=restart, group_id=group_id, connectors=named, force=force
        )
        return FencePlan(
            plan, findings=selection.findings, selection=selection, request=request.ids
        )

    def plan_again(self, access: FenceAccess, saved: Plan) -> FencePlan:
        """Return the saved plan. Raises ``Refused`` if its ids or their running tasks have changed;
        epochs may have.
        """
        step = _ids_of(saved)
        selection = select_again(access.sources, step)
        return FencePlan(
            saved,
            findings=selection.findings,
            selection=selection,
            request=request_of(step),
            saved=True,
        )

    def check_confirmed(self, access: FenceAccess, planned: Planned) -> None:
        """Raise ``Refused`` if the ids or their owners changed during a prompt."""
        assert isinstance(planned, FencePlan)
        selection, request = planned.selection, planned.request
        if planned.saved:
            select_again(access.sources, _ids_of(planned.plan))
            return
        is_old = time.time() - selection.taken_at > STALE
        if (
            is_old
            and select(observe(access.sources, request), request).essence != selection.essence
        ):
            raise Refused(
                "The cluster changed during confirmation; nothing was fenced",
                next_step="Run the command again.",
            )

    def context(self, access: FenceAccess, planned: Planned) -> FenceContext:
        """Return the context of the steps; workers are discovered when a step needs them."""
        clients = access.clients
        return FenceContext(
            LazyWorkers(clients),
            clients.timeout,
            transactions=access.sources.calls,
            journal=clients.journal(),
            check=partial(refuse_running, access.sources),
            fencing=clients.timeout,
        )

    def remaining(self, access: FenceAccess, run: Run, plan: Plan) -> Remaining:
        """Return all steps: the first skips the ids that it fenced. Raises ``Refused`` if a task
        uses one of the other ids.
        """
        step = _ids_of(plan)
        fenced = fenced_before(access.clients.journal().path(run.id, "fenced-0.jsonl"))
        unfenced = [] if run.done(0) else [row for row in step.rows if row.id not in fenced]
        if unfenced:
            ids = tuple(row.id for row in unfenced)
            creates = any(row.action is FenceAction.CREATE for row in unfenced)
            request = FenceRequest(ids=ids, leader=True, create=creates, force=step.force)
            now = select(observe(access.sources, request), request)
            check(replace(now, rows=tuple(row for row in now.rows if row.id in ids)), request)
        return Remaining()


def _ids_of(plan: Plan) -> FenceIds:
    step = plan.steps[0]
    assert isinstance(step, FenceIds)
    return step
