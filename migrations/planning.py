"""Plan a migration or a mode of the workers, check a saved plan, and plan a rollback."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from connectctl.migrations.registry import MigrationInput, named
from connectctl.ops.config.json_shape import an_object, anything, array, mapping, one_of, text
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.saved_plan import check_where, stale
from connectctl.ops.core.step import step_to_data
from connectctl.ops.operations.upgrade import planning, run_state, runs
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.planning import PlannedUpgrade, UpgradeRequest
from connectctl.ops.registry import steps_from_data

if TYPE_CHECKING:
    from connectctl.migrations.registry import ClusterAccess, Migration
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.operations.upgrade.runs import LoadedRun


def make_plan(
    access: ClusterAccess,
    what: Migration | str,
    given: Mapping[str, str] = MappingProxyType({}),
    without: Sequence[str] = (),
) -> PlannedUpgrade:
    """Plan a migration or a mode; ``given`` are its parameters, ``without`` the removed workers.

    Raises ``Refused`` with all reasons.
    """
    access = access.leaving_out(without)
    made = _planned(access, what, given)
    return replace(made, request=replace(made.request, without=tuple(without)))


def _planned(access: ClusterAccess, what: Migration | str, given: Mapping[str, str]) -> PlannedUpgrade:
    if isinstance(what, str):
        leads_to = "downgrade" if what == SourceSupport.DISABLED else what
        return planning.plan(access.snapshot, UpgradeRequest(SourceSupport(what)), _findings(access, leads_to))
    what.check(given)
    before, seen = what.observe(access, given)
    return what.plan(MigrationInput(access.snapshot, _findings(access, what.leads_to), before, given, seen))


STATED_BY_PLAN = ("WORKER005", "WORKER006")
"""Findings that workers are not known to be preparing: a plan makes them so, and states each worker's mode itself."""


def _findings(access: ClusterAccess, leads_to: str | None) -> tuple[Finding, ...]:
    """Return the findings of preflight for a goal, none without a goal; errors among them refuse the plan."""
    if leads_to is None or not access.snapshot.workers:
        return ()
    return tuple(finding for finding in access.findings(leads_to) if finding.id not in STATED_BY_PLAN)


_SHAPE = an_object(
    {
        "digest": text,
        "clusterId": text,
        "groupId": text,
        "parameters": mapping(anything),
        "steps": array(an_object({})),
    },
    {"to": one_of(*(support.value for support in SourceSupport)), "migration": text},
)
"""What a saved plan of a roll needs besides its kind."""


def saved_plan(
    access: ClusterAccess, data: Mapping[str, Any], path: Path, rollback: Callable[[], PlannedUpgrade] | None = None
) -> PlannedUpgrade:
    """Return the plan that was saved at ``path`` as ``data``, with its saved steps; ``rollback`` plans an abort.

    Raises ``Refused`` if the cluster has changed since, or if a new plan would have other steps: offsets and applications
    also change.
    """
    try:
        wanted = data["kind"], data["operation"]
        what = named(data["migration"]) if data["migration"] else data["to"]
        steps = [step["step"] for step in data["steps"]]
        given, without = dict(data["parameters"]), tuple(map(str, data["without"]))
        digest, where = data["digest"], (data["clusterId"], data["groupId"])
        _SHAPE(data)
    except (ValueError, KeyError, TypeError) as e:
        hint = "Write one with connectctl upgrade plan --out FILE."
        missing = f"it has no {e.args[0]}" if isinstance(e, KeyError) else None
        why = missing or str(e) or type(e).__name__
        raise BadInput(f"{path} is not an upgrade plan", why=why, next_step=hint) from e
    if wanted != ("Plan", "upgrade"):
        raise BadInput(f"{path} is not an upgrade plan", why=f"it is a {wanted[0]} of {wanted[1]}")
    check_where(where, access.where)
    again = f"Make a new plan: connectctl upgrade {'abort --dry-run -o json' if rollback else 'plan'}."
    if digest != access.snapshot.leaving_out(without).digest():
        raise stale("workers, their versions or their modes have changed since it was made", again)
    made = rollback() if rollback else make_plan(access, what, given, without)
    if [step_to_data(step) for step in made.steps] != steps:
        raise stale("the steps would be different now", again)
    return replace(made, plan=replace(made.plan, steps=steps_from_data(steps)))


def rollback_plan(access: ClusterAccess, restored: LoadedRun) -> PlannedUpgrade:
    """Plan the rollback of a run from its current state."""
    if not runs.has_own_rollback(restored):
        notes = run_state.UpgradeNotes.load(access.journal, restored.run.id)
        return planning.plan(access.snapshot, runs.rollback_request(restored, notes))
    name, given = restored.request.name or "", dict(restored.request.parameters)
    steps, remarks = named(name).roll_back(access, restored)
    request = UpgradeRequest(None, name, aborts=restored.run.id, parameters=given)
    return PlannedUpgrade(access.snapshot, request, planning.plan_of(access.snapshot, steps), remarks=remarks)
