"""All migrations by number, and their status for a cluster.

A migration is a module ``mNNNN_name`` with a docstring that gives the reason and what is guaranteed, and a constant
``MIGRATION``. To add one, write the module and name it in ``MODULES``; nothing else has to know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import BadInput

if TYPE_CHECKING:
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.operations.upgrade.planning import RollingPlan
    from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot

MODULES = (
    "m0001_prepare_exactly_once",
    "m0002_enable_exactly_once",
    "m0003_soft_downgrade",
    "m0004_hard_downgrade_two_steps",
    "m0005_hard_downgrade_one_step",
    "m0006_own_offsets_topic",
    "m0007_global_offsets_topic",
    "m0008_stale_offsets_topics",
    "m0009_enforce_tasks_max",
    "m0010_group_aware_producers",
    "m0011_per_partition_producers",
)


class Status(StrEnum):
    """The status of a migration for a cluster. POSSIBLE: available, but optional, such as a rollback."""

    PENDING = "pending"
    CONVERGED = "converged"
    POSSIBLE = "possible"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class MigrationStatus:
    """A standing, and why."""

    status: Status
    why: str


@dataclass(frozen=True)
class MigrationInput:
    """What a planner gets. ``before`` are steps of other operations that have to come first; ``given`` what was said
    with ``--set NAME=VALUE``; ``seen`` is what the migration has to have looked at, as its ``requires`` says.
    """

    snapshot: RollingSnapshot
    findings: Sequence[Finding] = ()
    before: Sequence[Any] = ()
    given: Mapping[str, str] = field(default_factory=dict)
    seen: Any = None


@dataclass(frozen=True)
class Migration:
    """A named change of a cluster. ``plan`` is pure and raises ``Refused``; ``status`` evaluates a cluster.

    ``leads_to`` is the goal of preflight that it is checked against (``preparing``, ``enabled``, ``downgrade``), None for
    nothing. ``merges_offsets``: connectors with an offsets topic of their own come back to the global one before it.
    ``satisfies``: values of ``--to`` whose runs count as this migration applied. ``parameters`` are the names for ``--set``
    with their meaning. ``requires``: ``offsets``, ``tasks`` or ``application``, what has to be observed in addition.
    """

    number: int
    name: str
    story: str
    plan: Callable[[MigrationInput], RollingPlan]
    status: Callable[[RollingSnapshot], MigrationStatus]
    leads_to: str | None = None
    merges_offsets: bool = False
    satisfies: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    requires: str | None = None

    def check(self, given: Mapping[str, str]) -> None:
        """Raises ``BadInput`` for a name that the migration does not take."""
        for name in given:
            if name not in self.parameters:
                near = get_close_matches(name, self.parameters, n=1)
                known = f"Parameters: {', '.join(self.parameters)}." if self.parameters else "It has no parameters."
                hint = f"Did you mean {near[0]}?" if near else known
                raise BadInput(f"{self.name} has no parameter {name} (--set)", next_step=hint, code="unknown-name")

    @property
    def title(self) -> str:
        """What it is for, in one line."""
        return self.story.strip().splitlines()[0].replace("`", "")

    @property
    def id(self) -> str:
        """Number and name: ``0001-prepare-exactly-once``."""
        return f"{self.number:04}-{self.name}"


@cache
def migrations() -> tuple[Migration, ...]:
    """Every migration, by number."""
    return tuple(import_module(f"connectctl.migrations.{module}").MIGRATION for module in MODULES)


def named(name: str) -> Migration:
    """The migration called ``name``, with its number or without. Raises ``BadInput``."""
    for migration in migrations():
        if name in (migration.name, migration.id, f"{migration.number:04}"):
            return migration
    near = get_close_matches(name, [migration.name for migration in migrations()], n=1)
    hint = f"Did you mean {near[0]}?" if near else "See connectctl upgrade list."
    raise BadInput(f"Unknown migration: {name}", next_step=hint, code="unknown-migration")
