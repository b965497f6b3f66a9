"""What migrations have in common that change no worker: steps of other operations, as a run of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.operations.upgrade.planning import PlannedUpgrade, UpgradeRequest, plan_of
from connectctl.ops.operations.upgrade.steps import FirstGate, IncludedStep

if TYPE_CHECKING:
    from connectctl.migrations.registry import MigrationInput


def plan(
    inputs: MigrationInput, name: str, steps: Sequence[Any], *, remarks: Iterable[str] = (), unknown: Iterable[str] = ()
) -> PlannedUpgrade:
    """A plan of ``steps``, as they are."""
    request = UpgradeRequest(None, name, given=dict(inputs.given))
    made = plan_of(inputs.snapshot, steps)
    return PlannedUpgrade(inputs.snapshot, request, made, tuple(unknown), tuple(inputs.findings), tuple(remarks))


def included_steps(inputs: MigrationInput, reason: str) -> list[Any]:
    """The steps that came from another operation, behind a look at the cluster's health; none where there are none."""
    return [FirstGate(), *(IncludedStep(step, reason) for step in inputs.before)] if inputs.before else []


def required_parameter(inputs: MigrationInput, name: str, what: str) -> str:
    """A value that a migration cannot do without. Raises ``BadInput``."""
    if value := inputs.given.get(name, "").strip():
        return value
    raise BadInput(f"Missing parameter: {what}", next_step=f"Give --set {name}=….", code="not-given")


def refuse_without_workers(inputs: MigrationInput) -> None:
    """Raises ``Refused`` where no worker could carry out what is planned."""
    if not any(not worker.broken for worker in inputs.snapshot.workers):
        raise Refused(f"No worker of {inputs.snapshot.group_id} answers: start them first", code="no-workers")
