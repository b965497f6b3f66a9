"""All migrations by number, and their status for a cluster.

A migration is a module ``mNNNN_name`` with a docstring that gives the reason and what is
guaranteed, and a constant ``MIGRATION``. To add one, write the module and name it in ``MODULES``;
nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from connectctl.ops.core.errors import BadInput, Refused, did_you_mean
from connectctl.ops.operations.upgrade.mode import SourceSupport
from connectctl.ops.operations.upgrade.steps import FirstGate, IncludedStep

if TYPE_CHECKING:
    from connectctl.migrations.access import UpgradeAccess
    from connectctl.ops.core.finding import Finding
    from connectctl.ops.operations.rolling.planned_steps import PlannedSteps
    from connectctl.ops.operations.upgrade.runs import LoadedRun
    from connectctl.ops.operations.upgrade.snapshot import RollingSnapshot

Given = Mapping[str, str]
"""The parameters of ``--set NAME=VALUE``."""
Observed = tuple[tuple[Any, ...], Any]
"""Steps of other operations that come first, and what else was observed."""
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
    """The status of a migration for a cluster. POSSIBLE: available, but optional, such as a
    rollback.

    UNKNOWN: it depends on connectors that could not be read.
    """

    PENDING = "pending"
    CONVERGED = "converged"
    POSSIBLE = "possible"
    NOT_APPLICABLE = "not applicable"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class MigrationStatus:
    """The status, and why."""

    status: Status
    why: str


@dataclass(frozen=True)
class MigrationInput:
    """The input of a planner. ``before`` are steps of other operations that come first;
    ``observed`` is what else its ``observe`` returned; ``given`` are the parameters of
    ``--set NAME=VALUE``.
    """

    snapshot: RollingSnapshot
    findings: Sequence[Finding] = ()
    before: Sequence[Any] = ()
    given: Given = field(default_factory=dict)
    observed: Any = None


def _observe_nothing(access: UpgradeAccess, of: Given | LoadedRun) -> Observed:
    return (), ()


@dataclass(frozen=True)
class Migration:
    """A named change of a cluster. ``plan`` is pure and raises ``Refused``; ``status`` evaluates a
    cluster.

    ``leads_to`` is the goal of preflight that it is checked against (``preparing``, ``enabled``,
    ``downgrade``), or None. ``satisfies``: modes and goals whose runs count as this migration
    applied. ``parameters``: the names for ``--set`` with their meaning. ``observe`` reads what
    ``plan`` needs in addition to the workers; ``roll_back`` returns the steps, with warnings, that
    roll back a run that changed no worker. ``for_workers``: whether it needs any.
    ``of_connectors``: whether its status depends on the connectors.
    """

    number: int
    name: str
    description: str
    plan: Callable[[MigrationInput], PlannedSteps]
    status: Callable[[RollingSnapshot], MigrationStatus]
    leads_to: str | None = None
    satisfies: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    observe: Callable[[UpgradeAccess, Given], Observed] = _observe_nothing
    roll_back: Callable[[UpgradeAccess, LoadedRun], Observed] = _observe_nothing
    for_workers: bool = True
    of_connectors: bool = False

    def status_of(self, snapshot: RollingSnapshot) -> MigrationStatus:
        """Return the status for a cluster: UNKNOWN if it depends on connectors that could not be
        read.
        """
        if self.of_connectors and snapshot.workers and snapshot.connectors is None:
            return MigrationStatus(Status.UNKNOWN, f"could not read {'; '.join(snapshot.unseen)}")
        return self.status(snapshot)

    def check(self, given: Given) -> None:
        """Raise ``BadInput`` for an unknown parameter."""
        for name in given:
            if name not in self.parameters:
                known = (
                    f"Parameters: {', '.join(self.parameters)}."
                    if self.parameters
                    else "It has no parameters."
                )
                raise BadInput(
                    f"{self.name} has no parameter {name} (--set)",
                    next_step=did_you_mean(name, self.parameters, known),
                    code="unknown-name",
                )

    @property
    def title(self) -> str:
        """The purpose, in one line."""
        return self.description.strip().splitlines()[0].replace("`", "")

    @property
    def id(self) -> str:
        """Number and name: ``0001-prepare-exactly-once``."""
        return f"{self.number:04}-{self.name}"


@cache
def migrations() -> tuple[Migration, ...]:
    """Return every migration, by number."""
    return tuple(import_module(f"connectctl.migrations.{module}").MIGRATION for module in MODULES)


def named(name: str) -> Migration:
    """Return the migration ``name``, with or without its number. Raises ``BadInput`` if unknown."""
    for migration in migrations():
        if name in (migration.name, migration.id, f"{migration.number:04}"):
            return migration
    names = [migration.name for migration in migrations()]
    hint = did_you_mean(name, names, "See connectctl upgrade list.")
    raise BadInput(f"Unknown migration: {name}", next_step=hint, code="unknown-migration")


def up_to(snapshot: RollingSnapshot, reached: tuple[SourceSupport, ...]) -> MigrationStatus:
    """Return whether every worker has, or can have, one of the modes ``reached``."""
    old = [
        worker.address for worker in snapshot.workers if worker.value is SourceSupport.NOT_SUPPORTED
    ]
    if not snapshot.workers:
        return MigrationStatus(Status.NOT_APPLICABLE, "the group has no workers")
    if old:
        return MigrationStatus(Status.NOT_APPLICABLE, f"{', '.join(old)} runs a release before 3.3")
    missing = [worker.address for worker in snapshot.workers if worker.value not in reached]
    if missing:
        return MigrationStatus(Status.PENDING, f"not applied, or unknown: {', '.join(missing)}")
    return MigrationStatus(Status.CONVERGED, f"every worker is {' or '.join(reached)}")


def down_from(snapshot: RollingSnapshot, gone: tuple[SourceSupport, ...]) -> MigrationStatus:
    """Return whether any worker is not yet in one of the modes ``gone``."""
    unchanged = [worker.address for worker in snapshot.workers if worker.value not in gone]
    if not snapshot.workers:
        return MigrationStatus(Status.NOT_APPLICABLE, "the group has no workers")
    if unchanged:
        return MigrationStatus(Status.POSSIBLE, f"it would change {', '.join(unchanged)}")
    return MigrationStatus(Status.CONVERGED, f"every worker is {' or '.join(gone)}")


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
