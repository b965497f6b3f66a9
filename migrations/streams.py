"""Shared by both migrations of a Streams application (KIP-447)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from connectctl.migrations.offset_moves import listed
from connectctl.migrations.registry import (
    Given,
    Migration,
    MigrationInput,
    MigrationStatus,
    Observed,
    Status,
    required_parameter,
)
from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.wait import wait_until
from connectctl.ops.operations.streams_upgrade import context, planning
from connectctl.ops.operations.streams_upgrade.observe import observe as observe_application
from connectctl.ops.operations.upgrade import runs
from connectctl.ops.operations.upgrade.request import request_in

if TYPE_CHECKING:
    from connectctl.migrations.access import UpgradeAccess
    from connectctl.ops.kafka.streams_eos import ProducerModel
    from connectctl.ops.operations.rolling.planned_steps import PlannedSteps
    from connectctl.ops.operations.upgrade.runs import LoadedRun
    from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot

PARAMETERS = {
    "application": "its application.id, which the context describes under applications",
    "instances": "its instances, host:port, separated by commas; those of the context by default",
    "members": "how many members its group should have; as many as it has by default",
}
PAUSE = 0.3
"""Seconds between two polls of a group that rebalances."""


def observe(access: UpgradeAccess, given: Given) -> Observed:
    """Take the snapshot of the Streams application; None if none is named, which the plan
    refuses.
    """
    name = given.get("application", "").strip()
    if not name:
        return (), None
    reader, known = access.application(name)

    def rebalanced() -> bool | None:  # a rebalance hides the members' metadata until it is over
        return None if "Rebalance" in reader.groups.group(name).state else True

    wait_until(rebalanced, access.clients.timeout, PAUSE)
    return (), observe_application(reader, listed(given, "instances") or known)


def plan(
    inputs: MigrationInput, to: ProducerModel, *, value: str | None = None, older: bool = False
) -> PlannedSteps:
    """Plan the change of the application; ``inputs.observed`` is its snapshot."""
    required_parameter(inputs, "application", "application")
    request = planning.ApplicationRequest(to, value, older, _members(inputs.given.get("members")))
    return planning.plan(inputs.observed, request)


def _members(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise BadInput(f"members={text} is not an integer from 1 on")
    return int(text)


def status(snapshot: RollingSnapshot) -> MigrationStatus:
    """Return POSSIBLE: it does not concern the Connect cluster."""
    return MigrationStatus(
        Status.POSSIBLE, "it concerns a stream application: --set application=ID"
    )


def roll_back(access: UpgradeAccess, restored: LoadedRun) -> Observed:
    """Return the steps of a roll that restores the instances' former values."""
    was = context.ApplicationNotes.load(access.journal, restored.run.id).was
    if not was:
        return (), ()
    request, parameters = (
        runs.application_rollback(restored, was),
        request_in(restored.plan).parameters,
    )
    reader, known = access.application(parameters["application"].strip())
    made = planning.plan(
        observe_application(reader, listed(parameters, "instances") or known), request
    )
    return made.steps, made.warnings


def migration(
    number: int,
    name: str,
    doc: str,
    plan: Callable[[MigrationInput], PlannedSteps],
    parameters: Mapping[str, str],
) -> Migration:
    """A migration of a stream application with ``plan``, which needs no workers."""
    return Migration(
        number,
        name,
        doc,
        plan,
        status,
        parameters=parameters,
        observe=observe,
        roll_back=roll_back,
        for_workers=False,
    )
