"""Rollback of a run: from its backups, and from its changes of connector configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connectctl.ops.operations.offsets.changes import RestoreBackup, from_data
from connectctl.ops.operations.offsets.steps import Backup, Change, Configure, backup_file
from connectctl.ops.operations.sink_offsets.changes import GroupTarget, restoring
from connectctl.ops.operations.sink_offsets.steps import BackupGroup, ChangeGroupOffsets
from connectctl.ops.operations.sink_offsets.steps import backup_file as group_backup_file

if TYPE_CHECKING:
    from connectctl.ops.core.journal import Journal, Run


@dataclass(frozen=True)
class Rollback:
    """The rollback of one connector: the restore, with its dedicated topic."""

    request: RestoreBackup
    dedicated_topic: str | None


def rollbacks(journal: Journal, run: Run, steps: Sequence[Any]) -> dict[str, Rollback]:
    """The rollback of ``run`` for each connector whose offsets it backed up.

    Properties that the run set are restored.
    """
    found: dict[str, Rollback] = {}
    for number, step in enumerate(steps):
        if isinstance(step, Backup) and journal.path(run.id, backup_file(number)).exists():
            sets = [s for s in steps if isinstance(s, Configure) and s.subject == step.subject]
            reverted = tuple((s.name, s.was) for s in sets)
            request = RestoreBackup(step.subject, backup_file(number), run.id, reverted)
            found[step.subject] = Rollback(request, step.dedicated_topic)
    return found


def group_rollbacks(journal: Journal, run: Run, steps: Sequence[Any]) -> list[GroupTarget]:
    """The rollback of ``run`` for each group whose offsets it backed up."""
    connectors = {step.subject for step in steps if isinstance(step, ChangeGroupOffsets) and step.connector}
    found = []
    for number, step in enumerate(steps):
        name = group_backup_file(number)
        if isinstance(step, BackupGroup) and journal.path(run.id, name).exists():
            change = restoring(journal.read_json(run.id, name).get("offsets"))
            found.append(GroupTarget(step.subject, change, step.subject in connectors))
    return found


def undone_by(steps: Sequence[Any]) -> frozenset[str]:
    found = (from_data(step.request) for step in steps if isinstance(step, Change))
    groups = frozenset(s.undoes for s in steps if isinstance(s, ChangeGroupOffsets) and s.undoes is not None)
    return groups | frozenset(
        request.run for request in found if isinstance(request, RestoreBackup) and request.run is not None
    )
