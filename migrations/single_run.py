"""Shared by migrations that change no worker: a run that consists of steps of other operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import BadInput, Refused
from connectctl.ops.operations.upgrade.steps import FirstGate, IncludedStep

if TYPE_CHECKING:
    from connectctl.migrations.registry import MigrationInput


def included_steps(inputs: MigrationInput, reason: str) -> list[Any]:
    """Return the steps of another operation after a check of cluster health; none if there are
    none.
    """
    return (
        [FirstGate(), *(IncludedStep(step, reason) for step in inputs.before)]
        if inputs.before
        else []
    )


def required_parameter(inputs: MigrationInput, name: str, what: str) -> str:
    """Return a required parameter. Raises ``BadInput`` if it is missing."""
    if value := inputs.given.get(name, "").strip():
        return value
    raise BadInput(
        f"Missing parameter: {what}", next_step=f"Give --set {name}=….", code="not-given"
    )


def refuse_without_workers(inputs: MigrationInput) -> None:
    """Raise ``Refused`` if no worker can execute the plan."""
    if not any(not worker.broken for worker in inputs.snapshot.workers):
        raise Refused(
            f"No worker of {inputs.snapshot.group_id} answers: start them first", code="no-workers"
        )
