"""``upgrade`` as an operation: a mode of the workers, or a migration, with gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from connectctl.migrations.access import UpgradeAccess, observe_cluster
from connectctl.migrations.registry import MigrationInput, named
from connectctl.ops.clients.protocols import Clients
from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.core.finding import Finding
from connectctl.ops.core.journal import Journal, Run, RunState
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.saved_plan import stale
from connectctl.ops.core.step import Step, to_data
from connectctl.ops.operations.connectors.steps import restarts_instead
from connectctl.ops.operations.offsets import sources
from connectctl.ops.operations.operation import Operation, Planned, Remaining, Undone
from connectctl.ops.operations.rolling.planned_steps import PlannedSteps
from connectctl.ops.operations.upgrade import planning, run_state, runs
from connectctl.ops.operations.upgrade.context import GateSettings, UpgradeContext
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.planning import RollRequest, by_hand
from connectctl.ops.operations.upgrade.request import (
    Conditions,
    UpgradeRequest,
    conditions_in,
    request_in,
)
from connectctl.ops.operations.upgrade.runs import LoadedRun
from connectctl.ops.operations.upgrade.steps import IncludedStep, planned_turns
from connectctl.ops.registry import KINDS, ROLLS

STATED_BY_PLAN = ("WORKER005", "WORKER006")
"""Findings that workers are not known to be preparing: a plan makes them so, and states each
worker's mode itself.
"""


def plan_request(access: UpgradeAccess, request: UpgradeRequest) -> PlannedSteps:
    """Plan a migration or a mode. Raises ``Refused`` with all reasons."""
    if request.migration is None:
        to = SourceSupport(request.to or "")
        goal = "downgrade" if to is SourceSupport.DISABLED else to
        return planning.plan(access.snapshot, RollRequest(to), _findings(access, goal))
    migration, parameters = named(request.migration), request.parameters
    migration.check(parameters)
    before, observed = migration.observe(access, parameters)
    findings = _findings(access, migration.leads_to)
    return migration.plan(MigrationInput(access.snapshot, findings, before, parameters, observed))


def _findings(access: UpgradeAccess, leads_to: str | None) -> tuple[Finding, ...]:
    """Return the findings of preflight for a goal, none without a goal; errors among them refuse
    the plan.
    """
    if leads_to is None or not access.snapshot.workers:
        return ()
    return tuple(
        finding for finding in access.findings(leads_to) if finding.id not in STATED_BY_PLAN
    )


def plan_rollback(
    access: UpgradeAccess, loaded: LoadedRun, request: UpgradeRequest
) -> PlannedSteps:
    """Plan the rollback of a run of ``request`` from its current state."""
    if request.migration is not None and runs.has_own_rollback(loaded):
        steps, warnings = named(request.migration).roll_back(access, loaded)
        return PlannedSteps(tuple(steps), tuple(warnings))
    return planning.plan(access.snapshot, runs.rollback_request(loaded))


@dataclass(frozen=True)
class Upgrade(Operation[UpgradeRequest, UpgradeAccess]):
    """``upgrade``. ``gates`` are the given settings of gates; others are those of the plan, or the
    defaults.

    ``begins``: plans are to be executed, and an unfinished run prevents that.
    """

    gates: Mapping[str, Any] = field(default_factory=dict)
    pause_after: int | None = None
    begins: bool = True

    name = run_state.OPERATION
    view = "upgrade.UpgradeView"
    steps = ROLLS
    needs_group = True
    offers_undo = False
    resume_command = runs.RESUME

    def access(self, clients: Clients, request: UpgradeRequest) -> UpgradeAccess:
        """Return the observed cluster. Raises ``BadInput`` for an unknown migration, and a group
        that does not exist.
        """
        return observe_cluster(
            clients, workers=request.migration is None or named(request.migration).for_workers
        )

    def access_for(self, clients: Clients, plan: Plan) -> UpgradeAccess:
        """Return the observed cluster, in which workers may be down."""
        return observe_cluster(clients, workers=False)

    def plan(self, access: UpgradeAccess, request: UpgradeRequest) -> Planned:
        """Return the plan. Raises ``Refused`` with all reasons, and while another run has not
        ended.
        """
        if self.begins:
            runs.refuse_unfinished(access.journal, (access.cluster_id(), access.group_id))
        access = access.leaving_out(request.without)
        return self._planned(access, request, plan_request(access, request), GateSettings())

    def _planned(
        self,
        access: UpgradeAccess,
        request: UpgradeRequest,
        made: PlannedSteps,
        gates: GateSettings,
        undoes: str | None = None,
    ) -> Planned:
        left_out = [f"The plan is without {', '.join(request.without)}, which is not in the group."]
        conditions = Conditions(access.snapshot.to_baseline(), replace(gates, **self.gates))
        plan = Plan(
            self.name,
            access.cluster_id(),
            made.steps,
            made.unchanged,
            access.group_id,
            undoes=undoes,
            warnings=(*(left_out if request.without else ()), *made.warnings),
            request=to_data(request),
            conditions=to_data(conditions),
        )
        subject = f"back from {undoes}" if undoes else request.migration or f"to {request.to}"
        return Planned(plan, findings=made.findings, subjects=(subject,))

    def request_of(self, plan: Plan) -> UpgradeRequest:
        """Return the request of the plan."""
        return request_in(plan)

    def plan_again(self, access: UpgradeAccess, saved: Plan) -> Planned:
        """Return the plan by the present state. Raises ``Refused`` if the workers have changed, or
        the run that it undoes ended.
        """
        request = request_in(saved)
        run = access.journal.get(saved.undoes) if saved.undoes else None
        if run is not None and run.state is RunState.UNDONE:
            raise Refused(f"The run {run.id} is {run.state}; there is nothing to undo")
        now = access.leaving_out(() if saved.undoes else request.without).snapshot.to_baseline()
        if not now.has_workers_of(conditions_in(saved).baseline):
            why = "workers, their versions or their modes have changed since it was made"
            raise stale(why, f"Make a new plan: {self.printed_by(saved)}.")
        if run is None:
            return replace(self, begins=True).plan(access, request)
        runs.refuse_rolled_back(access.journal, run)
        return self.undo(access, Undone(access.journal, run, access.journal.plan_of(run, KINDS)))

    def printed_by(self, plan: Plan) -> str:
        """Return the command that prints such a plan."""
        return (
            super().printed_by(plan)
            if plan.undoes
            else f"connectctl upgrade plan {request_in(plan).options} -o json"
        )

    def check_start(self, plan: Plan, steps: Sequence[Step[Any]], *, attended: bool) -> None:
        """Raise ``BadInput`` for a pause after a step that does not exist, and for steps by hand
        without a terminal.
        """
        if self.pause_after is not None and not 1 <= self.pause_after <= len(plan.steps):
            raise BadInput(
                f"Invalid --pause-after {self.pause_after}: the plan has steps 1 to "
                f"{len(plan.steps)}"
            )
        workers = by_hand(steps)
        if workers and "by_hand" not in self.gates and not attended:
            raise BadInput(
                f"{', '.join(workers)} must be restarted by hand, but standard input is not a "
                "terminal; nothing was done",
                next_step="Configure workers: in the context, run the command on a terminal, or "
                "give --by-hand-timeout SECONDS.",
                code="by-hand",
            )

    def context(self, access: UpgradeAccess, planned: Planned) -> UpgradeContext:
        """Return the context of the steps; that of offsets or of an application where the plan has
        steps for them.
        """
        plan, conditions = planned.plan, conditions_in(planned.plan)
        context = UpgradeContext(
            access.reader.calls,
            access.clients.timeout,
            journal=access.journal,
            reader=access.reader,
            driver=access.driver,
            baseline=conditions.baseline,
            planned=planned_turns(plan.steps),
            patience=replace(conditions.gates, **self.gates),
        )
        if any(isinstance(step, IncludedStep) for step in plan.steps):
            observed = replace(
                sources.observe_connectors(access.clients, [])[0], calls=access.reader.calls
            )
            context.offsets = sources.context_of(access.clients, observed, access.journal)
            context.facts = context.offsets.facts
        if application := request_in(plan).parameters.get("application"):
            context.application = access.application(application.strip())[0]
        return context

    def decided(self, journal: Journal, run: Run, plan: Plan) -> Plan:
        """Return the plan with the workers that were chosen for each turn."""
        return LoadedRun.load(journal, run, plan).decided()

    def remaining(self, access: UpgradeAccess, run: Run, plan: Plan) -> Remaining:
        """Return the remaining steps, after the gate that the run began with. Raises ``Refused`` if
        its workers were changed.
        """
        runs.refuse_rolled_back(access.journal, run)
        loaded = LoadedRun.load(access.journal, run, plan)
        hint = (
            "Roll it back: connectctl upgrade abort; or end it as it is: connectctl upgrade "
            "abort --leave."
        )
        runs.check_unchanged(loaded, access.snapshot, "resumed", hint)
        included = [step.inner if isinstance(step, IncludedStep) else step for step in plan.steps]
        instead = {
            n: IncludedStep(step, "it has failed since")
            for n, step in restarts_instead(run, included).items()
        }
        return Remaining(loaded.first_undone, loaded.opening, instead)

    def undo_hint(self, run: Run) -> str:
        """Return the command with the options of gates."""
        return f"Roll it back with: connectctl upgrade abort {run.id}"

    def begun_undo(self, journal: Journal, run: Run) -> Run | None:
        """Return the unfinished run that rolls ``run`` back, which may be ``run`` itself."""
        return runs.rollback_run(journal, run)

    def undo(self, access: UpgradeAccess, undone: Undone) -> Planned:
        """Return the plan of the rollback. Raises ``Refused`` if workers were changed since the run
        was done.
        """
        loaded = LoadedRun.load(undone.journal, undone.run, undone.plan)
        if undone.run.state is RunState.DONE:
            runs.check_unchanged(
                loaded, access.snapshot, "undone", "See connectctl upgrade status."
            )
        request, gates = request_in(undone.plan), conditions_in(undone.plan).gates
        made = plan_rollback(access, loaded, request)
        return self._planned(access, replace(request, without=()), made, gates, undone.run.id)
