"""Plan a migration or a mode of the workers, and a rollback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.migrations.registry import MigrationInput, named
from connectctl.ops.operations.rolling.planned_steps import PlannedSteps
from connectctl.ops.operations.upgrade import planning, runs
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.planning import RollRequest

if TYPE_CHECKING:
    from connectctl.migrations.access import UpgradeAccess
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.operations.upgrade.request import UpgradeRequest
    from connectctl.ops.operations.upgrade.runs import LoadedRun

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
