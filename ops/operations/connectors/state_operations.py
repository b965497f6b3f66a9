"""Operations that stop, pause, resume and restart connectors, and that reset their active
topics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectctl.ops.connect.connector import requested_state
from connectctl.ops.core.errors import Refused
from connectctl.ops.core.plan import Noop, Plan
from connectctl.ops.operations.connectors import tracked_topics
from connectctl.ops.operations.connectors.contradictions import refuse_doubtful
from connectctl.ops.operations.connectors.operation import ConnectorOperation
from connectctl.ops.operations.connectors.steps import (
    VERB_OF,
    WANTED,
    Await,
    Restart,
    RestartTask,
    SetTargetState,
    former_state,
    plan_restart,
    plan_state,
)
from connectctl.ops.operations.connectors.tracked_topics import ResetTopics
from connectctl.ops.operations.operation import Planned, Undone

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Run
    from connectctl.ops.operations.connectors.access import ClusterAccess

UNDO = "connectors undo"
"""The operation of plans that undo changes of connectors."""


@dataclass(frozen=True)
class StateRequest:
    """``names`` are names or globs of connectors, None for all. ``wait``: the run waits until they
    are in the state.
    """

    names: tuple[str, ...] | None
    wait: bool = False


def _request_of(plan: Plan) -> StateRequest:
    waits = [step.subject for step in plan.steps if isinstance(step, Await)]
    return StateRequest(tuple(dict.fromkeys((*waits, *plan.resources))), bool(waits))


class ChangeState(ConnectorOperation[StateRequest]):
    """Set the target state of connectors. A subclass is the operation of one verb."""

    steps = (SetTargetState, Await)
    # Each verb is undone with another verb.
    offers_undo = False

    @property
    def verb(self) -> str:
        """Return the verb of the operation: stop, pause or resume."""
        return self.name.removeprefix("connectors ")

    def plan(self, access: ClusterAccess, request: StateRequest) -> Planned:
        """Return the plan for the connectors that are not in the state. Raises ``BadInput`` for
        unknown ones.
        """
        found, verb = access.connectors(request.names), self.verb
        return Planned(
            plan_state(
                access.cluster_id(), found, verb, wait=request.wait, group_id=access.group_id
            )
        )

    def request_of(self, plan: Plan) -> StateRequest:
        """Return the connectors of the plan."""
        return _request_of(plan)

    def undo(self, access: ClusterAccess, undone: Undone) -> Planned:
        """Return the plan that gives each connector its former target state."""
        return Planned(plan_former_states(access, undone))


class Stop(ChangeState):
    """``connectors stop``."""

    name = "connectors stop"


class Pause(ChangeState):
    """``connectors pause``."""

    name = "connectors pause"


class Resume(ChangeState):
    """``connectors resume``."""

    name = "connectors resume"


def plan_former_states(access: ClusterAccess, undone: Undone) -> Plan:
    """Return the plan that restores the target states from before a run. Raises ``Refused`` if one
    was changed since.
    """
    changed = [step for _, step in undone.changed_steps() if isinstance(step, SetTargetState)]
    target_states = {step.subject: WANTED[step.verb] for step in reversed(changed)}
    former = {step.subject: former_state(step) for step in changed}
    found = {health.name: health for health in access.connectors()}
    refuse_doubtful(health.connector for name, health in found.items() if name in former)
    steps: list[SetTargetState] = []
    noops: list[Noop] = []
    for name, state in former.items():
        if name not in found:
            raise changed_since(undone.run, name, "it was deleted")
        now = requested_state(found[name].connector)
        if now is state:
            noops.append(Noop(name, f"already {state}"))
        elif now is not target_states[name]:
            raise changed_since(
                undone.run,
                name,
                f"its target state is {now}, and the run set {target_states[name]}",
            )
        else:
            steps.append(
                SetTargetState(name, VERB_OF[state], now=str(found[name].verdict), former=now.value)
            )
    waits = [Await(step.subject, WANTED[step.verb]) for step in steps] if undone.wait else []
    return Plan(
        UNDO,
        access.cluster_id(),
        (*steps, *waits),
        tuple(noops),
        access.group_id,
        independent=True,
        undoes=undone.run.id,
    )


def changed_since(run: Run, name: str, why: str | None = None) -> Refused:
    """Return the error for a connector that is no longer as the run left it."""
    return Refused(
        f"{name} was changed since the run {run.id}; nothing was undone",
        why=why,
        next_step=f"See connectctl connectors show {name}, and undo what came later first: "
        "connectctl runs list.",
        code="stale",
    )


@dataclass(frozen=True)
class RestartRequest(StateRequest):
    """``task`` is the only one to restart. ``named``: the user named the connectors, and stopped
    ones are an error.
    """

    only_failed: bool = False
    task: int | None = None
    named: bool = False


class RestartConnectors(ConnectorOperation[RestartRequest]):
    """``connectors restart``."""

    name = "connectors restart"
    steps = (Restart, RestartTask, Await)
    irreversible = "a restart changes neither a configuration nor a state"

    def plan(self, access: ClusterAccess, request: RestartRequest) -> Planned:
        """Return the plan that restarts connectors, or a task of each. Raises what ``plan_restart``
        raises.
        """
        plan = plan_restart(
            access.cluster_id(),
            access.connectors(request.names),
            only_failed=request.only_failed,
            task=request.task,
            named=request.named,
            wait=request.wait,
            group_id=access.group_id,
        )
        return Planned(plan)

    def request_of(self, plan: Plan) -> RestartRequest:
        """Return what the steps restart."""
        state_request = _request_of(plan)
        only_failed = any(isinstance(step, Restart) and step.only_failed for step in plan.steps)
        task = next((step.task for step in plan.steps if isinstance(step, RestartTask)), None)
        return RestartRequest(state_request.names, state_request.wait, only_failed, task)


class ResetActiveTopics(ConnectorOperation[str]):
    """``connectors topics --reset`` of one connector."""

    name = "connectors topics"
    steps = (ResetTopics,)
    irreversible = "workers list a topic again only after a task has used it"

    def plan(self, access: ClusterAccess, request: str) -> Planned:
        """Return the plan that resets the active topics of the connector ``request``."""
        found = tracked_topics.read(access.calls, request)
        return Planned(
            tracked_topics.plan_reset(access.cluster_id(), request, found, access.group_id)
        )

    def request_of(self, plan: Plan) -> str:
        """Return the connector of the plan."""
        (name,) = plan.resources
        return name
