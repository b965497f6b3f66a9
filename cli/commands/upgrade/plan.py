"""From a request about the workers to a plan: the cluster as it is, what is asked for, and the plan as a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer
from connectctl.cli import apply
from connectctl.cli.commands.preflight.app import check_run
from connectctl.cli.commands.upgrade.observe import given_of
from connectctl.cli.output import terminal
from connectctl.cli.output.json_lines import json_lines
from connectctl.cli.output.terminal import Output
from connectctl.cli.saved_plan import check_where, stale
from connectctl.cli.views.upgrade import plan_lines
from connectctl.migrations.registry import MigrationInput, named
from connectctl.ops.all_steps import steps_from_data
from connectctl.ops.checks.types import Goal
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.step import step_to_data
from connectctl.ops.operations.upgrade import planning
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.planning import UpgradeRequest

if TYPE_CHECKING:
    from connectctl.cli.commands.upgrade.scene import Scene
    from connectctl.migrations.registry import Migration
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.operations.upgrade.planning import RollingPlan


def requested(to: str, name: str | None) -> Migration | str:
    """What is asked for: a migration by its name, or a mode."""
    return named(name) if name else to


def needs_workers(migration: str | None) -> bool:
    """Whether what is asked for concerns workers; a stream application needs none."""
    return migration is None or named(migration).of_workers


def make_plan(
    scene: Scene,
    what: Migration | str,
    given: Mapping[str, str] = MappingProxyType({}),
    without: Sequence[str] = (),
) -> RollingPlan:
    """The plan for a migration or a mode; ``given`` are its parameters, ``without`` which workers are gone.

    Raises ``Refused`` with all reasons.
    """
    scene = replace(scene, snapshot=scene.snapshot.leaving_out(without))
    made = _planned(scene, what, given)
    return replace(made, request=replace(made.request, without=tuple(without)))


def _planned(scene: Scene, what: Migration | str, given: Mapping[str, str]) -> RollingPlan:
    if isinstance(what, str):
        leads_to = "downgrade" if what == SourceSupport.DISABLED else what
        return planning.plan(scene.snapshot, UpgradeRequest(SourceSupport(what)), findings_of(scene, leads_to))
    what.check(given)
    before, seen = what.observe(scene, given)
    return what.plan(MigrationInput(scene.snapshot, findings_of(scene, what.leads_to), before, given, seen))


OWN = ("WORKER005", "WORKER006")
"""That workers are not seen to be preparing: a plan makes them so, and says itself of each worker what is known."""


def findings_of(scene: Scene, leads_to: str | None) -> tuple[Finding, ...]:
    """What preflight finds for a goal; its errors refuse the plan. Nothing is looked for without a goal."""
    if leads_to is None or not scene.snapshot.workers:
        return ()
    found = check_run(scene.session, [], Goal(leads_to), []).findings()
    return tuple(finding for finding in found if finding.id not in OWN)


def saved_plan(
    scene: Scene, data: Mapping[str, Any], path: Path, way_back: Callable[[], RollingPlan] | None = None
) -> RollingPlan:
    """The plan that was saved at ``path`` as ``data``, with the steps that are written there; ``way_back`` plans an abort.

    Raises ``Refused`` where the cluster is not as it was when it was made, or where other steps lead to the same now:
    offsets and applications change, too.
    """
    try:
        wanted = data["kind"], data["operation"]
        what = requested(data["to"], data["migration"])
        steps = [step["step"] for step in data["steps"]]
        given, without = dict(data["given"]), tuple(map(str, data.get("without", ())))
        digest, where = data["digest"], (data["clusterId"], data["groupId"])
    except (ValueError, KeyError, TypeError) as e:
        hint = "Write one with connectctl upgrade plan --out FILE."
        missing = f"it has no {e.args[0]}" if isinstance(e, KeyError) else None
        why = missing or str(e) or type(e).__name__
        raise BadInput(f"{path} is not an upgrade plan", why=why, next_step=hint) from e
    if wanted != ("Plan", "upgrade"):
        raise BadInput(f"{path} is not an upgrade plan", why=f"it is a {wanted[0]} of {wanted[1]}")
    check_where(where, scene.where)
    again = f"Make a new plan: connectctl upgrade {'abort --dry-run -o json' if way_back else 'plan'}."
    if digest != scene.snapshot.leaving_out(without).digest():
        raise stale("workers, their versions or their modes have changed since it was made", again)
    made = way_back() if way_back else make_plan(scene, what, given, without)
    if [step_to_data(step) for step in made.steps] != steps:
        raise stale("the steps would be different now", again)
    return replace(made, steps=steps_from_data(steps))


def write_plan(plan: RollingPlan, path: Path) -> None:
    """Write the plan as a file that ``upgrade apply`` takes. Raises ``BadInput`` where it cannot be written."""
    envelope = {"apiVersion": terminal.API_VERSION, "kind": "Plan", **plan.as_json()}
    try:
        path.write_text("".join(json_lines(envelope)))
    except OSError as e:
        raise BadInput(f"The plan cannot be written to {path}", why=e.strerror) from e


def usage_of(
    plan_file: Path | None,
    to: str | None,
    migration: str | None,
    pairs: Sequence[str] | None = None,
    without: Sequence[str] | None = None,
) -> dict[str, str]:
    """What was given with ``--set``. Raises ``BadInput`` where the request is given twice, or beside a plan."""
    given = [name for name, value in (("a plan", plan_file), ("--to", to), ("--migration", migration)) if value]
    if len(given) > 1:
        raise BadInput(f"Give one of {' and '.join(given)}, not both")
    if without and plan_file is not None:
        raise BadInput(
            "--without cannot be combined with a plan", next_step="The plan already names the excluded workers."
        )
    if pairs and migration is None:
        raise BadInput("--set requires --migration")
    return given_of(pairs or ())


def exit_if_pending(plan: RollingPlan, wanted: bool) -> None:
    """Exit code 3 where changes are pending and the person asked for it."""
    if wanted and plan.steps:
        raise typer.Exit(3)


def show(plan: RollingPlan, output: Output) -> None:
    """Print the plan: this is the dry run."""

    def table(wide: bool) -> None:
        for line in plan_lines(plan, wide):
            terminal.say(line)

    terminal.emit("Plan", plan.as_json(), output, table)


def confirm(scene: Scene, plan: RollingPlan, output: Output, *, yes: bool) -> None:
    """Show the plan and ask once; what is not known is part of it."""
    if not yes and apply.somebody_is_there():
        for line in plan_lines(plan)[len(plan.steps) + 1 :]:
            terminal.note(line)
    apply.confirm(scene.session, plan.plan(), output in (Output.TABLE, Output.WIDE), yes=yes)
