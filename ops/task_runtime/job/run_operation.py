"""``run`` as an operation, and the hand-back of a connector that a killed run had taken over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectctl.ops.core.errors import ConnectctlError, Refused
from connectctl.ops.core.executor import left_to_end
from connectctl.ops.core.journal import Journal, Run, RunState
from connectctl.ops.core.plan import Plan
from connectctl.ops.operations.connectors.state_operations import changed_since
from connectctl.ops.operations.operation import NOTHING_LEFT, Operation, Planned, Remaining, Undone
from connectctl.ops.task_runtime.job.steps import (
    OPERATION,
    CreateInternalTopic,
    HandBack,
    RunTasks,
    StartConnector,
    StartTasks,
    StopOnWorkers,
    tasks_of,
)

if TYPE_CHECKING:
    from connectctl.ops.clients.protocols import Clients
    from connectctl.ops.core.context import RunContext
    from connectctl.ops.task_runtime.job.hand_back import KilledRunContext
    from connectctl.ops.task_runtime.job.planned_run import RunAccess
    from connectctl.ops.task_runtime.job.run_request import RunRequest


class RunJob(Operation["RunRequest", "RunAccess"]):
    """Runs the tasks of a job. With ``waits`` it also waits for a cluster that never responded.

    The remaining step of a killed run, and its undo, hand the connector back to the workers. Its
    tasks continue when the job file is run again.
    """

    name = OPERATION
    command = "run JOB"
    view = "run_job.RunView"
    steps = (CreateInternalTopic, StopOnWorkers, StartConnector, StartTasks, RunTasks, HandBack)
    irreversible = "its records are in their topics"

    def __init__(self, *, waits: bool = True):
        self.waits = waits

    def only_planned(self) -> RunJob:
        """Return the operation that does not wait for a cluster that never responded."""
        return RunJob(waits=False)

    def access(self, clients: Clients, request: RunRequest) -> RunAccess:
        """Return the clients. Nothing is opened yet."""
        from connectctl.ops.task_runtime.job.planned_run import RunAccess

        return RunAccess(clients, request, self.waits)

    def plan(self, access: RunAccess, request: RunRequest) -> Planned:
        """Return the plan of a run. Raises ``BadInput`` and ``Refused``."""
        from connectctl.ops.task_runtime.job.planned_run import plan_run

        return plan_run(access)

    def plan_again(self, access: RunAccess, saved: Plan) -> Planned:
        """Return the current plan of the request. Raises ``Refused`` if an input of ``saved`` has
        changed.
        """
        from connectctl.ops.task_runtime.job.planned_run import plan_run
        from connectctl.ops.task_runtime.job.saved_run import SavedRun

        return plan_run(access, SavedRun.of(saved))

    def request_of(self, plan: Plan) -> RunRequest:
        """Return the request of the plan. Raises ``BadInput`` if it runs no tasks."""
        return tasks_of(plan).request

    def context(self, access: RunAccess, planned: Planned) -> RunContext:
        """Return the context of a run, or of the hand-back of a killed run."""
        from connectctl.ops.task_runtime.job.job_context import SparkJobContext
        from connectctl.ops.task_runtime.job.planned_run import PlannedRun

        if isinstance(planned, PlannedRun):
            return SparkJobContext(planned=planned)
        return _killed_run(access.clients, planned.plan)

    def is_unfinished(self, journal: Journal, run: Run) -> bool:
        """Return True if the run has a connector to hand back, or if that is unknown."""
        try:
            return bool(left_to_end(_plan_of(journal, run).steps, run))
        except ConnectctlError:
            return True

    def remaining(self, access: RunAccess, run: Run, plan: Plan) -> Remaining:
        """Return the hand-back. Raises ``Refused`` if the run is alive, or has nothing to hand
        back.
        """
        from connectctl.ops.task_runtime.job.hand_back import alone

        with alone(access.clients, *run.subjects):
            remaining = left_to_end(plan.steps, run)
        if not remaining and not all(run.done(number) for number in range(len(plan.steps))):
            raise Refused(
                f"The run {run.id} has ended; there is nothing to hand back to the workers",
                next_step="Run its job file again: connectctl run FILE continues from its source "
                "offsets.",
                code=NOTHING_LEFT,
            )
        return Remaining(min(remaining, default=len(plan.steps)))

    def undo(self, access: RunAccess, undone: Undone) -> Planned:
        """Return the plan that hands the connector back. Raises ``Refused`` if that was done, or
        others changed the connector since.
        """
        planned = _hand_back(access.clients, undone)
        return super().undo(access, undone) if planned is None else planned


@dataclass(frozen=True)
class WorkersAccess:
    """The clients of a hand-back."""

    clients: Clients

    def cluster_id(self) -> str:
        """Return the id of the Kafka cluster."""
        return self.clients.kafka.cluster_id()

    @property
    def group_id(self) -> str:
        """The workers' group."""
        return self.clients.group_id


class HandBackConnector(Operation[str, WorkersAccess]):
    """Hands the connector of a killed run back to its workers: the undo of that run."""

    name = "run hand-back"
    steps = (HandBack,)
    needs_group = True
    irreversible = "the workers have the connector again"

    def access(self, clients: Clients, request: str) -> WorkersAccess:
        """Return the clients."""
        return WorkersAccess(clients)

    def request_of(self, plan: Plan) -> str:
        """Return the connector."""
        return plan.subjects[0]

    def plan_again(self, access: WorkersAccess, saved: Plan) -> Planned:
        """Return the plan. Raises ``Refused`` if others changed the connector since, or the run was
        undone.
        """
        journal = access.clients.journal(read_only=True)
        run = journal.get(str(saved.undoes))
        if run.state is RunState.UNDONE:
            raise Refused(f"The run {run.id} is {run.state}; there is nothing to undo")
        undone = Undone(journal, run, _plan_of(journal, run))
        return _hand_back(access.clients, undone) or Planned(replace(saved, steps=()))

    def context(self, access: WorkersAccess, planned: Planned) -> KilledRunContext:
        """Return the context of the step."""
        return _killed_run(access.clients, planned.plan)


def _plan_of(journal: Journal, run: Run) -> Plan:
    return journal.plan_of(run, {kind.__name__: kind for kind in RunJob.steps})


def _hand_back(clients: Clients, undone: Undone) -> Planned | None:
    """Return the plan that hands the connector of a run back; None if that was done. Raises
    ``Refused`` if others changed it since.
    """
    run, plan = undone.run, undone.plan
    remaining = left_to_end(plan.steps, run)
    if not remaining:
        return None
    context = _killed_run(clients, plan)
    with context.opened():
        if why := context.taken_back(context.name):
            raise changed_since(run, context.name, why)
    steps = tuple(plan.steps[number] for number in remaining)
    name, group_id = HandBackConnector.name, run.group_id
    return Planned(Plan(name, run.cluster_id, steps, group_id=group_id, undoes=run.id))


def _killed_run(clients: Clients, plan: Plan) -> KilledRunContext:
    from connectctl.ops.task_runtime.job.hand_back import KilledRunContext

    step = next(step for step in plan.steps if isinstance(step, HandBack))
    return KilledRunContext(clients=clients, name=step.subject)
