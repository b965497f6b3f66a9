"""What both migrations of a stream application have in common (KIP-447)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectctl.migrations import single_run
from connectctl.migrations.registry import MigrationStatus, Status
from connectctl.ops.core.errors import BadInput
from connectctl.ops.operations.streams_upgrade import planning

if TYPE_CHECKING:
    from connectctl.migrations.registry import MigrationInput
    from connectctl.ops.kafka.streams_eos import ProducerModel
    from connectctl.ops.operations.upgrade.planning import RollingPlan
    from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot

PARAMETERS = {
    "application": "its application.id, which the context describes under applications",
    "instances": "its instances, host:port, separated by commas; those of the context by default",
    "members": "how many members its group should have; as many as it has by default",
}


def plan(
    ask: MigrationInput, name: str, to: ProducerModel, *, value: str | None = None, older: bool = False
) -> RollingPlan:
    """The plan for the application that ``ask.seen`` is the snapshot of."""
    single_run.needed(ask, "application", "application")
    request = planning.ApplicationRequest(to, value, older, _members(ask.given.get("members")))
    made = planning.plan(ask.seen, request)
    return single_run.plan(ask, name, made.steps, remarks=made.remarks, unknown=made.unknown)


def _members(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise BadInput(f"members={text} is not an integer from 1 on")
    return int(text)


def status(snapshot: RollingSnapshot) -> MigrationStatus:
    """Not a matter of the Connect cluster."""
    return MigrationStatus(Status.POSSIBLE, "it concerns a stream application: --set application=ID")
