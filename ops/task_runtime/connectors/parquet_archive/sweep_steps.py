"""``connectctl run JOB --sweep`` as a plan: which files are removed from an archive's directory."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from connectctl.ops.connect.internal_topics import manifest_topic
from connectctl.ops.core.context import RunContext
from connectctl.ops.core.finding import counted
from connectctl.ops.core.plan import Noop, Plan
from connectctl.ops.core.step import ResourceStep

OPERATION = "run sweep"
SHOWN = 20
"""Names of files that are shown to people; all are in ``-o json``."""


@dataclass(frozen=True)
class ArchiveLocation:
    """The archive of ``connector``: its ``directory``, and the consumer ``group`` with whose
    offsets files are committed.
    """

    connector: str
    directory: str
    group: str


@dataclass(frozen=True)
class OrphanFile:
    """A file that the manifest does not name, by its name relative to the directory, with its
    size.
    """

    name: str
    bytes: int


@dataclass(kw_only=True)
class SweepContext(RunContext):
    """``find`` gives the names of what are orphans now, or raises where that cannot be known;
    ``remove`` deletes one.
    """

    find: Callable[[], Collection[str]]
    remove: Callable[[str], None]


@dataclass(frozen=True)
class RemoveOrphans(ResourceStep[SweepContext]):
    """Remove ``files``, those of them that are still orphans when it is done."""

    location: ArchiveLocation
    files: tuple[OrphanFile, ...]

    def describe(self) -> str:
        size = sum(each.bytes for each in self.files)
        return (
            f"remove {counted(len(self.files), 'file')} of {size:,} bytes from "
            f"{self.location.directory}"
        )

    def apply(self, context: SweepContext) -> str | None:
        orphans = context.find()
        removed = [each for each in self.files if each.name in orphans]
        for each in removed:
            context.remove(each.name)
        return (
            f"{counted(len(removed), 'file')} of {sum(each.bytes for each in removed):,} bytes "
            "removed"
        )


def plan_sweep(
    cluster_id: str, group_id: str, location: ArchiveLocation, orphans: Collection[OrphanFile]
) -> Plan:
    """Return the plan that removes ``orphans``; ``group_id`` is the Connect cluster's."""
    name, manifest = location.connector, manifest_topic(location.connector)
    if not orphans:
        nothing = Noop(name, f"{location.directory} has no file that can be removed by {manifest}")
        return Plan(OPERATION, cluster_id, (), (nothing,), group_id=group_id)
    step = RemoveOrphans(name, location, tuple(orphans), now=f"not named in {manifest}")
    return Plan(OPERATION, cluster_id, (step,), group_id=group_id)


def files_of(plan: Plan) -> list[OrphanFile]:
    """Return the files that a plan removes."""
    return [each for step in plan.steps if isinstance(step, RemoveOrphans) for each in step.files]
