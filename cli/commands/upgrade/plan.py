"""Plan the request for the workers, print it, confirm it, or write it to a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from connectctl.cli import apply
from connectctl.cli.commands.upgrade.scene import observe_cluster
from connectctl.cli.output import terminal
from connectctl.cli.output.json_lines import json_lines
from connectctl.cli.output.terminal import Output
from connectctl.cli.views.upgrade import plan_lines
from connectctl.migrations.planning import make_plan
from connectctl.migrations.registry import named
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.upgrade.runs import refuse_unfinished

if TYPE_CHECKING:
    from connectctl.cli.commands.upgrade.scene import Scene
    from connectctl.cli.session import Session
    from connectctl.ops.operations.upgrade.planning import PlannedUpgrade


def planned(
    session: Session,
    request: tuple[str, str | None, Mapping[str, str]],
    without: Sequence[str] | None,
    *,
    begins: bool = False,
) -> tuple[Scene, PlannedUpgrade]:
    """Return the cluster, and the plan of a mode or migration with its parameters; ``begins``: to be executed."""
    to, migration, given = request
    what = to if migration is None else named(migration)
    scene = observe_cluster(session, workers=isinstance(what, str) or what.for_workers)
    if begins:
        refuse_unfinished(scene.journal, scene.where)
    return scene, make_plan(scene, what, given, without or ())


def write_plan(plan: PlannedUpgrade, path: Path) -> None:
    """Write the plan to a file for ``upgrade apply``. Raises ``BadInput`` if it cannot be written."""
    envelope = {"apiVersion": terminal.API_VERSION, "kind": "Plan", **plan.as_json()}
    try:
        path.write_text("".join(json_lines(envelope)))
    except OSError as e:
        raise BadInput(f"The plan cannot be written to {path}", why=e.strerror) from e


def checked_parameters(
    plan_file: Path | None,
    to: str | None,
    migration: str | None,
    pairs: Sequence[str] | None = None,
    without: Sequence[str] | None = None,
) -> dict[str, str]:
    """Return the parameters of ``--set``. Raises ``BadInput`` if the request is given twice, or with a plan."""
    given = [name for name, value in (("a plan", plan_file), ("--to", to), ("--migration", migration)) if value]
    if len(given) > 1:
        raise BadInput(f"Give one of {' and '.join(given)}, not both")
    if without and plan_file is not None:
        raise BadInput(
            "--without cannot be combined with a plan", next_step="The plan already names the excluded workers."
        )
    if pairs and migration is None:
        raise BadInput("--set requires --migration")
    return parse_parameters(pairs or ())


def parse_parameters(pairs: Sequence[str]) -> dict[str, str]:
    """Parse the parameters of ``--set NAME=VALUE``. Raises ``BadInput``."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise BadInput(f"--set {pair} is not NAME=VALUE")
        if name in found:
            raise BadInput(f"--set {name} is given twice")
        found[name] = value
    return found


def show(plan: PlannedUpgrade, output: Output) -> None:
    """Print the plan, as in a dry run."""

    def table(wide: bool) -> None:
        for line in plan_lines(plan, wide):
            terminal.say(line)

    terminal.emit("Plan", plan.as_json(), output, table)


def confirm(scene: Scene, plan: PlannedUpgrade, output: Output, *, yes: bool) -> None:
    """Print the plan, with what is unknown, and ask for confirmation."""
    if not yes and apply.somebody_is_there():
        for line in plan_lines(plan)[len(plan.steps) + 1 :]:
            terminal.note(line)
    apply.confirm(scene.session, plan.plan, output in (Output.TABLE, Output.WIDE), yes=yes)
