"""Shared by both hard downgrades: offsets are merged into the global topic before any binaries are
replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from connectctl.migrations import offset_moves
from connectctl.migrations.registry import Migration, MigrationInput, MigrationStatus, down_from
from connectctl.ops.core.errors import Refused
from connectctl.ops.operations.rolling.planned_steps import PlannedSteps
from connectctl.ops.operations.upgrade import planning
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.planning import RollRequest
from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot


def plan(inputs: MigrationInput, request: RollRequest) -> PlannedSteps:
    """Plan ``request``; ``inputs.before`` are the steps that merge offsets. Raises ``Refused`` if
    they are missing.
    """
    moved = {step.subject for step in inputs.before}
    unmerged = [name for name in inputs.snapshot.dedicated if name not in moved]
    if unmerged:
        raise Refused(
            f"Older releases read the global offsets topic only, and {', '.join(unmerged)} has "
            "one of its own",
            next_step=" ; ".join(
                f"connectctl offsets merge {n} --into global --unset-topic --stop" for n in unmerged
            ),
            code="dedicated-topics",
        )
    found = planning.plan(inputs.snapshot, request, inputs.findings, inputs.before)
    found = replace(found, warnings=(*(inputs.observed or ()), *found.warnings))
    if not found.steps:
        return found
    note = (
        "The older release is not checked: any release before 3.3 is accepted, and connectors "
        "whose plugins or configurations it does not support will fail."
    )
    return replace(found, warnings=(*found.warnings, note))


def status(snapshot: RollingSnapshot) -> MigrationStatus:
    """Converged if every worker runs a release before 3.3."""
    return down_from(snapshot, (SourceSupport.NOT_SUPPORTED,))


def migration(
    number: int, name: str, doc: str, plan: Callable[[MigrationInput], PlannedSteps]
) -> Migration:
    """Return a hard downgrade with ``plan``: it merges offsets first, and a rollback undoes that
    merge.
    """
    undo_merges = offset_moves.roll_back
    return Migration(
        number,
        name,
        doc,
        plan,
        status,
        leads_to="downgrade",
        observe=offset_moves.to_global,
        roll_back=undo_merges,
    )
