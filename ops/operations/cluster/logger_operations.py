"""Operations on log levels of workers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.cluster.loggers import SetLogLevels, plan_set, plan_undo
from connectctl.ops.operations.connectors.access import ClusterAccess
from connectctl.ops.operations.connectors.operation import ConnectorOperation
from connectctl.ops.operations.operation import Planned, Undone


@dataclass(frozen=True)
class LevelRequest:
    """The level of a logger: on the one ``worker``, or on all, with one request for the ``cluster``
    where possible.

    ``subjects`` are the only workers that the plan may name, None for all.
    """

    logger: str
    level: str
    worker: str | None = None
    cluster: bool = True
    subjects: tuple[str, ...] | None = None


class SetLevels(ConnectorOperation[LevelRequest]):
    """``loggers set``."""

    name = "loggers set"
    steps = (SetLogLevels,)

    def plan(self, access: ClusterAccess, request: LevelRequest) -> Planned:
        """Return the plan for the workers with another level. Raises ``BadInput`` for an unknown
        worker.
        """
        plan = plan_set(
            access.cluster_id(),
            access.calls,
            request.logger,
            request.level,
            worker=request.worker,
            cluster=request.cluster,
            group_id=access.group_id,
        )
        if request.subjects is None:
            return Planned(plan)
        steps = tuple(step for step in plan.steps if step.subject in request.subjects)
        noops = tuple(noop for noop in plan.noops if noop.subject in request.subjects)
        return Planned(replace(plan, steps=steps, noops=noops))

    def request_of(self, plan: Plan) -> LevelRequest | None:
        """Return the level that the steps set."""
        if not plan.steps:
            return None
        step = plan.steps[0]
        assert isinstance(step, SetLogLevels)
        together = step.url is None
        return LevelRequest(
            *step.levels[0], cluster=together, subjects=None if together else plan.resources
        )

    def undo(self, access: ClusterAccess, undone: Undone) -> Planned:
        """Return the plan that sets the former levels, on the workers that are still in the group.

        Raises ``Refused`` if a level has changed since.
        """
        calls = access.calls
        steps = [step for step in undone.plan.steps if isinstance(step, SetLogLevels)]
        return Planned(
            plan_undo(
                access.cluster_id(), calls, steps, access.group_id, undone.run.id, _members(access)
            )
        )


class UndoLevels(SetLevels):
    """``loggers undo``."""

    name = "loggers undo"
    instead_of_applying = "Undo the run: connectctl runs undo RUN."
    irreversible = "it is an undo itself"

    undo = ConnectorOperation.undo


def _members(access: ClusterAccess) -> set[str] | None:
    """Return the URLs of the workers in the group, None where a rebalance hides them."""
    group = access.group
    if group is None or not access.clients.settings.get("rest"):
        return set(access.calls.urls)  # discovered in the group, or all that is known of it
    return (
        {*access.calls.urls, *(member.url for member in group.members)} if group.settled else None
    )
