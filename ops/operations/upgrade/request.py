"""The request of an upgrade, and the other members of its plans."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from connectctl.ops.core.errors import BadInput
from connectctl.ops.core.plan import Plan
from connectctl.ops.core.step import from_data
from connectctl.ops.operations.upgrade.context import GateSettings
from connectctl.ops.operations.upgrade.snapshot import Baseline

T = TypeVar("T")


@dataclass(frozen=True)
class UpgradeRequest:
    """A mode of the workers, or a migration with its parameters. ``without`` are workers of an
    earlier run that are down.
    """

    to: str | None = None
    migration: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()

    @property
    def options(self) -> str:
        """The options of ``upgrade plan`` for it."""
        words = (
            ["--to", str(self.to)] if self.migration is None else ["--migration", self.migration]
        )
        words += [
            word for name, value in self.parameters.items() for word in ("--set", f"{name}={value}")
        ]
        return shlex.join(
            [*words, *(word for worker in self.without for word in ("--without", worker))]
        )


@dataclass(frozen=True)
class Conditions:
    """What the steps of an upgrade are executed with: the state before it, and the settings of its
    gates.
    """

    baseline: Baseline
    gates: GateSettings


def request_in(plan: Plan) -> UpgradeRequest:
    """Return the request of a plan. Raises ``BadInput`` if it has none."""
    return _read(UpgradeRequest, plan.request, "request")


def conditions_in(plan: Plan) -> Conditions:
    """Return the conditions of a plan. Raises ``BadInput`` if it has none."""
    return _read(Conditions, plan.conditions, "conditions")


def _read(kind: type[T], data: Mapping[str, object], member: str) -> T:
    try:
        found: T = from_data(kind, data or None, {})
        return found
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise BadInput(
            f"The plan of an upgrade cannot be read: its {member} is not as it was written",
            why=str(e),
        ) from e
