"""Rollback of a run: from its backups, and from its changes of connector configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from connectctl.ops.core.journal import Journal, Run
from connectctl.ops.operations.offsets.changes import Ends, MergeOffsets, RestoreBackup, from_data
from connectctl.ops.operations.offsets.ends import read_ends
from connectctl.ops.operations.offsets.steps import Backup, Change, Configure, backup_file
from connectctl.ops.operations.sink_offsets.changes import GroupTarget, undoing
from connectctl.ops.operations.sink_offsets.steps import BackupGroup, ChangeGroupOffsets
from connectctl.ops.operations.sink_offsets.steps import backup_file as group_backup_file


@dataclass(frozen=True)
class Rollback:
    """The rollback of one connector: the restore, with its dedicated topic."""

    request: RestoreBackup
    dedicated_topic: str | None


def rollbacks(journal: Journal, run: Run, steps: Sequence[Any]) -> dict[str, Rollback]:
    """Return the rollback of ``run`` for each connector whose offsets it backed up.

    Properties that the run set are restored.
    """
    found: dict[str, Rollback] = {}
    for number, step in enumerate(steps):
        if isinstance(step, Backup) and journal.path(run.id, backup_file(number)).exists():
            sets = [s for s in steps if isinstance(s, Configure) and s.subject == step.subject]
            reverted = tuple((s.name, s.was) for s in sets)
            since, keeps = _since(journal, run, steps, number)
            request = RestoreBackup(
                step.subject, backup_file(number), run.id, reverted, since, keeps
            )
            found[step.subject] = Rollback(request, step.dedicated_topic)
    return found


def _since(journal: Journal, run: Run, steps: Sequence[Any], backup: int) -> tuple[Ends, bool]:
    """Return the end offsets of the topics after the run had changed a connector, and whether its
    rollback keeps later offsets.

    The rollback of a merge keeps them: a merge moves offsets that tasks have committed, and its
    rollback moves them back. The partial writes of another run that was killed cannot be
    distinguished from later offsets.
    """
    connector = steps[backup].subject
    number, change = next(
        (n, s) for n, s in enumerate(steps) if isinstance(s, Change) and s.subject == connector
    )
    request = from_data(change.request)
    keeps = isinstance(request, MergeOffsets) or (
        isinstance(request, RestoreBackup) and request.keeps
    )
    if (ends := read_ends(journal, run, number)) is not None:
        return ends, keeps
    begun = any(mark.step == number for mark in run.marks)
    if begun and not isinstance(request, MergeOffsets):
        return (), keeps
    return read_ends(journal, run, backup) or (), keeps or not begun


def group_rollbacks(journal: Journal, run: Run, steps: Sequence[Any]) -> list[GroupTarget]:
    """Return the rollback of ``run`` for each group whose offsets it backed up."""
    made = {step.subject: step for step in steps if isinstance(step, ChangeGroupOffsets)}
    found = []
    for number, step in enumerate(steps):
        name = group_backup_file(number)
        if isinstance(step, BackupGroup) and journal.path(run.id, name).exists():
            change_step = made[step.subject]
            change = undoing(
                journal.read_json(run.id, name).get("offsets"), change_step.change, run.id
            )
            found.append(GroupTarget(step.subject, change, change_step.connector))
    return found
